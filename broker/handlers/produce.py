"""Produce: clients append record batches."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Final

from broker.api.connection import ConnectionRefusal
from broker.api.later import Later
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


# librdkafka takes a broker that does not advertise 0-2 for one without record batches (KAFKA-18659); using them is refused.
@routes.handles(ApiKey.PRODUCE, versions=range(3, 14), advertised=range(14))
def produce(context: Context, request: ProduceRequest) -> ProduceResponse | Pending | None:
    """Append record batches; with acks=all the answer waits until they are on disk (`acks.all.durability`).

    v3 record batches of format 2 · v5 log start offset · v7 zstd · v8 error messages · v9 flexible · v13 topic ids
    """
    inspections = inspected(context, request)
    if isinstance(inspections, Inspecting):
        return _produce_later(context, request, inspections)
    return _admitted(context, request, inspections)


def _produce_later(context: Context, request: ProduceRequest, inspecting: Inspecting) -> Pending | None:
    """Append when the records have been looked into; meanwhile nothing else is taken from the connection."""
    held, later = request.copied(), Later(context, answers=request.acks != 0)

    def done(_: object) -> None:
        if not later.future.cancelled():
            later.decide(lambda: _admitted(context, held, inspecting.result()))

    inspecting.task.add_done_callback(done)
    later.future.add_done_callback(lambda future: inspecting.task.cancel() if future.cancelled() else None)
    if context.connection is not None:
        context.connection.mute_until(inspecting.task)
    return later.outcome


def _admitted(context: Context, request: ProduceRequest, inspections: Inspections) -> ProduceResponse | Pending | None:
    if request.transactional_id is not None:
        return admitted(context, request, partial(_produce, inspections))
    return _produce(inspections, context, request, None)


def _produce(
    inspections: Inspections, context: Context, request: ProduceRequest, admission: Admission | None
) -> ProduceResponse | Pending | None:
    touched: list[PartitionLog | None] = []
    topics = []
    for topic, wanted in request.topics:
        found = topic
        if admission is None and isinstance(topic, uuid.UUID):
            # Looked up once for all its partitions; an id that is not known is refused with each of them.
            found = context.broker.topics.name_of(topic) or topic
        topics.append(
            (
                topic,
                [
                    _append(context, request, found, one, touched, admission, inspections.get((topic, one.partition)))
                    if inspections
                    else _append(context, request, found, one, touched, admission)
                    for one in wanted
                ],
            )
        )
    logs = (one for one in touched if one is not None)
    if request.acks == 0:
        context.broker.partitions.due(logs)  # nobody waits for it
        failed = next((one for _, produced in topics for one in produced if one.error_code), None)
        if failed is not None:
            # There is no answer to say it in: Kafka closes, so that the producer looks again.
            raise ConnectionRefusal(f"acks=0 and partition {failed.partition} refused: {failed.error_message}")
        return None
    partitions = context.broker.partitions
    waiting = partitions.due(logs) if request.acks == 1 else partitions.durable(logs)
    if waiting is None:
        return ProduceResponse(topics)
    return Pending(waiting, lambda flushed: ProduceResponse(_with_failures(topics, touched, flushed)))


def _append(
    context: Context,
    request: ProduceRequest,
    topic: str | uuid.UUID,
    wanted: PartitionRecords,
    touched: list[PartitionLog | None],
    admission: Admission | None,
    inspected: Inspected | None = None,
) -> PartitionProduced:
    partitions = context.broker.partitions
    version = None
    metrics = context.broker.topic_metrics
    partition: PartitionLog | None = None
    try:
        if admission is not None:
            version = admission.version_for(topic, wanted.partition)
        if context.broker.authorizer is not None:
            context.require_topic(Operation.WRITE, topic)
        partition = partitions.find(topic, wanted.partition)
        if context.version < _ZSTD_SINCE:
            _refuse_zstd(wanted.records)
        appended = partitions.append(
            partition, wanted.records, acks=request.acks, transaction_version=version, inspected=inspected
        )
    except BrokerError as error:
        touched.append(None)
        metrics.failed_produce(None if partition is None else partition.topic)
        # Where the log begins is said of records refused by the log, not of those that never reached it.
        begins = partition.log_start_offset if partition is not None and error.records else -1
        return PartitionProduced(
            wanted.partition,
            error.code,
            log_start_offset=begins,
            error_message=error.message,
            wrong_records=error.records,
        )
    touched.append(partition)
    counts = metrics.by_topic[partition.topic]
    counts.bytes_in += len(wanted.records)
    counts.messages_in += appended.last_offset - appended.base_offset + 1
    return PartitionProduced(
        wanted.partition, 0, appended.base_offset, appended.append_time_ms, appended.log_start_offset
    )


_ZSTD_SINCE: Final = 7
_ATTRIBUTES_AT: Final = 22


def _refuse_zstd(records: bytes | memoryview) -> None:
    """Consumers of the same age could not read it (KIP-110)."""
    if len(records) > _ATTRIBUTES_AT and records[_ATTRIBUTES_AT] & 7 == Codec.ZSTD:
        raise UnsupportedCompressionType(f"zstd needs Produce v{_ZSTD_SINCE} or later.")


def _with_failures(
    topics: list[tuple[str | uuid.UUID, list[PartitionProduced]]],
    touched: list[PartitionLog | None],
    failed: Flushed,
) -> list[tuple[str | uuid.UUID, list[PartitionProduced]]]:
    """What was appended but could not be flushed is answered as such.

    Producers take a storage error for "not written", and may then give the same sequences to other records.
    """
    if not failed:
        return topics
    errors = iter([_after_append(failed.get(one)) if one is not None else None for one in touched])
    return [
        (
            topic,
            [
                one
                if (error := next(errors)) is None
                else PartitionProduced(one.partition, error.code, error_message=error.message)
                for one in produced
            ],
        )
        for topic, produced in topics
    ]


def _after_append(error: BrokerError | None) -> BrokerError | None:
    return NotEnoughReplicasAfterAppend(error.message) if isinstance(error, KafkaStorageError) else error
