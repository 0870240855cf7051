"""Transformations of jcustenborder's kafka-connect-transform-common that real configurations name, and cjmatta's InsertUuid.

Source: the sources of those two projects, github.com/jcustenborder and github.com/cjmatta.
"""

from __future__ import annotations

import re
import string
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from connect.api import DataError, Field, Problem, RecordBatch, Schema, SchemaType, Transformation, config, key, one_of
from connect.data.defaults import with_default
from connect.data.schema import TIMESTAMP
from connect.data.structs import struct_of
from connect.transforms.sides import (
    SideTransformation,
    copied_basics,
    map_texts,
    required_struct,
    some,
    struct_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ChangeTopicCase",
    "ExtractNestedKeyField",
    "ExtractNestedValueField",
    "ExtractTimestamp",
    "InsertKeyUuid",
    "InsertValueUuid",
    "TimestampNow",
    "TimestampNowKeyField",
    "TimestampNowValueField",
]

_CASES: Final = ("LOWER_CAMEL", "LOWER_HYPHEN", "LOWER_UNDERSCORE", "UPPER_CAMEL", "UPPER_UNDERSCORE")
_SEPARATORS: Final = {"LOWER_HYPHEN": "-", "LOWER_UNDERSCORE": "_", "UPPER_UNDERSCORE": "_"}
_CASE_DOC: Final = "lowerCamel, lower-hyphen, lower_underscore, UpperCamel or UPPER_UNDERSCORE."
_TO_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_TO_UPPER: Final = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


@config
class ChangeTopicCaseConfig:
    """Keys of ChangeTopicCase."""

    before: str = key(
        "from", check=one_of(*_CASES), importance="high", doc=f"How the topic's name is written: {_CASE_DOC}"
    )
    after: str = key("to", check=one_of(*_CASES), importance="high", doc=f"How it is to be written: {_CASE_DOC}")


class ChangeTopicCase(Transformation):
    """By the rules of Guava's CaseFormat: only ASCII letters, and names in another format are not refused."""

    config_class = ChangeTopicCaseConfig
    config: ChangeTopicCaseConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        return [batch.replace(topic=_recased(batch.topic, self.config.before, self.config.after))]


def _recased(text: str, before: str, after: str) -> str:
    if before == after:
        return text
    if {before, after} == {"LOWER_HYPHEN", "LOWER_UNDERSCORE"}:  # letters stay unchanged, as in Guava
        return text.replace(_SEPARATORS[before], _SEPARATORS[after])
    if before in _SEPARATORS:
        words = text.split(_SEPARATORS[before])
    else:  # a word begins at each capital
        words = re.split("(?=[A-Z])", text)
        words = words[1:] if words[0] == "" and len(words) > 1 else words
    if after in _SEPARATORS:
        table = _TO_UPPER if after == "UPPER_UNDERSCORE" else _TO_LOWER
        return _SEPARATORS[after].join(word.translate(table) for word in words)
    capitals = [word[:1].translate(_TO_UPPER) + word[1:].translate(_TO_LOWER) for word in words]
    return "".join([words[0].translate(_TO_LOWER) if after == "LOWER_CAMEL" else capitals[0], *capitals[1:]])


@config
class ExtractNestedFieldConfig:
    """Keys of ExtractNestedField."""

    outer: str = key("input.outer.field.name", importance="high", doc="The struct that holds the field.")
    inner: str = key("input.inner.field.name", importance="high", doc="The field of that struct.")
    output: str = key("output.field.name", importance="high", doc="The new field beside the struct.")


class _ExtractNestedField(SideTransformation):
    """Copies a field of a struct to the level of the struct. Data without a schema is refused, as in the original."""

    config_class = ExtractNestedFieldConfig
    config: ExtractNestedFieldConfig

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        columns = struct_columns(schema, column, "ExtractNestedField")
        outer = _member(schema, self.config.outer, batch.topic)
        required_struct(outer, f"{self.config.outer} of {batch.topic}")
        inner = _member(outer, self.config.inner, f"{self.config.outer} of {batch.topic}")
        if self.config.output in schema.field_names:
            raise DataError(
                f"{self.side} of {batch.topic} has a field {self.config.output!r} already: choose another output.field.name"
            )
        struct = columns[schema.field_names.index(self.config.outer)]
        if missing := _rows(struct, column):
            raise DataError(
                f"{self.config.outer} of {batch.topic} is null and has no {self.config.inner}", rows=missing
            )
        inner_column = with_default(inner, struct.field(outer.field_names.index(self.config.inner)))
        made = Schema.struct(
            [*schema.fields, Field(self.config.output, inner)], name=schema.name, optional=schema.optional
        )
        return struct_of(made, [*columns, inner_column], column), made

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        raise DataError("ExtractNestedField takes records with a schema only")


