"""Single records read from the log once more: for a sink that reports one whose fetch is long gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connect.api import Origin, RecordBatch
from connect.task.clients import ClientLoop
from connect.task.sinks.pipeline import raw_batch

if TYPE_CHECKING:
    from broker.client import ClientConfig

__all__ = ["Rereader"]


class Rereader:
    """From a task's thread; connects for each record, which is rare."""

    def __init__(self, loop: ClientLoop, config: ClientConfig) -> None:
        """``config`` is that of the sink's consumer; nothing is done in its group."""
        self._loop, self._config = loop, config

    def record(self, origin: Origin, offset: int) -> RecordBatch | None:
        """The record at an offset as bytes; None where the log has it no more. Waits for a cluster that is away."""
        return self._loop.patiently(lambda: self._record(origin, offset), f"record {origin} {offset}")

    async def _record(self, origin: Origin, offset: int) -> RecordBatch | None:
        from broker.client import Admin, BatchConsumer, ClientConfig

        kept = {name: value for name, value in self._config.properties.items() if name != "group.id"}
        config = ClientConfig(self._config.bootstrap_servers, {**kept, "auto.offset.reset": "earliest"})
        where = (origin.topic, origin.partition)
        async with Admin(config) as admin, BatchConsumer(config) as consumer:
            end = next(iter((await admin.end_offsets([where], committed=True)).values()))  # type: ignore[list-item]
            await consumer.assign([where])
            await consumer.seek(where, offset)
            position = offset
            while position < end:
                for part in await consumer.fetch(max_wait_ms=500):
                    position = part.next_offset
                    batch = raw_batch(part)
                    assert batch.offsets is not None
                    row = batch.offsets.index(offset).as_py()
                    if row >= 0:
                        return batch.slice(row, 1)
                    if position > offset:
                        return None
        return None
