"""Rows of two sides column by column: which are missing, which are there too often, and which columns differ."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from tidegate.records.exact_json import json_text
from tidegate.verify.states import SIDES, Difference, States

__all__ = ["RowStates"]

_HEAD: Final = struct.Struct("<II")
_MOST_TEXT: Final = 300
_NULL: Final = hash(repr(None))
_MASK: Final = (1 << 64) - 1

Columns = Mapping[str, Sequence[Any]]


class RowStates(States):
    """A state is the number of rows of a key, and a hash for each column. Equal values have equal ``repr``.

    Rows without keys are their own keys, and only their numbers count. Of the left side's columns, those that the right side
    does not have are not compared.
    """

    unlike: ClassVar[str] = (
        "s.a IS NOT s.b AND unlike(s.a, s.b) AND NOT EXISTS (SELECT 1 FROM touched t WHERE t.part = s.part "
        "AND (t.key = s.key OR t.key IS NULL))"
    )

    def __init__(self, limits: tuple[str | None, str | None] = (None, None)) -> None:
        super().__init__(limits)
        self.older = False
        """Whether the left side may have more than the right one, whose oldest records are gone."""
        self._passed_over = [0, 0]
        self._sets: list[tuple[str, ...]] = []
        self._numbers: dict[tuple[str, ...], int] = {}
        self._database.execute("CREATE TABLE touched (part TEXT, key TEXT, UNIQUE (part, key))")
        functions: list[tuple[str, Callable[..., Any]]] = [
            ("unlike", self._unlike),
            ("overlaid", self._overlaid),
            ("summed", self._summed),
        ]
        for name, function in functions:
            self._database.create_function(name, 2, function, deterministic=True)
        self._database.create_function("rows_of", 1, lambda state: _HEAD.unpack_from(state)[0], deterministic=True)

    def append(self, side: int, part: str, columns: Columns, keys: Sequence[str] = ()) -> None:
        """Add rows, of which several may have the same key."""
        self._put(side, part, self._rows(columns, keys), "summed({0}, excluded.{0})")

    def replace(self, side: int, part: str, columns: Columns, keys: Sequence[str]) -> None:
        """Set columns of the rows of these keys; the others stay."""
        self._put(side, part, self._rows(columns, keys), "overlaid({0}, excluded.{0})")

    def insert(self, side: int, part: str, columns: Columns, keys: Sequence[str]) -> None:
        """Add rows where there is none of the key."""
        self._put(side, part, self._rows(columns, keys), "coalesce({0}, excluded.{0})")

    def delete(self, side: int, part: str, columns: Columns, keys: Sequence[str]) -> None:
        self._put(side, part, ((key, None) for key in _key_texts(columns, keys)), "excluded.{0}")

    def pass_over(self, side: int, rows: int) -> None:
        """Count rows that are on both sides, without comparing them."""
        self._passed_over[side] += rows

    def count(self, side: int) -> int:
        """Keys; rows, where some were passed over."""
        if not any(self._passed_over):
            return super().count(side)
        column = SIDES[side]
        row = self._database.execute(f"SELECT sum(rows_of({column})) FROM states WHERE {column} IS NOT NULL").fetchone()
        return self._passed_over[side] + int(row[0] or 0)

    def touch(self, part: str, columns: Columns, keys: Sequence[str] = ()) -> None:
        """Leave these rows out of the comparison: what they should be is not known now."""
        texts = _key_texts(columns, keys) if keys else (key for key, _ in self._rows(columns, ()))
        self._database.executemany("INSERT OR IGNORE INTO touched VALUES (?, ?)", ((part, key) for key in texts))

    def touch_all(self, part: str) -> None:
        self._database.execute("INSERT INTO touched VALUES (?, NULL)", [part])

    def touched(self) -> int:
        """How many keys were left out that are not alike on both sides."""
        row = self._database.execute(
            "SELECT count(*) FROM states s WHERE s.a IS NOT s.b AND unlike(s.a, s.b) AND EXISTS "
            "(SELECT 1 FROM touched t WHERE t.part = s.part AND (t.key = s.key OR t.key IS NULL))"
        ).fetchone()
        return int(row[0])

    def _rows(self, columns: Columns, keys: Sequence[str]) -> Iterable[tuple[str, bytes]]:
        if not keys:
            once = _HEAD.pack(1, self._number(()))
            return ((_shortened(text), once) for text in _row_texts(columns))
        names = tuple(sorted(name for name in columns if name not in keys))
        head, pack = _HEAD.pack(1, self._number(names)), struct.Struct(f"<{len(names)}q").pack
        hashes = [[_hashed(value) for value in columns[name]] for name in names]
        texts = _key_texts(columns, keys)
        if not hashes:
            return ((text, head) for text in texts)
        return ((text, head + pack(*cells)) for text, cells in zip(texts, zip(*hashes, strict=True), strict=True))

    def _number(self, names: tuple[str, ...]) -> int:
        if names not in self._numbers:
            self._numbers[names] = len(self._sets)
            self._sets.append(names)
        return self._numbers[names]

    def _cells(self, state: bytes) -> tuple[int, dict[str, int]]:
        count, number = _HEAD.unpack_from(state)
        names = self._sets[number]
        return count, dict(zip(names, struct.unpack_from(f"<{len(names)}q", state, _HEAD.size), strict=True))

    def _state(self, count: int, cells: Mapping[str, int]) -> bytes:
        names = tuple(sorted(cells))
        return _HEAD.pack(count, self._number(names)) + struct.pack(f"<{len(names)}q", *(cells[name] for name in names))

    def _overlaid(self, old: bytes | None, new: bytes) -> bytes:
        if old is None or old[4 : _HEAD.size] == new[4 : _HEAD.size]:
            return new
        return self._state(1, self._cells(old)[1] | self._cells(new)[1])

    def _summed(self, old: bytes | None, new: bytes) -> bytes:
        if old is None:
            return new
        (count, cells), (more, others) = self._cells(old), self._cells(new)
        return self._state(
            count + more,
            {name: _signed(cells.get(name, _NULL) + others.get(name, _NULL)) for name in cells.keys() | others.keys()},
        )

    def _unlike(self, left: bytes | None, right: bytes | None) -> bool:
        if right is None:
            return not self.older
        if left is None:
            return True
        (count, cells), (other, others) = self._cells(left), self._cells(right)
        if count != other:
            return not (self.older and count > other)
        return any(cells.get(name, _NULL) != value for name, value in others.items())

    def _difference(self, part: str, key: str, left: bytes | None, right: bytes | None) -> Difference:
        if left is None or right is None:
            return super()._difference(part, key, left, right)
        (count, cells), (other, others) = self._cells(left), self._cells(right)
        if count != other:
            return Difference(part, key, "count", counts=(count, other))
        names = sorted(name for name, value in others.items() if cells.get(name, _NULL) != value)
        return Difference(part, key, "value", columns=tuple(names))


def _signed(number: int) -> int:
    number &= _MASK
    return number - (1 << 64) if number >> 63 else number


def _key_texts(columns: Columns, keys: Sequence[str]) -> Iterable[str]:
    named = [columns[name] for name in keys]
    return (_text(dict(zip(keys, values, strict=True))) for values in zip(*named, strict=True))


def _row_texts(columns: Columns) -> Iterable[str]:
    """Without nulls: a column may have been added since."""
    for cells in zip(*columns.values(), strict=True):
        yield _text({name: cell for name, cell in zip(columns, cells, strict=True) if cell is not None})


def _text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_shown, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        return json_text(value, constants=True)


def _hashed(value: Any) -> int:
    try:
        return hash(repr(value))
    except RecursionError:
        return hash(json_text(value, constants=True))


def _shown(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}... {hash(text) & _MASK:016x}"
