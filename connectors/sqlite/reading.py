"""Reads changes from the log and rows from tables, in pieces limited in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from connectors.sqlite.batches import LogRow
from connectors.sqlite.connections import quoted
from connectors.sqlite.tables import Shape
from connectors.sqlite.triggers import REPLACED, columns_of_log

__all__ = ["BATCH_BYTES", "changes", "pieces", "select"]

BATCH_BYTES: Final = 4 * 1024 * 1024
_STEP: Final = 64
"""The number of rows after which their size is checked."""


def _size(rows: Sequence[Sequence[Any]]) -> int:
    """The approximate size of rows in bytes."""
    cells = sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))
    return cells + 8 * len(rows) * len(rows[0])


def pieces(cursor: sqlite3.Cursor, rows: int) -> Iterator[list[Any]]:
    """A cursor's rows, in pieces of at most this many rows and about ``BATCH_BYTES``."""
    piece: list[Any] = []
    size = 0
    while fetched_rows := cursor.fetchmany(_STEP):
        piece += fetched_rows
        size += _size(fetched_rows)
        if size >= BATCH_BYTES or len(piece) + _STEP > rows:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def select(shape: Shape, chosen: str = "") -> str:
    """Selects the captured columns of a table: of all rows, or of those that another SELECT returns."""
    names = ", ".join(quoted(column.name) for column in shape.table.columns)
    return f"SELECT {names} FROM {f'({chosen})' if chosen else quoted(shape.table.name)}"


def changes(
    connection: sqlite3.Connection, log: str, shapes: Mapping[int, Shape], after: int, rows: int
) -> tuple[list[tuple[Shape, list[LogRow]]], int]:
    """Changes after a position, by shape and in order within each, and the position of the last one. Call it in a
    transaction.

    Changes with shapes that are not in ``shapes`` (of tables that are no longer captured) are skipped.
    """
    heads = connection.execute(
        f"SELECT shape, max(seq) FROM (SELECT shape, seq FROM {quoted(log)} WHERE seq > ? AND op <> '{REPLACED}' "
        "ORDER BY seq LIMIT ?) GROUP BY shape",
        [after, rows],
    ).fetchall()
    if not heads:
        return [], after
    until = max(last for _, last in heads)
    changes_: list[tuple[Shape, list[LogRow]]] = []
    for number, _ in heads:
        if number not in shapes:
            continue
        width = len(shapes[number].table.columns)
        columns = ", ".join(["seq", "op", "at", *columns_of_log("o", width), *columns_of_log("n", width)])
        cursor = connection.execute(
            f"SELECT {columns} FROM {quoted(log)} WHERE seq > ? AND seq <= ? AND shape = ? AND op <> '{REPLACED}' ORDER BY seq",
            [after, until, number],
        )
        piece = next(pieces(cursor, rows + _STEP), [])
        if cursor.fetchone() is not None:
            until = piece[-1][0]
        cursor.close()
        changes_.append((shapes[number], piece))
    # if a shape was cut short, later changes of other shapes wait for the next call
    kept = [(shape, [row for row in piece if row[0] <= until]) for shape, piece in changes_]
    return [(shape, piece) for shape, piece in kept if piece], until
