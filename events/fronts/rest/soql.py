"""SELECT over rows in memory: the part of SOQL that monitoring needs.

Unsupported queries are refused, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from events.errors import BadRequest

__all__ = ["MalformedSelect", "Select", "parse_select"]

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^'\\]|\\.)*')|(?P<number>-?\d{1,18}(?:\.\d{1,18})?)|(?P<word>[A-Za-z_][\w.]*)|(?P<sign>!=|<=|>=|[=<>(),]))"
)
_UNESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class MalformedSelect(BadRequest):
    code = "MALFORMED_QUERY"


@dataclass(frozen=True, slots=True)
class Select:
    """A parsed query; ``fields`` is empty for COUNT()."""

    fields: tuple[str, ...]
    type: str
    conditions: tuple[tuple[str, str, Any], ...]
    order: tuple[tuple[str, bool], ...]
    limit: int | None

    def of(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The selected rows and fields, with the rows' spelling of names.

        Raises MalformedSelect for an unknown field.
        """
        known = {name.lower(): name for name in (rows[0] if rows else {})}

        def named(field: str) -> str:
            if rows and field.lower() not in known:
                raise MalformedSelect(f"No such column '{field}' on entity '{self.type}'")
            return known.get(field.lower(), field)

        def single(field: str, done: str) -> str:
            name = named(field)
            if any(isinstance(row[name], dict) for row in rows):
                raise MalformedSelect(f"field '{name}' can not be {done} in a query call")
            return name

        tests = [(single(field, "filtered"), _TESTS[sign], value) for field, sign, value in self.conditions]
        selected = [row for row in rows if all(test(_folded(row[field]), value) for field, test, value in tests)]
        for field, descending in reversed(self.order):
            key = itemgetter(single(field, "sorted"))
            none = [row for row in selected if key(row) is None]
            some = sorted((row for row in selected if key(row) is not None), key=key, reverse=descending)
            selected = some + none if descending else none + some  # nulls first unless descending
        names = [named(field) for field in self.fields]
        return [{name: row[name] for name in names} for row in selected[: self.limit]]


def _folded(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(mine: Any, value: Any) -> bool:
        comparable = isinstance(mine, str) == isinstance(value, str) and mine is not None and value is not None
        return comparable and compare(mine, value)

    return test


_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": lambda mine, value: bool(mine == value),
    "!=": lambda mine, value: bool(mine != value),
    "<": _ordered(lambda mine, value: mine < value),
    "<=": _ordered(lambda mine, value: mine <= value),
    ">": _ordered(lambda mine, value: mine > value),
    ">=": _ordered(lambda mine, value: mine >= value),
    "in": lambda mine, value: mine in value,
    "not in": lambda mine, value: mine not in value,
}


def parse_select(text: str) -> Select:
    """Parse ``SELECT fields FROM type [WHERE field op value [AND ...]] [ORDER BY field [ASC|DESC], ...] [LIMIT n]``.

    Operators are = != < <= > >= IN, NOT IN; values are 'text', numbers, TRUE, FALSE and NULL. Raises MalformedSelect.
    """
    return _Parser(text).select()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._at, position = 0, 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise MalformedSelect(f"unexpected token: '{text[position : position + 20].strip()}'")
            self._tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            position = match.end()

    def select(self) -> Select:
        self._expect("select")
        if self._take("count"):
            self._expect("(")
            self._expect(")")
            fields: tuple[str, ...] = ()
        else:
            fields = tuple(self._list(self._word))
        self._expect("from")
        kind = self._word()
        conditions: list[tuple[str, str, Any]] = []
        if self._take("where"):
            conditions.append(self._condition())
            while self._take("and"):
                conditions.append(self._condition())
        order: list[tuple[str, bool]] = []
        if self._take("order"):
            self._expect("by")
            order = self._list(self._ordering)
        limit = self._whole() if self._take("limit") else None
        if self._at < len(self._tokens):
            self._unexpected()
        return Select(fields, kind, tuple(conditions), tuple(order), limit)

    def _whole(self) -> int:
        text = self._of("number")
        if not text.isdigit():
            self._at -= 1
            self._unexpected()
        return int(text)

    def _condition(self) -> tuple[str, str, Any]:
        field = self._word()
        if self._take("not"):
            self._expect("in")
            return field, "not in", self._values()
        if self._take("in"):
            return field, "in", self._values()
        sign = self._of("sign")
        if sign not in _TESTS:
            self._at -= 1
            self._unexpected()
        return field, sign, self._value()

    def _values(self) -> tuple[Any, ...]:
        self._expect("(")
        values = tuple(self._list(self._value))
        self._expect(")")
        return values

    def _value(self) -> Any:
        kind, text = self._next()
        if kind == "text":
            return re.sub(r"\\(.)", lambda m: _UNESCAPED.get(m[1], m[1]), text[1:-1], flags=re.DOTALL).lower()
        if kind == "number":
            return float(text) if "." in text else int(text)
        known = {"true": True, "false": False, "null": None}
        if kind == "word" and text.lower() in known:
            return known[text.lower()]
        self._at -= 1
        return self._unexpected()

    def _ordering(self) -> tuple[str, bool]:
        field = self._word()
        if self._take("desc"):
            return field, True
        self._take("asc")
        return field, False

    def _list(self, read_item: Callable[[], Any]) -> list[Any]:
        items = [read_item()]
        while self._take(","):
            items.append(read_item())
        return items

    def _word(self) -> str:
        return self._of("word")

    def _of(self, kind: str) -> str:
        token, text = self._next()
        if token != kind:
            self._at -= 1
            self._unexpected()
        return text

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise MalformedSelect("unexpected token: '<EOF>'")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, word: str) -> bool:
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        taken = kind in ("word", "sign") and text.lower() == word
        self._at += taken
        return taken

    def _expect(self, word: str) -> None:
        if not self._take(word):
            self._unexpected()

    def _unexpected(self) -> Any:
        text = self._tokens[self._at][1] if self._at < len(self._tokens) else "<EOF>"
        raise MalformedSelect(f"unexpected token: '{text[:50]}'")
