"""The broker's internal topics as coordinators see them: partitions of state, written a few records at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from broker.errors import BrokerError
from broker.log.committed import committed_records
from broker.log.partition import PartitionLog
from broker.metadata.image import Topic
from broker.protocol.compression import Codec
from broker.protocol.records import Record
from broker.storage.durability import Flushed
from broker.storage.partitions import Partitions

__all__ = ["StateTopic"]


class StateTopic:
    """An internal topic, for example ``__consumer_offsets``.

    The first append calls ``make``, which creates the topic.
    """

    def __init__(
        self,
        name: str,
        *,
        partitions: int,
        make: Callable[[], Topic],
        topics: Mapping[str, Topic],
        logs: Partitions,
        compression: Codec = Codec.NONE,
    ) -> None:
        self._name = name
        self._partitions = partitions
        self._make = make
        self._topics = topics
        self._logs = logs
        self._compression = compression

    @property
    def partitions(self) -> int:
        """The topic's number of partitions; before it exists, the number it will have."""
        topic = self._topics.get(self._name)
        return topic.partitions if topic is not None else self._partitions

    def append(
        self,
        partition: int,
        entries: Sequence[tuple[bytes, bytes | None]],
        producer: tuple[int, int] | None = None,
    ) -> asyncio.Future[None]:
        """Write (key, value) records as one batch. They are written when this returns, and durable when the future is
        done.

        With a ``producer`` (id, epoch) they are part of its transaction and take effect with its marker. Raises
        BrokerError if they can't be written; the future fails with one if they don't become durable.
        """
        self._make()
        log = self._logs.find(self._name, partition)
        before = log.size
        records = [Record(key, value) for key, value in entries]
        log.append_records(records, producer=producer, compression=self._compression)
        self._logs.appended(log, log.size - before)
        durable = self._logs.durable([log])
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if durable is None:
            done.set_result(None)
        else:
            durable.add_done_callback(lambda flushed: _resolve(done, flushed))
        return done

    def read(
        self, partition: int, still_open: dict[int, list[Record]] | None = None
    ) -> Iterable[tuple[int, bytes | None, bytes | None]]:
        """(offset, key, value) of each record in the order in which records take effect: at its offset, or at the
        commit marker of its transaction.

        Records of transactions that are open at the end of the log stay in ``still_open``, by producer id.
        """
        log = self._log(partition)
        if log is None:
            return
        for record in committed_records(log.iter_batches(), still_open):
            yield record.offset, record.key, record.value

    def end_offset(self, partition: int) -> int:
        """The offset of the next record."""
        log = self._log(partition)
        return 0 if log is None else log.log_end_offset

    def delete_before(self, partition: int, offset: int) -> None:
        """Like DeleteRecords: whole segments are removed by the next retention run."""
        log = self._log(partition)
        if log is not None and offset > log.log_start_offset:
            log.delete_records(offset)
            self._logs.changed(log)

    def _log(self, partition: int) -> PartitionLog | None:
        return self._logs.get(self._name, partition)


def _resolve(done: asyncio.Future[None], flushed: asyncio.Future[Flushed]) -> None:
    if done.done():
        return
    error: BrokerError | None = None if flushed.cancelled() else next(iter(flushed.result().values()), None)
    if flushed.cancelled():
        done.cancel()
    elif error is not None:
        done.set_exception(error)
    else:
        done.set_result(None)
