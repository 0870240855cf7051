"""Changes of one table from the log, collected as they arrive and converted to events column by column."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import Header
from connectors import VERSION
from connectors.debezium.events import constant, struct_column
from connectors.debezium.values import zero_of
from connectors.postgres.pgoutput import HEAD
from connectors.postgres.spans import Messages, Spans
from connectors.postgres.tables import SOURCE, Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

__all__ = ["Events", "Gathered", "Transaction", "source_column"]

_I64: Final = pa.int64()
_TUPLE: Final = HEAD + 6
"""The index of the first row in a change message: after the message type, the table's oid and the row's type."""
_INSERT, _UPDATE, _DELETE, _TRUNCATE, _NEW, _KEY, _OLD = b"IUDTNKO"
_C, _U, _D, _T, _TOMBSTONE = range(5)
_OPS: Final = pa.array(["c", "u", "d", "t", None], pa.string())


class Transaction(NamedTuple):
    """``micros`` is the commit time since 1970; ``before`` is the position after the previous commit.

    ``number`` counts transactions in the order they are read.
    """

    xid: int | None
    micros: int
    before: int | None
    number: int = 0


@dataclass(slots=True)
class Events:
    """Events of one table in order, as columns; ``orders`` is the number of messages of all tables before each event."""

    ops: pa.Array
    before: pa.Array | None
    after: pa.Array | None
    keys: pa.Array | None
    lsns: Numbers
    transactions: Sequence[Transaction]
    """The transaction of each run: as many as ``runs``."""
    runs: Numbers
    """The number of events of each transaction."""
    orders: Numbers | None
    headers: list[tuple[Header, ...]] | None

    def __len__(self) -> int:
        return len(self.ops)


class Gathered:
    """Changes of one table with one shape. ``add`` takes them as received from replication."""

    __slots__ = ("_counts", "_orders", "_transactions", "messages", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.messages: list[bytes] = []
        self._transactions: list[Transaction] = []
        self._counts: list[int] = []
        self._orders: list[int] = []

    def __len__(self) -> int:
        return len(self.messages)

    def add(self, message: bytes, transaction: Transaction, order: int | None = None) -> None:
        """Add a message of type I, U, D or T, with replication's header."""
        transactions = self._transactions
        if not transactions or transactions[-1] is not transaction:
            transactions.append(transaction)
            self._counts.append(len(self.messages))
        self.messages.append(message)
        if order is not None:
            self._orders.append(order)

    def events(self, *, tombstones: bool, skipped: frozenset[str]) -> Events:
        """Raises DataError for a message that does not match the table's structure."""
        made = _Decoding(self.shape, Messages(self.messages), tombstones=tombstones, skipped=skipped)
        at = made.message
        bounds = np.searchsorted(at, [*self._counts, len(self.messages)])
        return Events(
            ops=_OPS.take(pa.array(made.ops)),
            before=made.before(),
            after=made.after(),
            keys=made.keys(),
            lsns=made.lsns(),
            transactions=self._transactions,
            runs=np.diff(bounds),
            orders=np.array(self._orders, np.int64)[at] if self._orders else None,
            headers=made.headers(),
        )


