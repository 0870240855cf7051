"""ValueToKey: fields of the value become the key."""

from __future__ import annotations

import json
from collections.abc import Sequence

from connect.api import DataError, Field, RecordBatch, Schema, Transformation, config, key, non_empty
from connect.transforms.sides import struct_columns, struct_of

__all__ = ["ValueToKey", "ValueToKeyConfig"]

_PURPOSE = "copying fields from value to key"


@config
class ValueToKeyConfig:
    """Keys of ValueToKey."""

    fields: list[str] = key(
        "fields",
        check=non_empty,
        importance="high",
        doc="Field names on the record value to extract as the record key.",
    )
    replace_null: bool = key(
        "replace.null.with.default",
        default=True,
        doc="Whether a null is shown as its field's default; columns keep nulls.",
    )


class ValueToKey(Transformation):
    """A tombstone has no fields, so its row is an error, as in Kafka Connect."""

    config_class = ValueToKeyConfig
    config: ValueToKeyConfig

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        if batch.values.null_count:
            empty = [row for row, null in enumerate(batch.values.is_null().to_pylist()) if null]
            raise DataError(f"Only Struct objects supported for [{_PURPOSE}], found: null", rows=empty)
        if batch.value_schema is None:
            return [self._from_texts(batch)]
        columns = dict(
            zip(batch.value_schema.field_names, struct_columns(batch.value_schema, batch.values, _PURPOSE), strict=True)
        )
        members: list[Field] = []
        for name in self.config.fields:
            if name not in columns:
                raise DataError(
                    f"Field does not exist: {name} (of topic {batch.topic}); there are: {', '.join(columns)}"
                )
            members.append(batch.value_schema.field(name))
        keys, schema = struct_of(Schema.struct([]), members, [columns[member.name] for member in members], batch.values)
        return [batch.replace(keys=keys, key_schema=schema)]

    def _from_texts(self, batch: RecordBatch) -> RecordBatch:
        import pyarrow as pa

        keys: list[str] = []
        for row, text in enumerate(batch.values.to_pylist()):
            value = json.loads(text)
            if not isinstance(value, dict):
                raise DataError(
                    f"Only Map objects supported for [{_PURPOSE}], found: {type(value).__name__}", rows=[row]
                )
            keys.append(json.dumps({name: value.get(name) for name in self.config.fields}, separators=(",", ":")))
        return batch.replace(keys=pa.array(keys, pa.string()), key_schema=None)
