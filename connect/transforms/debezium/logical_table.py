"""ByLogicalTableRouter: combines the topics of several physical tables; the key distinguishes their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from connect.api import Field, JavaRegex, Problem, RecordBatch, Schema, SchemaType, Transformation, config, key
from connect.data.structs import struct_of
from connect.transforms.debezium.fields import is_envelope
from connect.transforms.sides import copied_basics, struct_columns
from tidegate.kit.config import KeyType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ByLogicalTableRouter", "ByLogicalTableRouterConfig"]


@config
class ByLogicalTableRouterConfig:
    """Keys of ByLogicalTableRouter."""

    topic_regex: str = key(
        "topic.regex", doc="Topics to route: a regular expression for the whole name.", importance="low"
    )
    topic_replacement: str = key("topic.replacement", doc="The new topic; $1 is the first group.", importance="low")
    key_unique: bool = key(
        "key.enforce.uniqueness",
        default=True,
        importance="low",
        doc="Whether the key gets a field that tells the physical table.",
    )
    key_field: str = key(
        "key.field.name", default="__dbz__physicalTableIdentifier", importance="low", doc="The name of that field."
    )
    key_regex: str = key(
        "key.field.regex", default="", importance="low", doc="What of the old topic's name identifies the table."
    )
    key_replacement: str = key(
        "key.field.replacement", default="", importance="low", doc="The identifier made of it; $1 is the first group."
    )
    cache_size: int = key(
        "logical.table.cache.size",
        default=16,
        type=KeyType.INT,
        importance="low",
        doc="Accepted; nothing is cached.",
    )

    def problems(self) -> Iterable[Problem]:
        if self.key_regex and not self.key_replacement:
            yield Problem("key.field.replacement", "A key.field.replacement must be given with key.field.regex")
        for name, value in (("topic.regex", self.topic_regex), ("key.field.regex", self.key_regex)):
            try:
                JavaRegex(value)
            except ValueError as error:
                yield Problem(name, f"Invalid value {value} for configuration {name}: {error}")


class ByLogicalTableRouter(Transformation):
    """Schemas are named after the new topic."""

    config_class = ByLogicalTableRouterConfig
    config: ByLogicalTableRouterConfig
    traces_fields = True

    @cached_property
    def _topics(self) -> JavaRegex:
        return JavaRegex(self.config.topic_regex)

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        topic = self._topics.replace_whole(batch.topic, self.config.topic_replacement)
        if not topic:
            return [batch]
        keyed = self._with_table(batch, topic)
        schema = batch.value_schema
        if schema is None or not is_envelope(schema) or batch.values.null_count == len(batch):
            return [keyed.replace(topic=topic)]
        fields, parts = list(schema.fields), []
        for index, member in enumerate(schema.fields):
            part = batch.values.field(index)
            if member.name in ("before", "after") and member.schema.type is SchemaType.STRUCT:
                named = replace(member.schema, name=f"{topic}.Value")
                fields[index] = Field(member.name, named)
                part = struct_of(named, struct_columns(member.schema, part, "renaming schemas"), part)
            parts.append(part)
        made = replace(schema, name=f"{topic}.Envelope", fields=tuple(fields))
        return [keyed.replace(topic=topic, value_schema=made, values=struct_of(made, parts, batch.values))]

    def _with_table(self, batch: RecordBatch, topic: str) -> RecordBatch:
        import pyarrow as pa

        schema = batch.key_schema
        if batch.keys is None or schema is None or schema.type is not SchemaType.STRUCT:
            return batch
        fields: list[Field] = list(schema.fields)
        parts: list[pa.Array] = [batch.keys.field(index) for index in range(len(fields))]
        if self.config.key_unique:
            fields.append(Field(self.config.key_field, Schema(SchemaType.STRING)))
            parts.append(pa.repeat(pa.scalar(self._table(batch.topic)), len(batch)))
        made = replace(copied_basics(schema, fields), name=f"{topic}.Key")
        return batch.replace(keys=struct_of(made, parts, batch.keys), key_schema=made)

    def _table(self, topic: str) -> str:
        if self.config.key_regex and self.config.key_replacement:
            return JavaRegex(self.config.key_regex).replace_whole(topic, self.config.key_replacement) or topic
        return topic