class _Decoding:
    """Decodes one run of messages.

    Each event has a message, and the index of the row of old values and of new values, or a negative number for none.
    """

    def __init__(self, shape: Shape, messages: Messages, *, tombstones: bool, skipped: frozenset[str]) -> None:
        self._shape, self._messages = shape, messages
        data, begins, ends = messages.bytes, messages.begins, messages.ends
        width = len(shape.table.columns)
        kinds = data[begins + HEAD]
        marks = data[np.minimum(begins + _TUPLE - 1, ends)]
        updates = kinds == _UPDATE
        deletes = kinds == _DELETE
        has_old = deletes | (updates & (marks != _NEW))
        has_new = updates | (kinds == _INSERT)
        old_rows, new_rows = np.flatnonzero(has_old), np.flatnonzero(has_new)
        self._old, old_ends = messages.walk(begins[old_rows] + _TUPLE, ends[old_rows], width)
        starts = begins + _TUPLE
        starts[old_rows] = old_ends + 1
        self._new, _ = messages.walk(starts[new_rows], ends[new_rows], width)
        old_at, new_at = _positions_of(old_rows, len(kinds)), _positions_of(new_rows, len(kinds))
        # if the old row is complete, it has the value of an unchanged large column
        self._whole = marks == _OLD
        both = np.flatnonzero(updates & has_old)
        if len(both):
            self._complete(new_at[both], old_at[both], self._whole[both])
        moved = both[self._key_changed(old_at[both], new_at[both])]
        plain = updates.copy()
        plain[moved] = False
        parts = [
            (np.flatnonzero(kinds == _INSERT), _C, 0),
            (np.flatnonzero(plain), _U, 0),
            (np.sort(np.concatenate((np.flatnonzero(deletes), moved))), _D, 0),
            (moved, _C, 2),
            (np.flatnonzero(kinds == _TRUNCATE), _T, 0),
        ]
        parts = [part for part in parts if "cudt"[part[1]] not in skipped]
        if tombstones and shape.layout.key is not None:
            parts += [(rows, _TOMBSTONE, 1) for rows, op, _ in parts if op == _D]
        parts = [part for part in parts if len(part[0])]
        self.message, self.ops = _merged(parts)
        self._moved, self._moved_old, self._moved_new = moved, old_at[moved], new_at[moved]
        self._is_new = (self.ops == _C) | (self.ops == _U)
        self._is_old = (self.ops == _D) | (self.ops == _TOMBSTONE)
        self._new_at = np.where(self._is_new, new_at[self.message], -1)
        self._old_at = old_at[self.message]
        self._made: dict[int, pa.Array] = {}
        """Columns of the new rows, cached because those of the key are needed twice."""

    def _complete(self, new: Numbers, old: Numbers, whole: Any) -> None:
        for index, column in enumerate(self._new):
            missing = column.unchanged
            if missing is None:
                continue
            other = np.full(len(missing), -1, np.int64)
            other[new[whole]] = old[whole]
            self._new[index] = column.instead(missing & (other >= 0), self._old[index].take(other))

    def _key_changed(self, old: Numbers, new: Numbers) -> Any:
        changed = np.zeros(len(old), np.bool_)
        if not len(old):
            return changed
        for position in self._shape.key_positions:
            at = self._shape.positions[position]
            before, other = self._old[at].take(old), self._new[at].take(new)
            same = pc.equal(self._messages.texts(before), self._messages.texts(other)).fill_null(False)
            unlike = ~same.to_numpy(zero_copy_only=False) & ~before.null
            if (kept := other.unchanged) is not None:
                unlike &= ~kept
            changed |= unlike
        return changed

    def lsns(self) -> Numbers:
        return self._messages.numbers(self._messages.begins[self.message] + 1)

    def after(self) -> pa.Array | None:
        if not self._is_new.any():
            return None
        return self._rows(self._new, self._new_at, ~self._is_new)

    def before(self) -> pa.Array | None:
        # a tombstone's value is null
        rows = (self.ops == _D) | ((self.ops == _U) & self._whole[self.message] & (self._old_at >= 0))
        if not rows.any():
            return None
        return self._rows(self._old, np.where(rows, self._old_at, -1), ~rows)

    def _rows(self, columns: Sequence[Spans], rows: Numbers, absent: Any) -> pa.Array:
        made = [self._column(columns, index, rows) for index in range(len(self._shape.forms))]
        return struct_column(self._shape.layout.row, made, absent)

    def keys(self) -> pa.Array | None:
        layout = self._shape.layout
        if layout.key is None:
            return None
        columns = []
        for index in self._shape.key_positions:
            if not self._is_old.any():
                columns.append(self._column(self._new, index, self._new_at))
                continue
            at = self._shape.positions[index]
            new, old = self._new[at].take(self._new_at), self._old[at].take(np.where(self._is_old, self._old_at, -1))
            columns.append(self._converted(index, new.instead(self._is_old, old)))
        return struct_column(layout.key, columns, ~(self._is_new | self._is_old))

    def _column(self, columns: Sequence[Spans], index: int, rows: Numbers) -> pa.Array:
        if rows is self._new_at and index in self._made:
            return self._made[index]
        spans = columns[self._shape.positions[index]]
        if len(rows) != len(spans.starts) or (len(rows) and (rows[0] != 0 or (np.diff(rows) != 1).any())):
            spans = spans.take(rows)
        made = self._converted(index, spans)
        if rows is self._new_at:
            self._made[index] = made
        return made

    def _converted(self, index: int, spans: Spans) -> pa.Array:
        form = self._shape.forms[index]
        column = form.convert(self._messages.texts(spans))
        if form.unavailable is not None and (unchanged := spans.unchanged) is not None:
            column = _replaced(column, pa.array(unchanged), form.unavailable)
        if not form.schema.optional and column.null_count:
            column = _replaced(column, column.is_null(), zero_of(form.schema))
        return column

    def headers(self) -> list[tuple[Header, ...]] | None:
        """For changed keys: the delete and its tombstone have a header with the new key, the create one with the old
        key.
        """
        if not len(self._moved) or self._shape.layout.key is None:
            return None
        made: list[tuple[Header, ...]] = [()] * len(self.message)
        old = self._key_texts(self._old, self._moved_old)
        new = self._key_texts(self._new, self._moved_new)
        which = _positions_of(self._moved, len(self._messages.begins))[self.message]
        for event in np.flatnonzero(which >= 0).tolist():
            if self.ops[event] == _C:
                made[event] = (Header("__debezium.oldkey", old[which[event]]),)
            else:
                made[event] = (Header("__debezium.newkey", new[which[event]]),)
        return made

    def _key_texts(self, columns: Sequence[Spans], rows: Numbers) -> list[bytes]:
        key = self._shape.layout.key
        assert key is not None
        cells = struct_column(key, [self._column(columns, index, rows) for index in self._shape.key_positions])
        return [
            json.dumps(cell, ensure_ascii=False, separators=(",", ":"), default=str).encode()
            for cell in cells.to_pylist()
        ]


