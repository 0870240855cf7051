"""Parses texts as values, as Kafka Connect reads headers; ``value_texts`` does the reverse.

Source: the class documentation and behaviour of ``org.apache.kafka.connect.data.Values`` (Kafka 4.3). Dates are in UTC;
Kafka Connect uses its machine's time zone.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from typing import Any, Final, NamedTuple

from connect.data.errors import DataError
from connect.data.java.calendar import MS_PER_DAY
from connect.data.java.date_format import date_format
from connect.data.java.numbers import narrowed, single
from connect.data.java.value_texts import to_text
from connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType

__all__ = ["SchemaAndValue", "parse_string"]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = dt.date(1970, 1, 1)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,10})?")
_DELIMITERS: Final = frozenset(':,{}[]"')
_INTEGERS: Final = (
    (SchemaType.INT8, 8),
    (SchemaType.INT16, 16),
    (SchemaType.INT32, 32),
    (SchemaType.INT64, 64),
)
_ORDER: Final = (
    SchemaType.INT8,
    SchemaType.INT16,
    SchemaType.INT32,
    SchemaType.INT64,
    SchemaType.FLOAT32,
    SchemaType.FLOAT64,
)
_TEMPORAL: Final = {
    13: ("HH:mm:ss.SSS'Z'", Schema.time()),
    24: ("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", Schema.timestamp()),
    10: ("yyyy-MM-dd", Schema.date()),
}
_LARGEST_YEAR_MS: Final = 253_402_300_799_999
_SMALLEST_YEAR_MS: Final = -62_135_596_800_000
_MAX_DEPTH: Final = 100


class SchemaAndValue(NamedTuple):
    """A value in the Python form of its schema. The schema is None if it has none."""

    schema: Schema | None
    value: Any


def parse_string(text: str | None) -> SchemaAndValue:
    """The value of a text: null, a boolean, a number, a date, an array, a map, or the text itself."""
    if text is None:
        return SchemaAndValue(None, None)
    if not text:
        return SchemaAndValue(Schema(SchemaType.STRING), text)
    return _Reader(text).value(embedded=False, depth=0) or SchemaAndValue(None, None)


class _Reader:
    """Reads the tokens of a text: delimiters, and the text between them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._next: str | None = None
        self._previous: str | None = None

    # -- tokens

    def _mark(self) -> int:
        return self._at - (len(self._next) if self._next is not None else 0)

    def _rewind(self, at: int) -> None:
        self._at, self._next, self._previous = at, None, None

    def _more(self) -> bool:
        return self._next is not None or self._at < len(self._text)

    def _token(self) -> str:
        escaped, start = False, self._at
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == "\\":
                escaped = not escaped
            elif letter in _DELIMITERS and not escaped:
                if start == self._at:
                    self._at += 1
                break
            else:
                escaped = False
            self._at += 1
        return self._text[start : self._at]

    def _take(self) -> str:
        self._previous = self._next if self._next is not None else self._token()
        self._next = None
        return self._previous

    def _consume(self, expected: str) -> bool:
        if self._next is None:
            if not self._more():
                return False
            self._next = self._token()
        while not self._next.strip() and self._at < len(self._text):
            self._next = self._token()
        if self._next.strip() != expected:
            return False
        self._next = None
        return True

    def _literal(self, expected: str, embedded: bool) -> bool:
        start = self._mark()
        if self._consume(expected) and (embedded or not self._more()):
            return True
        self._rewind(start)
        return False

    # -- values

    def value(self, *, embedded: bool, depth: int) -> SchemaAndValue | None:
        """The next value; None for null. ``embedded`` means in an array or a map, where it raises DataError."""
        if not self._more():
            return None
        if embedded and self._consume('"'):
            return self._quoted()
        if self._literal("null", embedded):
            return None
        if self._literal("true", embedded):
            return SchemaAndValue(Schema(SchemaType.BOOLEAN), True)
        if self._literal("false", embedded):
            return SchemaAndValue(Schema(SchemaType.BOOLEAN), False)
        start = self._mark()
        try:
            if depth > _MAX_DEPTH:
                raise DataError(f"nested more than {_MAX_DEPTH} deep")
            if self._consume("["):
                return self._array(depth)
            if self._consume("{"):
                return self._map(depth)
        except DataError:
            self._rewind(start)
        token = self._take()
        if not token.strip():
            return SchemaAndValue(Schema(SchemaType.STRING), token)
        return self._scalar(token.strip(), embedded)

    def _scalar(self, token: str, embedded: bool) -> SchemaAndValue:
        if token[0].isdigit():
            scalar = self._time_of_tokens(token)
            if scalar is not None:
                return scalar
        if token[0].isdigit() or token[0] in "+-":
            number = _number(token)
            if number is not None:
                return number
        if embedded:
            raise DataError("Failed to parse embedded value")
        return SchemaAndValue(Schema(SchemaType.STRING), self._text)

    def _time_of_tokens(self, token: str) -> SchemaAndValue | None:
        """A time has colons, which are delimiters, so it consists of five tokens."""
        start = self._mark()
        for _ in range(4):
            if not self._more():
                break
            self._take()
        else:
            moment = _temporal(token + self._text[start : self._at])
            if moment is not None:
                return moment
        self._rewind(start)
        return _temporal(token)

    def _quoted(self) -> SchemaAndValue:
        parts = []
        while self._more() and not self._consume('"'):
            parts.append(self._take())
        content = "".join(parts)
        return _temporal(content) or SchemaAndValue(Schema(SchemaType.STRING), content)

    def _array(self, depth: int) -> SchemaAndValue:
        items: list[SchemaAndValue | None] = []
        common = _Common()
        while self._more():
            if self._consume("]"):
                if common.schema is None:
                    return SchemaAndValue(Schema(SchemaType.ARRAY), [item and item.value for item in items])
                return SchemaAndValue(Schema.array(common.schema), [_aligned(common.schema, item) for item in items])
            if self._consume(","):
                raise DataError(f"Unable to parse an empty array element: {self._text}")
            item = self.value(embedded=True, depth=depth + 1)
            common.merge(item)
            items.append(item)
            mark = self._mark()
            if self._consume("]"):
                self._rewind(mark)
            elif not self._consume(","):
                raise DataError("Array elements missing ',' delimiter")
        raise DataError(f"Array is missing terminating ']': {self._text}")

    def _map(self, depth: int) -> SchemaAndValue:
        entries: list[tuple[SchemaAndValue, SchemaAndValue | None]] = []
        keys, values = _Common(), _Common()
        while self._more():
            if self._consume("}"):
                return _made_map(entries, keys.schema, values.schema)
            if self._consume(","):
                raise DataError(f"Unable to parse a map entry with no key or value: {self._text}")
            key = self.value(embedded=True, depth=depth + 1)
            if key is None or key.value is None:
                raise DataError(f"Map entry may not have a null key: {self._text}")
            if not self._consume(":"):
                raise DataError(f"Map entry is missing ':' at {self._at} in {self._text}")
            value = self.value(embedded=True, depth=depth + 1)
            entries.append((key, value))
            self._consume(",")
            keys.merge(key)
            values.merge(value)
        raise DataError(f"Map is missing terminating '}}': {self._text}")


