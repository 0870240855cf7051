"""ValueToKey: fields of the value become the key."""

from __future__ import annotations

import json
from collections.abc import Sequence

from connect.api import DataError, Field, RecordBatch, Schema, Transformation, config, key
from connect.data.structs import struct_of
from connect.transforms.sides import (
    java_name,
    json_text,
    replace_null_key,
    required_struct,
    some,
    struct_columns,
)
from tidegate.kit.config import all_of, distinct

__all__ = ["ValueToKey", "ValueToKeyConfig"]

_PURPOSE = "copying fields from value to key"


@config
class ValueToKeyConfig:
    """Keys of ValueToKey."""

    fields: list[str] = key(
        "fields",
        check=all_of(some, distinct),
        importance="high",
        doc="Field names on the record value to extract as the record key.",
    )
    replace_null: bool = replace_null_key()


class ValueToKey(Transformation):
    """A tombstone has no fields, so its row is an error, as in Kafka Connect."""

    config_class = ValueToKeyConfig
    config: ValueToKeyConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        if batch.values.null_count:
            empty = [row for row, null in enumerate(batch.values.is_null().to_pylist()) if null]
            raise DataError(f"Only Struct objects supported for [{_PURPOSE}], found: null", rows=empty)
        if batch.value_schema is None:
            return [self._from_texts(batch)]
        schema = batch.value_schema
        required_struct(schema, _PURPOSE)
        members: list[Field] = []
        for name in dict.fromkeys(self.config.fields):
            if name not in schema.field_names:
                raise DataError(
                    f"Field does not exist: {name} (of topic {batch.topic}); there are: {', '.join(schema.field_names)}"
                )
            members.append(schema.field(name))
        columns = struct_columns(schema, batch.values, _PURPOSE, defaults=self.config.replace_null)
        chosen = [columns[schema.field_names.index(member.name)] for member in members]
        key_schema = Schema.struct(members)
        return [batch.replace(keys=struct_of(key_schema, chosen, batch.values), key_schema=key_schema)]

    def _from_texts(self, batch: RecordBatch) -> RecordBatch:
        import pyarrow as pa

        keys: list[str] = []
        for row, text in enumerate(batch.values.to_pylist()):
            value = json.loads(text)
            if not isinstance(value, dict):
                raise DataError(
                    f"Only Map objects supported in absence of schema for [{_PURPOSE}], found: {java_name(value)}",
                    rows=[row],
                )
            keys.append(json_text({name: value.get(name) for name in self.config.fields}))
        return batch.replace(keys=pa.array(keys, pa.string()), key_schema=None)