def _positions_of(rows: Numbers, length: int) -> Numbers:
    """The index of each of ``length`` rows among those selected; -1 for the others."""
    made = np.full(length, -1, np.int64)
    made[rows] = np.arange(len(rows))
    return made


def _replaced(column: pa.Array, mask: pa.Array, value: Any) -> pa.Array:
    if pa.types.is_nested(column.type):
        cells = zip(column.to_pylist(), mask.to_pylist(), strict=True)
        return pa.array([value if hit else cell for cell, hit in cells], column.type)
    return pc.if_else(mask, pa.scalar(value, column.type), column)


def _merged(parts: Sequence[tuple[Numbers, int, int]]) -> tuple[Numbers, Any]:
    """Messages and operations of events, ordered by message and by the steps that each message consists of."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(parts) == 1:
        rows, op, _ = parts[0]
        return rows, np.full(len(rows), op)
    messages = np.concatenate([rows for rows, _, _ in parts])
    steps = np.repeat([step for _, _, step in parts], [len(rows) for rows, _, _ in parts])
    ops = np.repeat([op for _, op, _ in parts], [len(rows) for rows, _, _ in parts])
    order = np.argsort(messages * 3 + steps, kind="stable")
    return messages[order], ops[order]


def source_column(
    server: str,
    database: str,
    table: tuple[str, str],
    lsns: Numbers,
    transactions: Sequence[Transaction],
    runs: Numbers,
    snapshot: pa.Array | None = None,
    xmin: int | None = None,
) -> pa.Array:
    """The source block of events at these positions; ``runs`` is the number of events of each transaction."""
    length, text = len(lsns), pa.string()

    def spread(values: Sequence[int | None]) -> pa.Array:
        """Repeat a value per transaction for each of its events."""
        if len(values) == 1:
            return constant(values[0], _I64, length)
        if None in values:
            return pa.array(values, _I64).take(pa.array(np.repeat(np.arange(len(runs)), runs)))
        return pa.array(np.repeat(np.array(values, np.int64), runs))

    times = [t.micros for t in transactions]
    columns = [
        constant(VERSION, text, length),
        constant("postgresql", text, length),
        constant(server, text, length),
        spread([micros // 1000 for micros in times]),
        constant("false", text, length) if snapshot is None else snapshot,
        constant(database, text, length),
        _sequences(lsns, transactions, runs),
        spread(times),
        spread([micros * 1000 for micros in times]),
        constant(table[0], text, length),
        constant(table[1], text, length),
        spread([t.xid for t in transactions]),
        pa.array(lsns, _I64),
        constant(xmin, _I64, length),
        pa.nulls(length, text),
        pa.nulls(length, _I64),
    ]
    return struct_column(SOURCE, columns)


def _sequences(lsns: Numbers, transactions: Sequence[Transaction], runs: Numbers) -> pa.Array:
    """The positions of the previous commit and of the event, as JSON."""
    heads = ['[null,"' if t.before is None else f'["{t.before}","' for t in transactions]
    if len(heads) == 1 and (lsns == lsns[0]).all():
        return pa.repeat(pa.scalar(f'{heads[0]}{lsns[0]}"]'), len(lsns))
    head = heads[0] if len(heads) == 1 else pa.array(heads).take(pa.array(np.repeat(np.arange(len(runs)), runs)))
    return pc.binary_join_element_wise(head, pa.array(lsns).cast(pa.string()), '"]', "")