def _made_map(
    entries: list[tuple[SchemaAndValue, SchemaAndValue | None]], keys: Schema | None, values: Schema | None
) -> SchemaAndValue:
    try:
        latest = {key.value: (key, value) for key, value in entries}
    except TypeError as error:
        raise DataError(f"a map's key cannot be an array or a map: {error}") from error
    entries = list(latest.values())
    if keys is None:
        schema = Schema(SchemaType.MAP)
        pairs = [(key.value, value and value.value) for key, value in entries]
    elif values is None:
        schema = Schema(SchemaType.MAP, key_schema=keys)
        pairs = [(_aligned(keys, key), value and value.value) for key, value in entries]
    else:
        schema = Schema.map(keys, values)
        pairs = [(_aligned(keys, key), _aligned(values, value)) for key, value in entries]
    return SchemaAndValue(schema, dict(pairs))


class _Common:
    """The common schema of all values seen: the wider of two numbers, none for different kinds."""

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._compatible = True

    def merge(self, latest: SchemaAndValue | None) -> None:
        if latest is None or latest.schema is None or not self._compatible:
            return
        self.schema = latest.schema if self.schema is None else _merged(self.schema, latest.schema)
        self._compatible = self.schema is not None


def _merged(left: Schema, other: Schema) -> Schema | None:
    if left.type is other.type:
        return other
    if left.type in _ORDER and other.type in _ORDER:
        return left if _ORDER.index(left.type) > _ORDER.index(other.type) else other
    return None


