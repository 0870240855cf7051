"""Filter expressions of channel members: they select the events of a platform event for a custom channel.

The language is Salesforce's filter expression format, a part of SOQL's WHERE: comparisons ``= != > < >= <= LIKE IN NOT
IN`` joined by AND or by OR (both only with parentheses), text in single quotes, compared case-insensitively. As in
SOQL, ``!=`` and ``NOT IN`` are true for a field without a value, and an empty text is no value. A filter is evaluated
for all events of a batch at once, over Arrow columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from events.errors import InvalidMetadata
from events.model.definitions import FieldType

if TYPE_CHECKING:
    import pyarrow as pa
    from lark import Lark, Token

__all__ = ["MAX_LENGTH", "Filter", "Filterable", "InvalidFilter"]

MAX_LENGTH: Final = 131_072
_MAX_DEPTH: Final = 50

_GRAMMAR: Final = r"""
?start: expression
?expression: term | all_of | any_of
all_of: term (_AND term)+
any_of: term (_OR term)+
?term: "(" expression ")" | comparison
comparison: NAME OPERATOR value
          | NAME LIKE value -> comparison
          | NAME IN list -> within
          | NAME NOT IN list -> not_within
list: "(" value ("," value)* ")"
value: STRING | DATE_TIME | DATE | NUMBER | TRUE | FALSE | NULL

