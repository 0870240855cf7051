"""InsertField: inserts facts about the record, or a fixed value, as fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from connect.api import DataError, Field, Problem, RecordBatch, Schema, SchemaType, config, key
from connect.data.structs import struct_of
from connect.transforms.sides import (
    SideTransformation,
    copied_basics,
    map_texts,
    replace_null_key,
    struct_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["InsertFieldConfig", "InsertKeyField", "InsertValueField"]

_PURPOSE = "field insertion"
_DOC = "Field name for {}. Suffix with `!` to make this a required field, or `?` to keep it optional (the default)."


@config
class InsertFieldConfig:
    """Keys of InsertField."""

    topic_field: str | None = key("topic.field", default=None, doc=_DOC.format("the topic"))
    partition_field: str | None = key("partition.field", default=None, doc=_DOC.format("the partition"))
    offset_field: str | None = key(
        "offset.field", default=None, doc=_DOC.format("the offset, which only records of a sink have")
    )
    timestamp_field: str | None = key("timestamp.field", default=None, doc=_DOC.format("the record's timestamp"))
    static_field: str | None = key("static.field", default=None, doc=_DOC.format("a fixed value"))
    static_value: str | None = key("static.value", default=None, doc="The fixed value, if a field name is configured.")
    replace_null: bool = replace_null_key()

    def problems(self) -> Iterable[Problem]:
        names = (self.topic_field, self.partition_field, self.offset_field, self.timestamp_field, self.static_field)
        if all(name is None for name in names):
            yield Problem("static.field", "No field insertion configured")
        if self.static_field is not None and self.static_value is None:
            yield Problem("static.value", f"No value specified for static field: {self.static_field}")


class _Inserted(NamedTuple):
    name: str
    schema: Schema
    column: pa.Array
    json_column: pa.Array
    """The form in data without schema, where a timestamp is a number."""
    always: bool
    """Whether data without schema gets the field even if its value is null."""


class _InsertField(SideTransformation):
    config_class = InsertFieldConfig
    config: InsertFieldConfig
    traces_fields = True

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        columns = struct_columns(schema, column, _PURPOSE, defaults=self.config.replace_null)
        inserted = self._inserted(batch)
        fields = [*schema.fields, *(Field(inserted_field.name, inserted_field.schema) for inserted_field in inserted)]
        if len({member.name for member in fields}) != len(fields):
            twice = next(
                inserted_field.name for inserted_field in inserted if inserted_field.name in schema.field_names
            )
            raise DataError(f"Cannot create field because of field name duplication {twice}")
        changed = copied_basics(schema, fields)
        return struct_of(changed, [*columns, *(inserted_field.column for inserted_field in inserted)], column), changed

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        values = [
            (inserted_field.name, inserted_field.json_column.to_pylist(), inserted_field.always)
            for inserted_field in self._inserted(batch)
        ]

        def insert(value: dict[str, Any], row: int) -> dict[str, Any]:
            more = {name: rows[row] for name, rows, always in values if always or rows[row] is not None}
            return {**value, **more}

        return map_texts(column, insert, _PURPOSE)

    def _inserted(self, batch: RecordBatch) -> list[_Inserted]:
        import pyarrow as pa

        rows = len(batch)
        if self.config.offset_field and batch.origin is None:
            raise DataError(f"Only SinkRecord supported for [{_PURPOSE}], found: a record of a source")
        partition = pa.repeat(pa.scalar(batch.origin.partition, pa.int32()), rows) if batch.origin else batch.partitions
        times = batch.timestamps_ms
        inserted: list[_Inserted] = []

        def add(spec: str | None, schema: Schema, column: pa.Array | None, json_column: pa.Array | None = None) -> None:
            if spec is None:
                return
            column = pa.nulls(rows, schema.arrow_type) if column is None else column
            optional = not spec.endswith("!")
            name = spec[:-1] if spec.endswith(("!", "?")) else spec
            always = schema.type is SchemaType.INT64 and schema.name is None
            json_values = column if json_column is None else json_column
            inserted.append(_Inserted(name, schema.as_optional(optional), column, json_values, always))

        add(self.config.topic_field, Schema(SchemaType.STRING), pa.repeat(pa.scalar(batch.topic), rows))
        add(self.config.partition_field, Schema(SchemaType.INT32), partition)
        add(self.config.offset_field, Schema(SchemaType.INT64), batch.offsets)
        stamp = Schema.timestamp()
        add(self.config.timestamp_field, stamp, None if times is None else times.cast(stamp.arrow_type), times)
        fixed = pa.repeat(pa.scalar(self.config.static_value or ""), rows)
        add(self.config.static_field, Schema(SchemaType.STRING), fixed)
        return inserted


class InsertKeyField(_InsertField):
    """Into the key."""

    side = "key"


class InsertValueField(_InsertField):
    """Into the value."""

    side = "value"
