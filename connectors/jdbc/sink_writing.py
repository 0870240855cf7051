"""Runs one ``put`` as one transaction: prepares tables, applies changes, finds and reports bad rows, stores offsets,
commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from connect.api import (
    ConnectError,
    DataError,
    Record,
    RecordBatch,
    TopicPartition,
)
from connectors.jdbc.sink_offsets import NOTHING, StoredOffsets
from connectors.jdbc.sink_rows import Part, RowShaper
from connectors.jdbc.sink_settings import SinkSettings
from connectors.jdbc.writers.writer import Change, Conflict, RowsRefused, TargetColumn, Writer
from connectors.sql.write_types import ColumnSpec
from connectors.tables.offsets import Mark, Offsets

__all__ = ["described", "write"]

_SAVEPOINT: Final = "tidegate_part"
_ROW_MASK: Final = (1 << 32) - 1


def write(
    writer: Writer,
    shaper: RowShaper,
    settings: SinkSettings,
    batches: Sequence[RecordBatch],
    offsets: StoredOffsets | None,
    report: Callable[[Record, Exception], None],
    log_end: Callable[[TopicPartition], int],
) -> None:
    """Raises RetriableConnectError where all of it may be retried.

    Then nothing was written, or, with ``offsets``, the database shows how far it was written. ``log_end`` is asked for the
    end of a partition that may have been made anew.
    """
    ends = _ends_of(batches)
    if offsets is not None:
        offsets.recognize(batches, log_end)
        batches = _not_written(batches, offsets)
        ends = {
            partition: end
            for partition, end in ends.items()
            if end.next_offset > offsets.marks.get(partition, NOTHING).next_offset
        }
        if not ends:
            return
    bad: dict[int, Exception] = {}
    while True:
        parts = shaper.parts(batches, list(bad))
        refused = dict(shaper.refused)
        changes = [(part, _change(writer, part, settings)) for part in parts]
        if not writer.dialect.transactional_ddl:
            writer.commit()  # DDL has committed the transaction anyway
        if offsets is not None:
            offsets.advance(writer, ends)
        try:
            for part, change in changes:
                _apply(writer, part, change)
        except RowsRefused:
            writer.rollback()
            bad_rows = _bad_rows(writer, changes, settings, offsets, ends)
            if not bad_rows:
                raise Conflict("rows that were refused together were taken one by one") from None
            bad |= bad_rows
            continue
        break
    for number, error in sorted({**bad, **refused}.items()):
        batch = batches[number >> 32].slice(number & _ROW_MASK, 1)
        report(next(batch.records()), error)
    writer.commit()
    if offsets is not None:
        offsets.marks.update(ends)


def _apply(writer: Writer, part: Part, change: Change | None) -> None:
    if change is not None:
        writer.apply(change)
    elif part.operation == "truncate":
        writer.run(writer.dialect.truncate(part.table))


def _change(writer: Writer, part: Part, settings: SinkSettings) -> Change | None:
    """The change to apply, after its table was prepared; None where there are no rows to change."""
    if part.operation == "truncate":
        return None
    known = writer.columns(part.table)
    if known is None and part.operation == "delete" and settings.auto_create:
        return None  # the first record with a value creates the table; before that there is nothing to delete
    statements = _ddl(writer, part, settings, known)
    for statement in statements:
        writer.define(statement, part.table, known)
    columns = _matched(part, (writer.columns(part.table) if statements else known) or [], settings)
    return Change(part.operation, part.table, part.keys, part.rest, part.rows, columns)


def _matched(part: Part, known: Sequence[TargetColumn], settings: SinkSettings) -> dict[str, TargetColumn]:
    exact = {column.name: column for column in known}
    if settings.quoting:
        return {spec.name: exact[spec.name] for spec in part.specs if spec.name in exact}
    folded = {column.name.casefold(): column for column in known}
    by_spec = {spec.name: exact.get(spec.name) or folded.get(spec.name.casefold()) for spec in part.specs}
    return {name: column for name, column in by_spec.items() if column is not None}


def _ddl(writer: Writer, part: Part, settings: SinkSettings, known: list[TargetColumn] | None) -> list[str]:
    """The DDL statements needed before the rows fit; raises ConnectError where they are not allowed."""
    dialect = writer.dialect
    if known is None:
        if not settings.auto_create:
            how = "schema.evolution=basic" if settings.debezium else "auto.create=true"
            raise ConnectError(
                f"Table {dialect.table(part.table)} is missing in {writer.database}: create it, or set {how}"
            )
        return [dialect.create(part.table, part.specs)]
    there = _matched(part, known, settings)
    missing = [spec for spec in part.specs if spec.name not in there]
    if not missing:
        return []
    names = ", ".join(spec.name for spec in missing)
    if not settings.auto_evolve or part.operation == "delete":
        how = "schema.evolution=basic" if settings.debezium else "auto.evolve=true"
        raise ConnectError(
            f"Table {dialect.table(part.table)} has no column {names}: add it, leave the field out, or set {how}"
        )
    required = [spec.name for spec in missing if not _may_be_added(spec)]
    if required:
        raise ConnectError(
            f"Cannot ALTER {dialect.table(part.table)} to add missing field {', '.join(required)}, as it is not optional and "
            "does not have a default value: add the column yourself"
        )
    return dialect.alter(part.table, missing)


def _may_be_added(spec: ColumnSpec) -> bool:
    return (spec.optional or spec.default is not None) and not spec.key


def _bad_rows(
    writer: Writer,
    changes: Iterable[tuple[Part, Change | None]],
    settings: SinkSettings,
    offsets: StoredOffsets | None,
    ends: Offsets,
) -> dict[int, Exception]:
    """The rows that the database rejects after all earlier ones were applied; found by bisection.

    Nothing remains written.
    """
    bad: dict[int, Exception] = {}
    taken: list[tuple[Part, Change | None]] = []
    savepoints = writer.dialect.savepoints
    if offsets is not None:
        offsets.advance(writer, ends)  # no other task writes rows of these partitions meanwhile

    def tried(part: Part, change: Change | None) -> RowsRefused | None:
        try:
            if savepoints:
                writer.run(f"SAVEPOINT {_SAVEPOINT}")
            _apply(writer, part, change)
            taken.append((part, change))
            return None
        except RowsRefused as error:
            if savepoints:
                writer.run(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
                return error
            writer.rollback()
            for before in taken:
                if before[1] is not None:
                    _change(writer, before[0], settings)  # the rollback also undid its DDL
                _apply(writer, *before)
            return error

    for whole, complete in changes:
        if complete is not None:
            _change(writer, whole, settings)
        waiting = [(0, len(whole.rows))]
        while waiting:
            start, length = waiting.pop()
            some = complete.slice(start, length) if complete is not None else None
            error = tried(whole, some)
            if error is None:
                continue
            if length == 1:
                bad[whole.ids[start].as_py()] = DataError(str(error))
            else:
                half = length // 2
                waiting += [(start + half, length - half), (start, half)]
    writer.rollback()
    return bad


def _ends_of(batches: Sequence[RecordBatch]) -> dict[TopicPartition, Mark]:
    """Each partition's end after its last row."""
    ends: dict[TopicPartition, Mark] = {}
    for batch in batches:
        assert batch.origin is not None and batch.offsets is not None
        partition = TopicPartition(batch.origin.topic, batch.origin.partition)
        stamp = None if batch.timestamps_ms is None else batch.timestamps_ms[-1].as_py()
        end = Mark(batch.offsets[-1].as_py() + 1, stamp)
        if partition not in ends or ends[partition].next_offset < end.next_offset:
            ends[partition] = end
    return ends