_AND.2: /AND\b/i
_OR.2: /OR\b/i
NOT.2: /NOT\b/i
IN.2: /IN\b/i
LIKE.2: /LIKE\b/i
TRUE.2: /TRUE\b/i
FALSE.2: /FALSE\b/i
NULL.2: /NULL\b/i
NAME: /[A-Za-z]\w*(?:\.\w+)*/
OPERATOR: "!=" | "<>" | ">=" | "<=" | "=" | ">" | "<"
STRING: /'(?:[^'\\]|\\.)*'/s
DATE_TIME.3: /\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:?\d\d)/
DATE.2: /\d{4}-\d\d-\d\d/
NUMBER: /[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?/
%ignore /\s+/
"""

_WORDS: Final = {
    "NAME": "a field", "OPERATOR": "an operator", "LIKE": "LIKE", "IN": "IN", "NOT": "NOT IN", "STRING": "a text in quotes",
    "DATE": "a date", "DATE_TIME": "a time", "NUMBER": "a number", "TRUE": "true", "FALSE": "false", "NULL": "null",
    "LPAR": "(", "RPAR": ")", "COMMA": ",", "_AND": "AND", "_OR": "OR", "$END": "the end",
}  # fmt: skip
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ORDERED: Final = {
    "=": "equal",
    "!=": "not_equal",
    "<>": "not_equal",
    ">": "greater",
    "<": "less",
    ">=": "greater_equal",
    "<=": "less_equal",
}


class InvalidFilter(InvalidMetadata):
    """The expression is malformed, or does not fit the event's fields."""

    def __init__(self, message: str) -> None:
        super().__init__(f"filterExpression: {message}", fields=("filterExpression",))


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    kind: FieldType


class Filterable(Protocol):
    """A kind of event; ``columns`` maps comparable names to the types that literals must have."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> Mapping[str, FieldType]: ...


Mask = Callable[["Mapping[str, pa.Array]", int], "pa.BooleanArray"]


class Filter:
    """An expression parsed for one event. Immutable and thread-safe."""

    def __init__(self, text: str, definition: Filterable) -> None:
        """Raises InvalidFilter with the position in the text and what was expected there."""
        from lark import Token
        from lark.exceptions import UnexpectedCharacters, UnexpectedInput

        if len(text) > MAX_LENGTH:
            raise InvalidFilter(f"it has {len(text)} characters; at most {MAX_LENGTH} are read")
        if _depth(text) > _MAX_DEPTH:
            raise InvalidFilter(f"parentheses are nested deeper than {_MAX_DEPTH}")
        self.text = text
        try:
            tree = _parser().parse(text)
        except UnexpectedInput as error:
            expected = error.allowed if isinstance(error, UnexpectedCharacters) else getattr(error, "expected", set())
            failed_token = getattr(error, "token", None)
            shown = (
                repr(str(failed_token)[:30])
                if isinstance(failed_token, Token) and failed_token.type != "$END"
                else repr(_at(text, error.pos_in_stream))
            )
            words = ", ".join(sorted({_WORDS.get(name, name) for name in expected or ()}))
            raise InvalidFilter(f"line {error.line} column {error.column}: {shown} where {words} may stand") from error
        columns = {name.lower(): _Column(name, kind) for name, kind in definition.columns.items()}
        named = {str(token).lower() for token in tree.scan_values(_is_name)}
        self.fields = frozenset(column.name for name, column in columns.items() if name in named)
        """The compared columns."""
        self._mask = _compile(tree, columns, definition.name)

    def mask(self, rows: pa.StructArray) -> pa.BooleanArray:
        """Whether each decoded event passes; never null. A field that the rows lack has no value."""
        return self._mask({field.name: rows.field(index) for index, field in enumerate(rows.type)}, len(rows))


@cache
def _parser() -> Lark:
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr", propagate_positions=False)


def _is_name(token: Any) -> bool:
    return bool(token.type == "NAME")


def _depth(text: str) -> int:
    depth = deepest = 0
    # An unterminated text extends to the end: searching the end of each separately would be quadratic.
    for mark in re.findall(r"'(?:[^'\\]|\\.)*+'?|[()]", text, re.DOTALL):
        depth += {"(": 1, ")": -1}.get(mark, 0)
        deepest = max(deepest, depth)
    return deepest


def _at(text: str, position: int | None) -> str:
    return "the end" if position is None or position >= len(text) else text[position : position + 10]


def _compile(tree: Any, columns: Mapping[str, _Column], event: str) -> Mask:
    import pyarrow.compute as pc

    if tree.data in ("all_of", "any_of"):
        parts = [_compile(part, columns, event) for part in tree.children]
        join = pc.and_ if tree.data == "all_of" else pc.or_

        def joined(batch: Mapping[str, pa.Array], length: int) -> pa.BooleanArray:
            made = parts[0](batch, length)
            for part in parts[1:]:
                made = join(made, part(batch, length))
            return made

        return joined
    name = str(tree.children[0])
    column = columns.get(name.lower())
    if column is None:
        raise InvalidFilter(f"{event} has no field {name[:100]}; it has {', '.join(c.name for c in columns.values())}")
    if tree.data in ("within", "not_within"):
        values = [_value(column, item) for item in tree.children[-1].children]
        if column.kind is FieldType.CHECKBOX:
            raise InvalidFilter(f"{column.name} is a checkbox, which only = and != compare")
        return _within(column, values, negated=tree.data == "not_within")
    operator, value = str(tree.children[1]).upper(), _value(column, tree.children[2])
    if operator == "LIKE":
        if column.kind not in (FieldType.TEXT, FieldType.LONG_TEXT_AREA) or not isinstance(value, str):
            raise InvalidFilter(f"{column.name} LIKE: only text is compared with a pattern, which stands in quotes")
        return _like(column, str(tree.children[2].children[0]))
    if column.kind is FieldType.CHECKBOX and _ORDERED[operator] not in ("equal", "not_equal"):
        raise InvalidFilter(f"{column.name} is a checkbox, which only = and != compare")
    if value is None and _ORDERED[operator] not in ("equal", "not_equal"):
        raise InvalidFilter(f"{column.name} {operator} null: only = and != compare with null")
    return _compared(column, _ORDERED[operator], value)


def _value(column: _Column, tree: Any) -> Any:
    """The literal in the column's form: text in lower case, instants and dates in milliseconds."""
    token: Token = tree.children[0]
    kind, text = token.type, str(token)
    if kind == "NULL":
        return None
    column_kind = column.kind
    try:
        if kind == "STRING" and column_kind in (FieldType.TEXT, FieldType.LONG_TEXT_AREA):
            return _unquoted(text).lower() or None
        if kind == "NUMBER" and column_kind is FieldType.NUMBER:
            return float(text)
        if kind in ("TRUE", "FALSE") and column_kind is FieldType.CHECKBOX:
            return kind == "TRUE"
        if kind == "DATE" and column_kind is FieldType.DATE:
            return (date.fromisoformat(text) - _EPOCH.date()).days * 86_400_000
        if kind == "DATE_TIME" and column_kind is FieldType.DATE_TIME:
            moment = datetime.fromisoformat(text.upper())
            delta = moment - _EPOCH
            return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000
    except (ValueError, OverflowError):
        raise InvalidFilter(f"{text} is no {'date' if kind == 'DATE' else 'time'} that exists") from None
    raise InvalidFilter(
        f"{column.name} is a {column_kind.value} and cannot be compared with {text[:50]}; {_FORMS[column_kind]}"
    )


_FORMS: Final = {
    FieldType.TEXT: "write 'text'",
    FieldType.LONG_TEXT_AREA: "write 'text'",
    FieldType.NUMBER: "write 12.5",
    FieldType.CHECKBOX: "write true or false",
    FieldType.DATE: "write 2026-01-31",
    FieldType.DATE_TIME: "write 2026-01-31T12:00:00Z",
}


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1], flags=re.DOTALL)


