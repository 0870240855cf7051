"""Three brokers with deliberate errors for the checker to find: each changes ours, in its process, before it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["BROKEN"]


def acknowledged_before_written() -> None:
    """Produce is answered with the offsets to come; the records are written a moment later."""
    from broker.log.partition import Appended
    from broker.storage.partitions import Partitions

    written_late = Partitions.append
    promised: dict[Any, int] = {}

    def append(self: Partitions, partition: Any, records: memoryview, **named: Any) -> Appended:
        from broker.protocol.records import BatchHeader

        header = BatchHeader.parse(records)
        base = max(promised.get(partition, 0), partition.log_end_offset)
        promised[partition] = base + header.last_offset_delta + 1

        def write(records: bytes) -> None:
            written_late(self, partition, memoryview(records), **named)

        asyncio.get_running_loop().call_later(0.1, write, bytes(records))
        return Appended(base, promised[partition] - 1, -1, partition.log_start_offset)

    Partitions.append = append  # type: ignore[method-assign, assignment]


def producers_forgotten() -> None:
    """A restarted broker does not know what idempotent producers have sent."""
    from broker.log.directory import LogDirectory

    whole = LogDirectory.open

    def open_without_producers(self: LogDirectory) -> None:
        whole(self)
        for log in self.all():
            log.producers.clear()

    LogDirectory.open = open_without_producers  # type: ignore[method-assign]


def stable_offset_ignored() -> None:
    """Readers of committed data get what is not committed yet."""
    from broker.log.partition import PartitionLog

    PartitionLog.last_stable_offset = property(lambda log: log.log_end_offset)  # type: ignore[assignment, misc]


BROKEN: Mapping[str, Callable[[], None]] = {
    "acknowledged-before-written": acknowledged_before_written,
    "producers-forgotten": producers_forgotten,
    "stable-offset-ignored": stable_offset_ignored,
}
