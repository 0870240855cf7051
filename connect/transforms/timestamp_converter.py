"""TimestampConverter: converts a time between text, number and Connect's types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from connect.api import (
    DATE,
    TIME,
    TIMESTAMP,
    DataError,
    Field,
    Problem,
    RecordBatch,
    Schema,
    SchemaType,
    config,
    key,
    one_of,
)
from connect.data.java.calendar import MS_PER_DAY
from connect.data.java.date_format import DateFormat, date_format
from connect.data.structs import struct_of
from connect.transforms.sides import (
    SideTransformation,
    copied_basics,
    java_name,
    json_text,
    map_texts,
    replace_null_key,
    struct_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TimestampConverterConfig", "TimestampConverterKey", "TimestampConverterValue"]

_PURPOSE: Final = "converting timestamp formats"
_LONG: Final = 1 << 63
_TYPES: Final = {DATE: "Date", TIME: "Time", TIMESTAMP: "Timestamp"}
_NEW: Final = {
    "string": Schema(SchemaType.STRING),
    "unix": Schema(SchemaType.INT64),
    "Date": Schema.date(),
    "Time": Schema.time(),
    "Timestamp": Schema.timestamp(),
}
_PER_SECOND: Final = {"seconds": 1, "milliseconds": 1000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}


@config
class TimestampConverterConfig:
    """Keys of TimestampConverter."""

    field: str = key(
        "field",
        default="",
        importance="high",
        doc="The field containing the timestamp, or empty if the entire value is a timestamp.",
    )
    target: str = key(
        "target.type",
        check=one_of("string", "unix", "Date", "Time", "Timestamp"),
        importance="high",
        doc="What to make of it: string, unix, Date, Time or Timestamp.",
    )
    format: str = key(
        "format",
        default="",
        doc="A pattern of Java's SimpleDateFormat, in UTC: how target type string is written, and how text is read.",
    )
    precision: str = key(
        "unix.precision",
        default="milliseconds",
        check=one_of("nanoseconds", "microseconds", "milliseconds", "seconds"),
        importance="low",
        doc="What a number counts, both read and written. Parts of a millisecond are lost.",
    )
    replace_null: bool = replace_null_key()

    def problems(self) -> Iterable[Problem]:
        if self.target == "string" and not self.format.strip():
            yield Problem(
                "format", "TimestampConverter requires format option to be specified when using string timestamps"
            )
        elif self.format.strip():
            try:
                date_format(self.format)
            except ValueError as error:
                yield Problem(
                    "format",
                    "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: "
                    f"{self.format}: {error}",
                )


class _TimestampConverter(SideTransformation):
    config_class = TimestampConverterConfig
    config: TimestampConverterConfig
    traces_fields = True

    @property
    def _format(self) -> DateFormat:
        return date_format(self.config.format)

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        if not self.config.field:
            return self._converted(schema, column)
        columns = struct_columns(schema, column, _PURPOSE, defaults=self.config.replace_null)
        fields = list(schema.fields)
        for index, member in enumerate(fields):
            if member.name == self.config.field:
                if column.null_count:
                    columns[index] = _masked(columns[index], column)
                columns[index], made = self._converted(member.schema, columns[index])
                fields[index] = Field(member.name, made)
        changed = copied_basics(schema, fields).as_optional(schema.optional)
        return struct_of(changed, columns, column), changed

    def _converted(self, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        """The column in the target type, through milliseconds."""
        made = _NEW[self.config.target].as_optional(schema.optional)
        return self._written(self._milliseconds(schema, column)), made

    def _milliseconds(self, schema: Schema, column: pa.Array) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = _TYPES.get(schema.name or "")
        if kind == "Timestamp":
            return column.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        if kind == "Date":
            return pc.multiply(column.cast(pa.int32()).cast(pa.int64()), MS_PER_DAY)
        if kind == "Time":
            return column.cast(pa.int32()).cast(pa.int64())
        if schema.type is SchemaType.INT64:
            return self._of_unix(column)
        if schema.type is not SchemaType.STRING:
            shown = f"Schema{{{schema.name + ':' if schema.name else ''}{schema.type.name}}}"
            raise DataError(f"Schema {shown} does not correspond to a known timestamp type format")
        if not self.config.format:
            raise DataError("a timestamp that is text needs format, the pattern to read it by")
        times, wrong = self._format.parse_column(column)
        if wrong:
            raise DataError(self._mismatch(column[wrong[0]].as_py()), rows=wrong)
        return times

    def _mismatch(self, text: str) -> str:
        return f"Could not parse timestamp: value ({text}) does not match pattern ({self.config.format})"

    def _of_unix(self, column: pa.Array) -> pa.Array:
        import pyarrow.compute as pc

        per_second = _PER_SECOND[self.config.precision]
        if per_second == 1000:
            return column
        if per_second > 1000:
            return pc.divide(column, per_second // 1000)
        return _saturated(column, 1000)

    def _written(self, times: pa.Array) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        match self.config.target:
            case "string":
                return self._format.format_column(times)
            case "unix":
                per_second = _PER_SECOND[self.config.precision]
                if per_second < 1000:
                    return pc.divide(times, 1000)
                return times if per_second == 1000 else _saturated(times, per_second // 1000)
            case "Timestamp":
                return times.cast(pa.timestamp("ms", "UTC"))
        whole = pc.divide(times, MS_PER_DAY)
        before = pc.less(pc.subtract(times, pc.multiply(whole, MS_PER_DAY)), 0)
        days = pc.subtract(whole, before.cast(pa.int64()))
        if self.config.target == "Date":
            return _days(days)
        return pc.subtract(times, pc.multiply(days, MS_PER_DAY)).cast(pa.int32()).cast(pa.time32("ms"))

    # -- without schema

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        if self.config.field:
            name = self.config.field
            return map_texts(column, lambda value, row: {**value, name: self._value(value.get(name))}, _PURPOSE)
        import json

        import pyarrow as pa

        texts: list[str | None] = []
        for row, text in enumerate(column.to_pylist()):
            try:
                made = None if text is None else self._value(json.loads(text))
            except DataError as error:
                raise DataError(str(error), rows=[row]) from error
            texts.append(None if made is None else json_text(made))
        return pa.array(texts, pa.string())

    def _value(self, value: Any) -> Any:
        """One value without schema: text is parsed by the pattern, a number is unix time.

        For one of Connect's types the result is its number, because JSON has no other form of it.
        """
        import pyarrow as pa

        if value is None:
            return None
        if isinstance(value, str):
            schema = Schema(SchemaType.STRING)
        elif isinstance(value, int) and not isinstance(value, bool) and -_LONG <= value < _LONG:
            schema = Schema(SchemaType.INT64)
        else:
            raise DataError(f"TimestampConverter does not support class {java_name(value)} objects as timestamps")
        made, target = self._converted(schema, pa.array([value], schema.arrow_type))
        if target.name == TIMESTAMP:
            return made.cast(pa.int64())[0].as_py()
        if target.name == DATE:
            return made.cast(pa.int32())[0].as_py() * MS_PER_DAY
        return made.cast(pa.int32())[0].as_py() if target.name == TIME else made[0].as_py()


def _masked(column: pa.Array, struct: pa.Array) -> pa.Array:
    """Null where the struct is, because values there are arbitrary."""
    import pyarrow.compute as pc

    return pc.if_else(struct.is_null(), None, column)


def _saturated(column: pa.Array, factor: int) -> pa.Array:
    """The product, clamped to 64 bits."""
    import pyarrow.compute as pc

    limit = (_LONG - 1) // factor
    if pc.any(pc.or_(pc.greater(column, limit), pc.less(column, -limit))).as_py():
        product = pc.multiply(pc.max_element_wise(pc.min_element_wise(column, limit), -limit), factor)
        high = pc.if_else(pc.greater(column, limit), _LONG - 1, product)
        return pc.if_else(pc.less(column, -limit), -_LONG, high)
    return pc.multiply(column, factor)


def _days(days: pa.Array) -> pa.Array:
    import pyarrow as pa

    try:
        return days.cast(pa.int32()).cast(pa.date32())
    except pa.ArrowInvalid as error:
        raise DataError(f"a time is further away than a Date holds: {error}") from error


class TimestampConverterKey(_TimestampConverter):
    """Of the key."""

    side = "key"


class TimestampConverterValue(_TimestampConverter):
    """Of the value."""

    side = "value"
