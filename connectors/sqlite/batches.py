"""Converts rows of the change log and of tables to batches of events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError, Header, RecordBatch
from connectors import VERSION
from connectors.debezium.events import ContextHeaders, Rows, constant, event_batch, struct_column
from connectors.sqlite.config import SqliteConfig
from connectors.sqlite.tables import SCHEMA, SOURCE, Shape
from connectors.sqlite.types import Form

__all__ = ["Events", "LogRow"]

LogRow = tuple[Any, ...]
"""``(seq, op, at, *old values, *new values)``."""
_I64: Final = pa.int64()
_OPS: Final = {"s": "u"}
"""Rows that are repeated because of new columns count as updates."""


class Events:
    """Builds batches for one connector."""

    def __init__(self, config: SqliteConfig, database: str, headers: ContextHeaders) -> None:
        self._server, self._database, self._headers = config.prefix, database, headers
        self._log = config.log
        self._skipped = frozenset(config.skipped)
        self._tombstones = config.tombstones

    def of_changes(self, shape: Shape, rows: Sequence[LogRow], position: Mapping[str, Any]) -> RecordBatch | None:
        """The events for some changes with one shape, in order; None where all of their operations are skipped.

        Raises DataError that names the first change with a value that the schema does not have.
        """
        try:
            return self._of_changes(shape, rows, position)
        except DataError as error:
            if len(rows) == 1:
                number = rows[0][0]
                raise DataError(
                    f"{error}. The value is in the change log, where {number} is the change's seq in {self._log}: correct it there, "
                    f"or leave the change out by DELETE FROM {self._log} WHERE seq = {number}"
                ) from error
            for row in rows:
                self.of_changes(shape, [row], position)
            raise

    def _of_changes(self, shape: Shape, rows: Sequence[LogRow], position: Mapping[str, Any]) -> RecordBatch | None:
        width = len(shape.forms)
        seqs, ops, times, *cells = zip(*rows, strict=True)
        old, new = cells[:width], cells[width:]
        plan = self._plan(shape, ops, old, new)
        if not plan:
            return None
        at, out, from_old, from_new, headers = zip(*plan, strict=True)
        before = self._side(shape, old, at, from_old)
        after = self._side(shape, new, at, from_new)
        keys = self._keys(shape, before, after, len(plan))
        marks = ["incremental" if ops[i] == "r" else "false" for i in at]
        source = self._source(shape, pa.array(marks), pa.array(times, _I64).take(pa.array(at)), [seqs[i] for i in at])
        made = Rows(pa.array(out, pa.string()), before, after, keys, source, headers=headers if any(headers) else None)
        return event_batch(shape.layout, made, self._headers, **position)

    def _plan(
        self, shape: Shape, ops: Sequence[str], old: Sequence[Sequence[Any]], new: Sequence[Sequence[Any]]
    ) -> list[tuple[int, str | None, bool, bool, tuple[Header, ...]]]:
        """For each event: the row, the op (None: a tombstone), whether it has a before and an after state, its headers."""
        plan: list[tuple[int, str | None, bool, bool, tuple[Header, ...]]] = []
        keyed = bool(shape.key_positions)
        skipped = self._skipped

        def delete(i: int, *headers: Header) -> None:
            if "d" not in skipped:
                plan.append((i, "d", True, False, headers))
                if keyed and self._tombstones:
                    plan.append((i, None, True, False, headers))

        for i, op in enumerate(ops):
            if op == "d":
                delete(i)
            elif op == "u" and keyed and any(old[k][i] != new[k][i] for k in shape.key_positions):
                delete(i, Header("__debezium.newkey", self._key_text(shape, new, i)))
                if "c" not in skipped:
                    plan.append((i, "c", False, True, (Header("__debezium.oldkey", self._key_text(shape, old, i)),)))
            elif (out := _OPS.get(op, op)) not in skipped:
                plan.append((i, out, op == "u", op != "t", ()))
        return plan

    @staticmethod
    def _key_text(shape: Shape, columns: Sequence[Sequence[Any]], i: int) -> bytes:
        assert shape.layout.key is not None
        values = {
            field.name: column_of(shape, at, [columns[at][i]]).to_pylist()[0]
            for field, at in zip(shape.layout.key.fields, shape.key_positions, strict=True)
        }
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=str).encode()

    @staticmethod
    def _side(shape: Shape, cells: Sequence[Sequence[Any]], at: Sequence[int], has: Sequence[bool]) -> pa.Array | None:
        """The rows before or after the events; null for events that have none."""
        if not any(has):
            return None
        positions = [i for i, there in zip(at, has, strict=True) if there]
        columns = [column_of(shape, k, [values[i] for i in positions]) for k, values in enumerate(cells)]
        if all(has):
            return struct_column(shape.layout.row, columns)
        numbers = np.cumsum(has) - 1
        absent = ~np.array(has)
        taken = pa.array(numbers, _I64, mask=absent)
        return struct_column(shape.layout.row, [column.take(taken) for column in columns], absent)

    @staticmethod
    def _keys(shape: Shape, before: pa.Array | None, after: pa.Array | None, length: int) -> pa.Array | None:
        if shape.layout.key is None:
            return None
        sides = [side for side in (after, before) if side is not None]
        if not sides:
            return pa.nulls(length, shape.layout.key.arrow_type)
        columns = [
            pc.coalesce(*(pc.struct_field(side, [at]) for side in sides)) if len(sides) > 1 else sides[0].field(at)
            for at in shape.key_positions
        ]
        absent = np.logical_and.reduce([side.is_null().to_numpy(zero_copy_only=False) for side in sides])
        return struct_column(shape.layout.key, columns, absent)

    def of_rows(
        self, shape: Shape, rows: Sequence[Sequence[Any]], marks: pa.Array, millis: int, position: Mapping[str, Any]
    ) -> RecordBatch:
        """The events for rows read from the table; ``marks`` is the source block's ``snapshot``.

        Raises DataError for a value that the schema does not have.
        """
        try:
            columns = [column_of(shape, k, values) for k, values in enumerate(zip(*rows, strict=True))]
        except DataError as error:
            raise DataError(f"{error}; mend the value, or leave the column out by column.exclude.list") from error
        after = struct_column(shape.layout.row, columns)
        keys = self._keys(shape, None, after, len(rows))
        source = self._source(shape, marks, constant(millis, _I64, len(rows)), [None] * len(rows))
        return event_batch(
            shape.layout,
            Rows(constant("r", pa.string(), len(rows)), None, after, keys, source),
            self._headers,
            **position,
        )

    def _source(self, shape: Shape, marks: pa.Array, millis: pa.Array, changes: Sequence[int | None]) -> pa.Array:
        length, text = len(marks), pa.string()
        micros = pc.multiply(millis, 1000)
        columns = [
            constant(VERSION, text, length),
            constant("sqlite", text, length),
            constant(self._server, text, length),
            millis,
            marks,
            constant(self._database, text, length),
            pa.nulls(length, text),
            micros,
            pc.multiply(micros, 1000),
            constant(SCHEMA, text, length),
            constant(shape.table.name, text, length),
            pa.array(changes, _I64),
        ]
        return struct_column(SOURCE, columns)


def column_of(shape: Shape, at: int, values: Sequence[Any]) -> pa.Array:
    """Raises DataError that names the column."""
    form: Form = shape.forms[at]
    column = shape.table.columns[at]
    try:
        made = form.convert(values)
    except (DataError, pa.ArrowInvalid, ArithmeticError) as error:
        raise DataError(
            f"column {column.name!r} of table {shape.table.full_name}, declared {column.declared or 'without a type'}: "
            f"{error}"
        ) from error
    return made
