"""The task that sinks to tables share: rows are kept, committed with their offsets, and delivered again where they must be."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from connect.api import (
    ConnectError,
    DataError,
    Dataset,
    OffsetChanges,
    RecordBatch,
    RetriableConnectError,
    SinkContents,
    SinkTask,
    TopicPartition,
    get_logger,
)
from connectors.tables.config import TableSinkConfig

if TYPE_CHECKING:
    import pyarrow as pa

    from connectors.tables.offsets import Mark
    from connectors.tables.rows import TableRows, TableStore

__all__ = ["TableSinkTask", "changed_offsets"]

logger = get_logger(__name__)

_SPILL_BYTES: Final = 32 * 1024 * 1024
"""Bytes of rows in memory after which they are written to data files, where a format can do so."""

ConfigT = TypeVar("ConfigT", bound=TableSinkConfig)


class _Addition(NamedTuple):
    """Rows that a put adds to a table, once all of it has worked."""

    rows: TableRows
    made: pa.Table


class TableSinkTask(SinkTask[ConfigT]):
    """Commits rows with their offsets once the interval is over."""

    def __init__(self, config: ConfigT, context: Any) -> None:
        super().__init__(config, context)
        self._writers: dict[str, TableRows] = {}
        self._assigned: set[TopicPartition] = set()
        self._ends: dict[TopicPartition, Mark] = {}
        """The positions after what was put since the last commit."""
        self._safe: dict[TopicPartition, int] = {}
        """The positions up to which everything is in its tables."""
        self._first: dict[TopicPartition, int] = {}
        """Where the records that are not committed begin."""
        self._asked: dict[TopicPartition, Mark] = {}
        """The offsets that the table had of the partitions when they were opened."""
        self._again: set[TopicPartition] = set()
        """Partitions that are delivered again: what the present put has of them comes once more."""
        self._began = time.monotonic()

    @abstractmethod
    def make_store(self, *, creates: bool = True) -> TableStore:
        """Where the tables are; without ``creates`` nothing is written there. It connects at its first use."""

    def dataset(self, topic: str) -> Dataset | None:
        """The table that gets every record; not told where records name theirs."""
        del topic
        return self.dataset_of(self.config.tables[0]) if self._router.is_single else None

    @abstractmethod
    def dataset_of(self, table: str) -> Dataset: ...

    def after_commit(self, rows: Mapping[str, TableRows]) -> None:
        """Called with the tables, by their names, after all of them were committed."""

    def start(self) -> None:
        from connectors.tables.routing import Router
        from connectors.tables.row_maker import RowMaker

        self._store = self.make_store()
        self.resources.callback(self._store.close)
        self.resources.callback(self._discard)
        self._router = Router(self.config)
        self._maker = RowMaker(self.config, self._store)

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        """Continue where the table ends: at its last record, to see that it is the same one.

        With several tables the group's offsets say where: each table leaves out what it has.
        """
        self._assigned.update(partitions)
        single = self._rows_of(self.config.tables[0]) if self._router.is_single else None
        for rows in self._writers.values():
            rows.learn(partitions)
        if single is None:
            return
        for partition in partitions:
            if (mark := single.known.get(partition)) is not None:
                self._asked[partition] = mark
                self.context.rewind({partition: mark.start})

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """Commits the records that were put, so that the next owner need not read them again; the table's offsets tell it."""
        if self._pending:
            try:
                self._commit()
            except RetriableConnectError as error:
                logger.warning(
                    "rows are left to the partitions' next owner", connector=self.context.connector, reason=str(error)
                )
                self._go_back(set(partitions))
        self._assigned.difference_update(partitions)
        for partition in partitions:
            for known in (self._ends, self._safe, self._first, self._asked):
                known.pop(partition, None)

    @property
    def _pending(self) -> bool:
        return any(rows.pending for rows in self._writers.values())

    @property
    def _is_due(self) -> bool:
        if not self._pending:
            return False
        taken = sum(rows.taken_bytes for rows in self._writers.values())
        waited_ms = (time.monotonic() - self._began) * 1000
        return waited_ms >= self.config.commit_interval_ms or taken >= self.config.pending_bytes

    def put(self, batches: Sequence[RecordBatch]) -> None:
        # What may have to be repeated comes first, before any of the batches is kept.
        self._again.clear()
        if self._is_due:
            self._commit()
            self.context.request_commit()
        self._spill()
        additions: list[_Addition] = []
        ends: dict[TopicPartition, Mark] = {}
        errors: list[tuple[RecordBatch, int, Exception]] = []
        filled = [batch for batch in batches if len(batch) and _partition_of(batch) not in self._again]
        for batch in filled:
            refused: dict[int, Exception] = {}
            additions += self._additions(batch, ends, refused)
            errors += [(batch, number, error) for number, error in sorted(refused.items())]
        for batch, number, error in errors:
            self.context.errant_records.report(next(batch.slice(number, 1).records()), error)
        if additions and not self._pending:
            self._began = time.monotonic()
        for addition in additions:
            addition.rows.add(addition.made)
        for batch in filled:
            assert batch.offsets is not None
            self._first.setdefault(_partition_of(batch), batch.offsets[0].as_py())
        self._ends.update(ends)

    def _spill(self) -> None:
        waiting = sum(rows.waiting_bytes for rows in self._writers.values())
        if waiting >= _SPILL_BYTES:
            self._or_go_back(lambda rows: rows.spill())

    def _additions(
        self, batch: RecordBatch, ends: dict[TopicPartition, Mark], refused: dict[int, Exception]
    ) -> Iterator[_Addition]:
        from connectors.tables.offsets import Mark

        assert batch.offsets is not None
        partition = _partition_of(batch)
        self._require_same_log(batch)
        stamp = None if batch.timestamps_ms is None else batch.timestamps_ms[-1].as_py()
        mark = Mark(batch.offsets[-1].as_py() + 1, stamp)
        if mark.next_offset > ends.get(partition, self._ends.get(partition, Mark(0))).next_offset:
            ends[partition] = mark
        for part, first in self._maker.with_schema(batch, refused):
            for table, mask in self._router.routes(part):
                numbers = _numbers(part, mask, first)
                some = part if mask is None else part.filter(mask)
                rows = self._rows_of(table, some, numbers, refused)
                if rows is None:
                    continue
                some, numbers = _unseen(some, numbers, rows.known.get(partition))
                some, numbers = _unseen(some, numbers, self._ends.get(partition))
                if len(some):
                    for made in self._maker.rows(rows, some, numbers, refused):
                        yield _Addition(rows, made)

    def _rows_of(
        self,
        table: str,
        batch: RecordBatch | None = None,
        numbers: Any = None,
        refused: dict[int, Exception] | None = None,
    ) -> TableRows | None:
        """The rows of a table that exists, or that the batch shows how to create."""
        if (known := self._writers.get(table)) is not None:
            return known
        try:
            made = self._maker.open(table, batch)
        except DataError as error:
            if refused is None:
                raise
            refused.update(dict.fromkeys(numbers.to_pylist(), error))
            return None
        if made is not None:
            made.known = made.offsets(self._assigned)
            self._writers[table] = made
        return made

    def _require_same_log(self, batch: RecordBatch) -> None:
        """Raises ConnectError where the log's records are others than those that the tables have."""
        assert batch.offsets is not None
        partition = _partition_of(batch)
        for table, rows in self._writers.items():
            mark = rows.known.get(partition)
            if mark is None or mark.timestamp_ms is None or batch.offsets[0].as_py() >= mark.next_offset:
                continue
            asked = self._asked.get(partition)
            if mark.is_contradicted_by(batch) or (
                asked == mark and batch.offsets[0].as_py() < mark.next_offset - 1 and partition not in self._safe
            ):
                raise ConnectError(
                    f"table {table} has {partition} up to offset {mark.next_offset}, and the log's records before that are others: "
                    "the topic was created anew. Delete the connector's offsets to begin anew (`tidegate connectors offsets`), or "
                    "use another name"
                )

    def _commit(self) -> None:
        """Commit all tables. Raises RetriableConnectError where it may succeed later; nothing of it is lost then."""

        def commit(rows: TableRows) -> None:
            if rows.pending:
                rows.commit(self._ends, self.context.stopping.wait)

        if self._or_go_back(commit):
            self._safe.update({partition: mark.next_offset for partition, mark in self._ends.items()})
            self._ends, self._first = {}, {}
            self.after_commit(self._writers)

    def _or_go_back(self, act: Callable[[TableRows], None]) -> bool:
        """Do something with each table's rows. Where rows have to be delivered again, forget them; returns False then."""
        from connectors.tables.errors import FilesIncomplete, OffsetsMoved

        try:
            for rows in self._writers.values():
                act(rows)
        except (FilesIncomplete, OffsetsMoved) as error:
            logger.warning("going back", connector=self.context.connector, reason=str(error))
            self._go_back(set())
            return False
        return True

    def _go_back(self, leaving: set[TopicPartition]) -> None:
        """Forget what is not committed, and have it delivered again."""
        for rows in self._writers.values():
            rows.discard()
            with suppress(RetriableConnectError):  # then the next commit finds out that the offsets have moved
                rows.learn(self._assigned)
        back: dict[TopicPartition, int] = {}
        single = next(iter(self._writers.values()), None) if self._router.is_single else None
        for partition in (self._first.keys() | self._ends.keys()) - leaving:
            mark = single.known.get(partition) if single is not None else None
            back[partition] = mark.next_offset if mark is not None else self._first[partition]
            self._safe.pop(partition, None)
        self._asked.clear()
        self._ends, self._first = {}, {}
        self._again |= back.keys()
        self.context.rewind(back)

    def _discard(self) -> None:
        for rows in self._writers.values():
            rows.discard()

    def flush(self) -> None:
        if self._pending:
            self._commit()

    def pre_commit(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self._again.clear()
        if self._is_due or (self._pending and self.context.stopping.is_set()):
            try:
                self._commit()
            except RetriableConnectError as error:
                logger.warning("not committed yet", connector=self.context.connector, reason=str(error))
        if not self._pending:
            self._ends, self._first = {}, {}
            self._safe.update({partition: at for partition, at in positions.items() if partition not in self._again})
        return {partition: self._safe[partition] for partition in positions if partition in self._safe}

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        from connectors.tables.previews import described

        with closing(self.make_store(creates=False)) as store:
            return described(self.config, store, [batch for batch in batches if len(batch)])

    def contents(self, committed: Mapping[TopicPartition, int]) -> SinkContents:
        from connectors.tables.contents import TableContents

        return TableContents(self.config, self.make_store(creates=False), committed)


def _partition_of(batch: RecordBatch) -> TopicPartition:
    assert batch.origin is not None
    return TopicPartition(batch.origin.topic, batch.origin.partition)


def _numbers(part: RecordBatch, mask: Any, first: int) -> Any:
    import pyarrow as pa

    numbers = pa.array(range(first, first + len(part)), pa.int64())
    return numbers if mask is None else numbers.filter(mask)


def _unseen(batch: RecordBatch, numbers: Any, mark: Mark | None) -> tuple[RecordBatch, Any]:
    """The rows that the table does not have yet."""
    import pyarrow.compute as pc

    assert batch.offsets is not None
    if mark is None or not len(batch) or batch.offsets[0].as_py() >= mark.next_offset:
        return batch, numbers
    fresh = pc.greater_equal(batch.offsets, mark.next_offset)
    return batch.filter(fresh), numbers.filter(fresh)


def changed_offsets(offsets: OffsetChanges) -> dict[TopicPartition, int | None]:
    """The offsets that a user sets, None for one that is deleted."""
    return {
        TopicPartition(str(partition["kafka_topic"]), int(partition["kafka_partition"])): None
        if offset is None
        else int(offset["kafka_offset"])
        for partition, offset in offsets
    }
