"""The Iceberg sink connector and its task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.api import (
    ConnectError,
    DataError,
    OffsetChanges,
    Problem,
    RecordBatch,
    RetriableConnectError,
    SinkConnector,
    SinkTask,
    TidegateError,
    TopicPartition,
    get_logger,
    parse,
)
from connectors.iceberg.client import Tables
from connectors.iceberg.config import IcebergSinkConfig

if TYPE_CHECKING:
    import pyarrow as pa

    from connectors.iceberg.compaction import Compaction
    from connectors.iceberg.offsets import Mark
    from connectors.iceberg.table_rows import TableRows

__all__ = ["IcebergSinkConnector", "IcebergSinkTask"]

logger = get_logger(__name__)

_SPILL_BYTES: Final = 32 * 1024 * 1024
"""Bytes of rows in memory after which they are written to data files."""
_CHANGES_SHARE: Final = 10
"""The part of ``tidegate.commit.bytes`` that changes by key take, which wait in memory."""
_EXPIRE_S: Final = 600


class _Addition(NamedTuple):
    """Rows that a put adds to a table, once all of it has worked."""

    rows: TableRows
    made: pa.Table


class IcebergSinkTask(SinkTask[IcebergSinkConfig]):
    """Writes rows to data files as they come, and commits them with their offsets once the interval is over."""

    def __init__(self, config: IcebergSinkConfig, context: Any) -> None:
        super().__init__(config, context)
        self._writers: dict[str, TableRows] = {}
        self._ends: dict[TopicPartition, Mark] = {}
        """The positions after what was put since the last commit."""
        self._safe: dict[TopicPartition, int] = {}
        """The positions up to which everything is in its tables."""
        self._first: dict[TopicPartition, int] = {}
        """Where the records that are not committed begin."""
        self._asked: dict[TopicPartition, Mark] = {}
        """What the one table had of the partitions when they were opened."""
        self._again: set[TopicPartition] = set()
        """Partitions that are delivered again: what the present put has of them comes once more."""
        self._began = time.monotonic()
        self._expired_at: dict[str, float] = {}
        self._compaction: Compaction | None = None

    def start(self) -> None:
        from connectors.iceberg.routing import Router
        from connectors.iceberg.row_maker import RowMaker

        self._tables = Tables(self.config)
        self.resources.callback(self._tables.close)
        self.resources.callback(self._discard)
        self._router = Router(self.config)
        self._maker = RowMaker(self.config, self._tables, self.context.connector)
        if self.config.compact_interval_ms and self.context.task == 0:
            from connectors.iceberg.compaction import Compaction

            self._compaction = Compaction(self.config, self.context.connector)
            self.resources.callback(self._compaction.stop)

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        """Continue where the table ends: at its last record, to see that it is the same one.

        With several tables the group's offsets say where: each table leaves out what it has.
        """
        single = self._rows_of(self.config.tables[0]) if self._router.is_single else None
        for rows in self._writers.values():
            rows.learn(partitions)
        if single is None:
            return
        for partition in partitions:
            if (mark := single.known.get(partition)) is not None:
                self._asked[partition] = mark
                verifiable = mark.timestamp_ms is not None and mark.next_offset > 0
                self.context.rewind({partition: mark.next_offset - 1 if verifiable else mark.next_offset})

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """What was put is committed, so that the next owner need not read it again; the table's offsets tell it."""
        if self._pending:
            try:
                self._commit()
            except RetriableConnectError as error:
                logger.warning(
                    "rows are left to the partitions' next owner", connector=self.context.connector, reason=str(error)
                )
                self._go_back(set(partitions))
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
        share = _CHANGES_SHARE if self.config.changes else 1
        taken = sum(rows.taken_bytes for rows in self._writers.values())
        waited_ms = (time.monotonic() - self._began) * 1000
        return waited_ms >= self.config.commit_interval_ms or taken * share >= self.config.commit_bytes

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
        from connectors.iceberg.offsets import Mark

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
            self._writers[table] = made
        return made

    def _require_same_log(self, batch: RecordBatch) -> None:
        """Raises ConnectError where the log's records are others than those that the tables have."""
        import pyarrow.compute as pc

        assert batch.offsets is not None
        partition = _partition_of(batch)
        for table, rows in self._writers.items():
            mark = rows.known.get(partition)
            if mark is None or mark.timestamp_ms is None or batch.offsets[0].as_py() >= mark.next_offset:
                continue
            at = pc.index(batch.offsets, mark.next_offset - 1).as_py()
            stamps = batch.timestamps_ms
            same = at < 0 or stamps is None or stamps[at].as_py() == mark.timestamp_ms
            asked = self._asked.get(partition)
            if not same or (
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
            self._expire()

    def _or_go_back(self, act: Callable[[TableRows], None]) -> bool:
        """Do something with each table's rows. Where rows have to be delivered again, forget them; returns False then."""
        from connectors.iceberg.data_files import FilesIncomplete
        from connectors.iceberg.table_rows import OffsetsMoved

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
                rows.known = rows.stored()
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

    def _expire(self) -> None:
        if not self.config.snapshot_age_ms:
            return
        from connectors.iceberg.maintenance import expire_snapshots

        for name, rows in self._writers.items():
            if time.monotonic() - self._expired_at.get(name, -_EXPIRE_S) >= _EXPIRE_S:
                self._expired_at[name] = time.monotonic()
                expire_snapshots(rows.table, self.config.snapshot_age_ms)

    def flush(self) -> None:
        if self._pending:
            self._commit()

    def pre_commit(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        if self._compaction is not None:
            self._compaction.start_if_due()
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
        from connectors.iceberg.previews import described

        with closing(Tables(self.config, creates=False)) as tables:
            return described(self.config, tables, [batch for batch in batches if len(batch)])


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


class IcebergSinkConnector(SinkConnector[IcebergSinkConfig]):
    config_class = IcebergSinkConfig
    task_class = IcebergSinkTask

    @classmethod
    def check(cls, config: IcebergSinkConfig) -> Iterable[Problem]:
        """Open the catalog, and look for the tables where they are not created."""
        try:
            with closing(Tables(config, creates=False)) as tables:
                for name in config.tables:
                    if tables.load(name) is None and not config.auto_create:
                        yield Problem(
                            "iceberg.tables",
                            f"there is no table {name} in catalog {config.catalog_name}: create it, or set "
                            "iceberg.tables.auto-create-enabled=true",
                        )
        except TidegateError as error:
            yield Problem("iceberg.catalog.uri", str(error))

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        from connectors.iceberg.maintenance import change_offsets

        config = parse(cls.config_class, properties)
        changes = {
            TopicPartition(str(partition["kafka_topic"]), int(partition["kafka_partition"])): None
            if offset is None
            else int(offset["kafka_offset"])
            for partition, offset in offsets
        }
        with closing(Tables(config)) as tables:
            for name in config.tables or list(tables.names()):
                table = tables.load(name)
                if table is not None:
                    change_offsets(table, config.settings(name).branch, properties.get("name", ""), changes)
        return True