def _not_written(batches: Sequence[RecordBatch], offsets: StoredOffsets) -> list[RecordBatch]:
    """The rows whose offsets are not yet stored in the database."""
    import pyarrow.compute as pc

    kept = []
    for batch in batches:
        assert batch.origin is not None and batch.offsets is not None
        start = offsets.marks.get(TopicPartition(batch.origin.topic, batch.origin.partition), NOTHING).next_offset
        if batch.offsets[0].as_py() < start:
            batch = batch.filter(pc.greater_equal(batch.offsets, start))
        if len(batch):
            kept.append(batch)
    return kept


def described(writer: Writer, shaper: RowShaper, settings: SinkSettings, batches: Sequence[RecordBatch]) -> list[str]:
    """The statements that ``write`` would run, one per line; reads the database but changes nothing."""
    descriptions: list[str] = []
    made: set[tuple[object, tuple[ColumnSpec, ...]]] = set()
    for part in shaper.parts(batches):
        dialect = writer.dialect
        if part.operation == "truncate":
            descriptions.append(dialect.truncate(part.table))
            continue
        known = writer.columns(part.table)
        if (part.table, part.specs) not in made and not (known is None and part.operation == "delete"):
            descriptions += [statement.replace("\n", " ") for statement in _ddl(writer, part, settings, known)]
            made.add((part.table, part.specs))
        statement = dialect.statement(part.operation, part.table, part.keys, part.rest)
        descriptions.append(f"{statement.sql}  -- {len(part.rows)} rows")
    descriptions += [f"refused: {error}" for error in dict.fromkeys(str(each) for each in shaper.refused.values())]
    writer.rollback()
    return descriptions