def _member(schema: Schema, name: str, of: str) -> Schema:
    if name not in schema.field_names:
        raise DataError(f"{of} has no field {name!r}; there are: {', '.join(schema.field_names)}")
    return schema.field(name).schema


def _rows(part: pa.Array, column: pa.Array) -> list[int]:
    """Rows where a field is null and its struct is not."""
    import pyarrow.compute as pc

    null = pc.and_(part.is_null(), column.is_valid())
    return [row for row, is_null in enumerate(null.to_pylist()) if is_null] if pc.any(null).as_py() else []


class ExtractNestedKeyField(_ExtractNestedField):
    """Of the key."""

    side = "key"


class ExtractNestedValueField(_ExtractNestedField):
    """Of the value."""

    side = "value"


@config
class ExtractTimestampConfig:
    """Keys of ExtractTimestamp."""

    field: str = key(
        "field.name", importance="high", doc="The field of the value whose time becomes the record's timestamp."
    )


class ExtractTimestamp(Transformation):
    """The field is a Timestamp or an int64 of milliseconds, in the value under both names, as in the original."""

    config_class = ExtractTimestampConfig
    config: ExtractTimestampConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        import pyarrow as pa

        name, schema = self.config.field, batch.value_schema
        if schema is None:
            return [batch.replace(timestamps_ms=self._of_texts(batch))]
        required_struct(schema, "ExtractTimestamp")
        member = _member(schema, name, batch.topic)
        if member.type is not SchemaType.INT64 or member.name not in (None, TIMESTAMP):
            kind = member.name or member.type.value
            raise DataError(f"field {name!r} of {batch.topic} is {kind}, and should be a Timestamp or an int64")
        column = batch.values.field(schema.field_names.index(name))
        if wrong := [row for row, null in enumerate(column.is_null().to_pylist()) if null]:
            raise DataError(f"Field '{name}' cannot be null.", rows=wrong)
        if batch.values.null_count:
            raise DataError("a record without a value has no timestamp in it", rows=_nulls(batch.values))
        times = column.cast(pa.timestamp("ms", "UTC")) if member.name == TIMESTAMP else column
        return [batch.replace(timestamps_ms=times.cast(pa.int64()))]

    def _of_texts(self, batch: RecordBatch) -> pa.Array:
        import pyarrow as pa

        timestamps: list[int] = []

        def look(value: dict[str, Any], row: int) -> dict[str, Any]:  # noqa: ARG001 - as map_texts calls it
            ms = value.get(self.config.field)
            if not isinstance(ms, int) or isinstance(ms, bool) or not -(1 << 63) <= ms < 1 << 63:
                raise DataError(f"field {self.config.field!r} is {ms!r}, and should be a number of milliseconds")
            timestamps.append(ms)
            return value

        map_texts(batch.values, look, "ExtractTimestamp", nulls=False)
        return pa.array(timestamps, pa.int64())


def _nulls(column: pa.Array) -> list[int]:
    return [row for row, null in enumerate(column.is_null().to_pylist()) if null]


@config
class TimestampNowConfig:
    """TimestampNow has no keys."""


class TimestampNow(Transformation):
    """The time of the transformation becomes the record's timestamp."""

    config_class = TimestampNowConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        import pyarrow as pa

        return [batch.replace(timestamps_ms=pa.repeat(pa.scalar(_now_ms(), pa.int64()), len(batch)))]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_UNIT_MS: Final = {
    "NANOS": 0.000_001,
    "MICROS": 0.001,
    "MILLIS": 1,
    "SECONDS": 1_000,
    "MINUTES": 60_000,
    "HOURS": 3_600_000,
    "HALF_DAYS": 43_200_000,
    "DAYS": 86_400_000,
    "WEEKS": 604_800_000,
    "MONTHS": 2_629_746_000,
    "YEARS": 31_556_952_000,
    "DECADES": 315_569_520_000,
    "CENTURIES": 3_155_695_200_000,
    "MILLENNIA": 31_556_952_000_000,
}
"""Java's ``ChronoUnit``."""