def _aligned(schema: Schema, parsed: SchemaAndValue | None) -> Any:
    """A value of an array or a map in their common schema."""
    value = None if parsed is None else parsed.value
    if value is None:
        raise DataError("Unable to convert a null value to a schema that requires a value")
    number = isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool)
    if isinstance(value, dt.date | dt.time):
        if schema.name not in (DATE, TIME, TIMESTAMP):
            raise DataError(f"Unable to convert {value} to a number")
        return value
    if number and schema.name in (DATE, TIME, TIMESTAMP):
        return _dated(schema, int(value))
    if schema.name is None and number:
        if schema.type in (SchemaType.FLOAT32, SchemaType.FLOAT64):
            return single(float(value)) if schema.type is SchemaType.FLOAT32 else float(value)
        for kind, bits in _INTEGERS:
            if schema.type is kind:
                return narrowed(int(value), bits)
    if number == (schema.name == DECIMAL) and schema.type is not SchemaType.STRING:
        return value if isinstance(value, decimal.Decimal) or not number else decimal.Decimal(repr(float(value)))
    return to_text(parsed.schema if parsed else None, value) if schema.type is SchemaType.STRING else value


def _dated(schema: Schema, number: int) -> Any:
    """A number among dates or times is interpreted as their stored number."""
    try:
        if schema.name == DATE:
            return _EPOCH_DAY + dt.timedelta(days=number)
        if schema.name == TIMESTAMP:
            return _EPOCH + dt.timedelta(milliseconds=number)
    except OverflowError as error:
        raise DataError(f"{number} is further away than a date goes") from error
    if not 0 <= number < MS_PER_DAY:
        raise DataError("Time values must use number of milliseconds greater than 0 and less than 86400000")
    return (_EPOCH + dt.timedelta(milliseconds=number)).time()


def _number(token: str) -> SchemaAndValue | None:
    """The narrowest number: integers first, then floats if there is a fraction, otherwise a decimal."""
    if not _NUMBER.fullmatch(token):
        return None
    try:
        number = decimal.Decimal(token)
    except decimal.InvalidOperation:
        return None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) >= 1 << 31:
        return None
    size = abs(number)
    if size <= decimal.Decimal("1e19") and (size >= 1 or size == 0) and number == number.to_integral_value():
        whole = int(number)
        for kind, bits in _INTEGERS:
            if narrowed(whole, bits) == whole:
                return SchemaAndValue(Schema(kind), whole)
    wide = float(number)
    narrow = single(wide)
    if exponent != 0 and abs(narrow) != float("inf"):
        return SchemaAndValue(Schema(SchemaType.FLOAT32), narrow)
    if exponent != 0 and abs(wide) != float("inf"):
        return SchemaAndValue(Schema(SchemaType.FLOAT64), wide)
    return SchemaAndValue(Schema.decimal(-exponent), number)


def _temporal(token: str) -> SchemaAndValue | None:
    token = token.replace("\\:", ":")
    known = _TEMPORAL.get(len(token))
    if known is None:
        return None
    pattern, schema = known
    ms = date_format(pattern).parse(token)
    if ms is None:
        return None
    if schema.name == TIME:
        # Kafka Connect accepts 25:00 as a time of more than a day; a time of day has no such value here.
        return SchemaAndValue(schema, (_EPOCH + dt.timedelta(milliseconds=ms % MS_PER_DAY)).time())
    if not _SMALLEST_YEAR_MS <= ms <= _LARGEST_YEAR_MS:
        return None
    if schema.name == DATE:
        return SchemaAndValue(schema, _EPOCH_DAY + dt.timedelta(days=ms // MS_PER_DAY))
    return SchemaAndValue(schema, _EPOCH + dt.timedelta(milliseconds=ms))
