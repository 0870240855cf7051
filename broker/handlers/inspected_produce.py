"""Inspects the records of a Produce before they are appended, if a topic requires keys or a codec.

Little work is done at once. Longer work, which would block other clients, runs in a separate process.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from broker.api.parts import Common, WithLogs, WithRecordWorker
from broker.api.routes import Context
from broker.errors import BrokerError, CorruptMessage
from broker.log.inspection import Inspected, Rules, inspect, inspect_all
from broker.protocol.produce import ProduceRequest
from broker.protocol.records import BatchHeader, batch_at
from broker.security.access import Operation, ResourceType
from broker.work import ON_THE_LOOP, Allowance, TooMuchWork

__all__ = ["Inspecting", "Inspections", "inspected"]


class _Parts(Common, WithLogs, WithRecordWorker, Protocol):
    """The parts of a broker that these handlers use."""


_NamedPartition = tuple[str | uuid.UUID, int]
"""A partition by the topic's name or id, as in the request."""
Inspections = Mapping[_NamedPartition, Inspected]
"""The results by partition, without partitions whose records need no inspection."""
_NOTHING: Final[Inspections] = MappingProxyType({})


class Inspecting:
    """Records that the inspection process is working on."""

    def __init__(
        self,
        context: Context[_Parts],
        inspected: dict[_NamedPartition, Inspected],
        long: dict[_NamedPartition, tuple[bytes, Rules]],
    ) -> None:
        self._inspected, self._long = inspected, long
        batches = [batch for batch, _ in long.values()]
        self.task = context.broker.record_worker.run(
            inspect_all,
            list(long.values()),
            size=sum(map(len, batches)),
            records=sum(BatchHeader.parse(batch).record_count for batch in batches),
        )

    def result(self) -> Inspections:
        """The results, once the task is done. Raises CancelledError if it was cancelled."""
        try:
            return {**self._inspected, **dict(zip(self._long, self.task.result(), strict=True))}
        except BrokerError as error:
            return {**self._inspected, **_refused(self._long, error)}


def inspected(context: Context[_Parts], request: ProduceRequest) -> Inspections | Inspecting:
    """Inspect the records of a request. Raises nothing: errors are returned with their partition."""
    result: dict[_NamedPartition, Inspected] | None = None
    long: dict[_NamedPartition, tuple[bytes, Rules]] = {}
    broker = context.broker
    for topic, partitions in request.topics:
        name = topic if isinstance(topic, str) else broker.topics.name_of(topic)
        if name is None:
            continue
        for partition in partitions:
            log = broker.logs.get(name, partition.partition)
            if log is None or (rules := log.config.record_rules) is None:
                continue
            if result is None:
                result, allowance = {}, Allowance(ON_THE_LOOP)
            if not _is_worth_it(context, name, partition.records, rules):
                continue
            where = topic, partition.partition
            try:
                made = inspect(partition.records, rules, allowance)
                result[where] = Inspected(rules, made if isinstance(made, bytes) else None)
            except TooMuchWork:
                long[where] = bytes(partition.records), rules
            except BrokerError as error:
                result[where] = Inspected(rules, error=error)
    if result is None:
        return _NOTHING
    if not long:
        return result
    try:
        return Inspecting(context, result, long)
    except BrokerError as error:
        return {**result, **_refused(long, error)}


def _refused(long: Mapping[_NamedPartition, tuple[bytes, Rules]], error: BrokerError) -> Inspections:
    return {where: Inspected(rules, error=error) for where, (_, rules) in long.items()}


def _is_worth_it(context: Context[_Parts], topic: str, records: memoryview, rules: Rules) -> bool:
    """Whether the batch may be appended according to its header. The log reports what is wrong with the others."""
    try:
        header = batch_at(records, 0)
    except CorruptMessage:
        return False
    if (
        header.size != len(records)
        or header.size > rules.max_bytes
        or header.record_count != header.last_offset_delta + 1
    ):
        return False
    return context.allows(Operation.WRITE, ResourceType.TOPIC, topic)