@config
class TimestampNowFieldConfig:
    """Keys of TimestampNowField."""

    fields: list[str] = key(
        "fields", importance="high", check=some, doc="Fields that take the time of the transformation."
    )
    kind: str = key(
        "target.type",
        default="Date",
        check=one_of("Date", "Unix"),
        importance="low",
        doc="Date: a Timestamp. Unix: an int64 of seconds.",
    )
    amount: int = key(
        "add.amount", default=0, importance="low", doc="How many units the time lies ahead, if it is more than 0."
    )
    unit: str = key(
        "add.chronounit",
        default="DAYS",
        check=one_of(*_UNIT_MS),
        importance="low",
        doc="The unit, by its name in Java's ChronoUnit.",
    )

    def problems(self) -> Iterable[Problem]:
        if self.amount * _UNIT_MS[self.unit] > _UNIT_MS["MILLENNIA"]:
            yield Problem("add.amount", f"{self.amount} {self.unit} is more than a thousand years: give less")


class _TimestampNowField(SideTransformation):
    """A field of that name gets the time, in its position if it has the type already, otherwise after the others."""

    config_class = TimestampNowFieldConfig
    config: TimestampNowFieldConfig
    traces_fields = True

    def _time(self) -> int:
        ahead = int(self.config.amount * _UNIT_MS[self.config.unit]) if self.config.amount > 0 else 0
        ms = _now_ms() + ahead
        return ms // 1000 if self.config.kind == "Unix" else ms

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        import pyarrow as pa

        columns = struct_columns(schema, column, "TimestampNowField")
        made_as = Schema(SchemaType.INT64) if self.config.kind == "Unix" else Schema.timestamp()
        now = pa.repeat(pa.scalar(self._time(), pa.int64()), len(column)).cast(made_as.arrow_type)
        fields: list[Field] = []
        parts: list[pa.Array] = []
        for member, part in zip(schema.fields, columns, strict=True):
            kept = (member.schema.type, member.schema.name) == (made_as.type, made_as.name)
            if member.name not in self.config.fields or kept:
                fields.append(member)
                parts.append(now if member.name in self.config.fields else part)
        there = {member.name for member in fields}
        more = [name for name in dict.fromkeys(self.config.fields) if name not in there]
        made = copied_basics(schema, [*fields, *(Field(name, made_as) for name in more)]).as_optional(schema.optional)
        return struct_of(made, [*parts, *(now for _ in more)], column), made

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        more = dict.fromkeys(self.config.fields, self._time())
        return map_texts(column, lambda value, row: {**value, **more}, "TimestampNowField")

    def field_after(self, path: str) -> str | None:
        return None if path in self.config.fields else path


class TimestampNowKeyField(_TimestampNowField):
    """In the key."""

    side = "key"


class TimestampNowValueField(_TimestampNowField):
    """In the value."""

    side = "value"


@config
class InsertUuidConfig:
    """Keys of InsertUuid."""

    field: str = key("uuid.field.name", default="uuid", importance="high", doc="The new field.")


class _InsertUuid(SideTransformation):
    """A random UUID, version 4, as text; a record that is read again gets a different one."""

    config_class = InsertUuidConfig
    config: InsertUuidConfig
    traces_fields = True

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        import pyarrow as pa

        columns = struct_columns(schema, column, "adding UUID to record")
        if self.config.field in schema.field_names:
            raise DataError(f"Cannot create field because of field name duplication {self.config.field}")
        made = copied_basics(schema, [*schema.fields, Field(self.config.field, Schema(SchemaType.STRING))])
        ids = pa.array([str(uuid.uuid4()) for _ in range(len(column))], pa.string())
        return struct_of(made, [*columns, ids], column), made

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        field = self.config.field
        return map_texts(column, lambda value, row: {**value, field: str(uuid.uuid4())}, "adding UUID to record")


class InsertKeyUuid(_InsertUuid):
    """Into the key."""

    side = "key"


class InsertValueUuid(_InsertUuid):
    """Into the value."""

    side = "value"
