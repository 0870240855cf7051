"""Produce: clients append record batches."""

from __future__ import annotations

import uuid
from typing import Final, Protocol

from broker.api.connection import ConnectionRefusal
from broker.api.later import Later
from broker.api.parts import (
    Common,
    WithLogs,
    WithPartitions,
    WithRecordWorker,
    WithSettings,
    WithTopicMetrics,
    WithTransactions,
)
from broker.api.routes import Context, Pending, Routes
from broker.errors import BrokerError, KafkaStorageError, NotEnoughReplicasAfterAppend, UnsupportedCompressionType
from broker.handlers.inspected_produce import Inspecting, Inspections, inspected
from broker.handlers.transactional_produce import Admission, admitted
from broker.log.inspection import Inspected
from broker.log.partition import PartitionLog
from broker.protocol.api import ApiKey
from broker.protocol.compression import Codec
from broker.protocol.produce import PartitionProduced, PartitionRecords, ProduceRequest, ProduceResponse
from broker.security.access import Operation
from broker.storage.durability import Flushed

__all__ = ["routes"]

routes = Routes()


class _Parts(
    Common, WithLogs, WithPartitions, WithRecordWorker, WithSettings, WithTopicMetrics, WithTransactions, Protocol
):
    """The parts of a broker that these handlers use."""


# librdkafka assumes no support for record batches if 0-2 are not advertised (KAFKA-18659). Requests in these versions
# are refused.
@routes.handles(ApiKey.PRODUCE, versions=range(3, 14), advertised=range(14))
def produce(context: Context[_Parts], request: ProduceRequest) -> ProduceResponse | Pending | None:
    """Append record batches; with acks=all the answer waits until they are on disk (`acks.all.durability`).

    v3 record batches of format 2 · v5 log start offset · v7 zstd · v8 error messages · v9 flexible · v13 topic ids
    """
    inspections = inspected(context, request)
    if isinstance(inspections, Inspecting):
        return _produce_later(context, request, inspections)
    return _admitted(context, request, inspections)


def _produce_later(context: Context[_Parts], request: ProduceRequest, inspecting: Inspecting) -> Pending | None:
    """Append when the records have been inspected. Meanwhile nothing else is read from the connection."""
    copied, later = request.copied(), Later(context, answers=request.acks != 0)

    def done(_: object) -> None:
        if not later.future.cancelled():
            later.decide(lambda: _admitted(context, copied, inspecting.result()))

    inspecting.task.add_done_callback(done)
    later.future.add_done_callback(lambda future: inspecting.task.cancel() if future.cancelled() else None)
    if context.connection is not None:
        context.connection.mute_until(inspecting.task)
    return later.outcome


def _admitted(
    context: Context[_Parts], request: ProduceRequest, inspections: Inspections
) -> ProduceResponse | Pending | None:
    if request.transactional_id is None:
        return _Appends(context, request, inspections, None).outcome()
    return admitted(
        context, request, lambda request, admission: _Appends(context, request, inspections, admission).outcome()
    )