def _pattern(text: str) -> str:
    """A LIKE pattern as a regular expression: % and _ are wildcards unless escaped by a backslash."""
    made, position, inner = [], 0, text[1:-1]
    while position < len(inner):
        mark = inner[position]
        if mark == "\\":
            position += 1
            mark = inner[position]
            made.append(_literal(_ESCAPES.get(mark, mark)))
        else:
            made.append({"%": ".*", "_": "."}.get(mark) or _literal(mark))
        position += 1
    return "(?is)^" + "".join(made) + r"\z"


def _literal(mark: str) -> str:
    return mark if mark.isalnum() else re.escape(mark)


def _column(batch: Mapping[str, pa.Array], column: _Column, length: int) -> pa.Array:
    """The column in the form of literals; a value that can't be converted counts as no value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column_ = batch.get(column.name)
    if column.kind in (FieldType.TEXT, FieldType.LONG_TEXT_AREA):
        if column_ is None:
            return pa.nulls(length, pa.string())
        lowered = pc.utf8_lower(column_.cast(pa.string()))
        return pc.if_else(pc.equal(lowered, ""), pa.scalar(None, pa.string()), lowered)
    target = {FieldType.NUMBER: pa.float64(), FieldType.CHECKBOX: pa.bool_()}.get(column.kind, pa.int64())
    if column_ is None:
        return pa.nulls(length, target)
    if pa.types.is_temporal(column_.type):
        column_ = column_.cast(pa.timestamp("ms"), safe=False)
    return column_.cast(target, safe=False)


def _compared(column: _Column, name: str, value: Any) -> Mask:
    import pyarrow.compute as pc

    def mask(batch: Mapping[str, pa.Array], length: int) -> pa.BooleanArray:
        values = _column(batch, column, length)
        if value is None:
            return pc.is_null(values) if name == "equal" else pc.is_valid(values)
        return pc.fill_null(getattr(pc, name)(values, value), name == "not_equal")

    return mask


def _like(column: _Column, text: str) -> Mask:
    import pyarrow.compute as pc

    pattern = _pattern(text)

    def mask(batch: Mapping[str, pa.Array], length: int) -> pa.BooleanArray:
        return pc.fill_null(pc.match_substring_regex(_column(batch, column, length), pattern), False)

    try:
        mask({}, 1)  # refuse a pattern that is too large for RE2 now, not with the first event
    except ValueError as error:
        raise InvalidFilter(f"the pattern {text[:50]} cannot be used: {error}") from error
    return mask


def _within(column: _Column, values: list[Any], *, negated: bool) -> Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = {FieldType.TEXT: pa.string(), FieldType.LONG_TEXT_AREA: pa.string(), FieldType.NUMBER: pa.float64()}
    known = pa.array(values, kinds.get(column.kind, pa.int64()))

    def mask(batch: Mapping[str, pa.Array], length: int) -> pa.BooleanArray:
        matches = pc.is_in(_column(batch, column, length), value_set=known)
        return pc.invert(matches) if negated else matches

    return mask
