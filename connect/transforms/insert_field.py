"""InsertField: facts about the record, or a fixed value, become fields of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from connect.api import Field, Problem, RecordBatch, Schema, SchemaType, config, key
from connect.transforms.sides import SideTransformation, map_texts, struct_columns, struct_of

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
    replace_null: bool = key(
        "replace.null.with.default",
        default=True,
        doc="Whether a null is shown as its field's default; columns keep nulls.",
    )

    def problems(self) -> Iterable[Problem]:
        names = (self.topic_field, self.partition_field, self.offset_field, self.timestamp_field, self.static_field)
        if not any(names):
            yield Problem("static.field", "No field insertion configured")
        if self.static_field is not None and self.static_value is None:
            yield Problem("static.value", f"No value specified for static field: {self.static_field}")


class _Inserted(NamedTuple):
    name: str
    schema: Schema
    column: pa.Array
    json_column: pa.Array


class _InsertField(SideTransformation):
    config_class = InsertFieldConfig
    config: InsertFieldConfig

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        columns = struct_columns(schema, column, _PURPOSE)
        inserted = self._inserted(batch)
        fields = [*schema.fields, *(Field(one.name, one.schema) for one in inserted)]
        return struct_of(schema, fields, [*columns, *(one.column for one in inserted)], column)

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        values = {one.name: one.json_column.to_pylist() for one in self._inserted(batch)}

        def insert(value: dict[str, Any], row: int) -> dict[str, Any]:
            return {**value, **{name: rows[row] for name, rows in values.items()}}

        return map_texts(column, insert, _PURPOSE)

    def _inserted(self, batch: RecordBatch) -> list[_Inserted]:
        import pyarrow as pa

        rows = len(batch)
        partition = pa.repeat(pa.scalar(batch.origin.partition, pa.int32()), rows) if batch.origin else batch.partitions
        times = batch.timestamps_ms
        found: list[_Inserted] = []

        def add(spec: str | None, schema: Schema, column: pa.Array | None, json_column: pa.Array | None = None) -> None:
            if spec:
                column = pa.nulls(rows, schema.arrow_type) if column is None else column
                schema = schema.as_optional(not spec.endswith("!"))
                found.append(
                    _Inserted(spec.rstrip("!?"), schema, column, column if json_column is None else json_column)
                )

        add(self.config.topic_field, Schema(SchemaType.STRING), pa.repeat(pa.scalar(batch.topic), rows))
        add(self.config.partition_field, Schema(SchemaType.INT32), partition)
        add(self.config.offset_field, Schema(SchemaType.INT64), batch.offsets)
        stamp = Schema.timestamp()
        add(self.config.timestamp_field, stamp, None if times is None else times.cast(stamp.arrow_type), times)
        add(
            self.config.static_field,
            Schema(SchemaType.STRING),
            pa.repeat(pa.scalar(self.config.static_value or ""), rows),
        )
        return found


class InsertKeyField(_InsertField):
    side = "key"


class InsertValueField(_InsertField):
    side = "value"