class _Appends:
    """The partitions of one request: appends to each in turn and collects the answer."""

    __slots__ = ("_admission", "_context", "_inspections", "_partitions", "_request", "_topics", "_touched")

    def __init__(
        self, context: Context[_Parts], request: ProduceRequest, inspections: Inspections, admission: Admission | None
    ) -> None:
        self._context = context
        self._request = request
        self._inspections = inspections
        self._admission = admission
        self._partitions = context.broker.partitions
        self._touched: list[PartitionLog | None] = []
        """The log of each partition, in the request's order; None if nothing was appended."""
        self._topics: list[tuple[str | uuid.UUID, list[PartitionProduced]]] = []

    def outcome(self) -> ProduceResponse | Pending | None:
        """Append everything. Raises ConnectionRefusal if an error occurs and there is no answer to carry it."""
        inspections = self._inspections
        for topic, records in self._request.topics:
            known = topic
            if self._admission is None and isinstance(topic, uuid.UUID):
                # Looked up once for all its partitions. An unknown id is refused for each of them.
                known = self._context.broker.topics.name_of(topic) or topic
            self._topics.append(
                (
                    topic,
                    [
                        self._append(known, single, inspections.get((topic, single.partition)) if inspections else None)
                        for single in records
                    ],
                )
            )
        logs = (log for log in self._touched if log is not None)
        if self._request.acks == 0:
            self._partitions.due(logs)  # no request waits for it
            self._refuse_unanswered()
            return None
        waiting = self._partitions.due(logs) if self._request.acks == 1 else self._partitions.durable(logs)
        if waiting is None:
            return ProduceResponse(self._topics)
        return Pending(waiting, self._flushed)

    def _append(
        self, topic: str | uuid.UUID, records: PartitionRecords, inspected: Inspected | None
    ) -> PartitionProduced:
        context, number = self._context, records.partition
        metrics = context.broker.topic_metrics
        log: PartitionLog | None = None
        try:
            version = None if self._admission is None else self._admission.version_for(topic, number)
            if context.broker.authorizer is not None:
                context.require_topic(Operation.WRITE, topic)
            log = self._partitions.find(topic, number)
            if context.version < _ZSTD_SINCE:
                _refuse_zstd(records.records)
            appended = self._partitions.append(
                log, records.records, acks=self._request.acks, transaction_version=version, inspected=inspected
            )
        except BrokerError as error:
            self._touched.append(None)
            metrics.failed_produce(None if log is None else log.topic)
            # The log start offset is sent if the log refused the records, but not if they never reached it.
            begins = log.log_start_offset if log is not None and error.records else -1
            return PartitionProduced(
                number,
                error.code,
                log_start_offset=begins,
                error_message=error.message,
                wrong_records=error.records,
            )
        self._touched.append(log)
        counts = metrics.by_topic[log.topic]
        counts.bytes_in += len(records.records)
        counts.messages_in += appended.last_offset - appended.base_offset + 1
        return PartitionProduced(number, 0, appended.base_offset, appended.append_time_ms, appended.log_start_offset)

    def _refuse_unanswered(self) -> None:
        """With acks=0 there is no answer for the error.

        Kafka closes the connection, so that the producer refreshes metadata.
        """
        for _, produced in self._topics:
            for partition in produced:
                if partition.error_code:
                    raise ConnectionRefusal(
                        f"acks=0 and partition {partition.partition} refused: {partition.error_message}"
                    )

    def _flushed(self, failed: Flushed) -> ProduceResponse:
        """The answer. A batch that was appended but not flushed gets a special error.

        Producers interpret a storage error as "not written", and may then use the same sequences for other records.
        """
        if not failed:
            return ProduceResponse(self._topics)
        errors = iter([None if log is None else _after_append(failed.get(log)) for log in self._touched])
        return ProduceResponse(
            [
                (
                    topic,
                    [
                        partition
                        if (error := next(errors)) is None
                        else PartitionProduced(partition.partition, error.code, error_message=error.message)
                        for partition in produced
                    ],
                )
                for topic, produced in self._topics
            ]
        )


_ZSTD_SINCE: Final = 7
_ATTRIBUTES_AT: Final = 22


def _refuse_zstd(records: bytes | memoryview) -> None:
    """Refuse zstd from old producers: consumers of the same age could not read it (KIP-110)."""
    if len(records) > _ATTRIBUTES_AT and records[_ATTRIBUTES_AT] & 7 == Codec.ZSTD:
        raise UnsupportedCompressionType(f"zstd needs Produce v{_ZSTD_SINCE} or later.")


def _after_append(error: BrokerError | None) -> BrokerError | None:
    return NotEnoughReplicasAfterAppend(error.message) if isinstance(error, KafkaStorageError) else error
