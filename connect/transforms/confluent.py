"""Confluent's most used transformations: Drop, ExtractTopic, MessageTimestampRouter, TombstoneHandler.

TopicRegexRouter is RegexRouter under another name. Source: Confluent's documentation of its connect-transforms.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from connect.api import DataError, Problem, RecordBatch, Schema, SchemaType, Transformation, config, key, one_of
from connect.data.headers import header_lists
from connect.data.java.date_format import date_format
from connect.transforms.field_path import FieldPath
from connect.transforms.sides import SideTransformation
from connect.transforms.timestamp_router import routed
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DropKey",
    "DropValue",
    "ExtractTopicHeader",
    "ExtractTopicKey",
    "ExtractTopicValue",
    "MessageTimestampRouter",
    "TombstoneHandler",
]

logger = get_logger(__name__)


@config
class DropConfig:
    """Keys of Drop."""

    behaviour: str = key(
        "schema.behavior",
        default="nullify",
        check=one_of("nullify", "retain", "validate", "force_optional", ignore_case=True),
        doc="What becomes of the schema: nullify removes it, retain keeps it, validate refuses one that is required, "
        "force_optional makes it optional.",
    )


class _Drop(SideTransformation):
    config_class = DropConfig
    config: DropConfig

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        import pyarrow as pa

        column, schema = self.column(batch)
        if column is None:
            return [batch]
        behaviour = self.config.behaviour.lower()
        if schema is None or behaviour == "nullify":
            nulls = None if self.side == "key" else pa.nulls(len(batch), pa.string())
            return [self.changed(batch, nulls, None)]
        if behaviour == "validate" and not schema.optional:
            raise DataError(f"the schema of the {self.side} of {batch.topic} is not optional")
        kept = schema.as_optional() if behaviour == "force_optional" else schema
        return [self.changed(batch, pa.nulls(len(batch), kept.arrow_type), kept)]

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        raise NotImplementedError("see apply")

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        raise NotImplementedError("see apply")


class DropKey(_Drop):
    """The key becomes null."""

    side = "key"


class DropValue(_Drop):
    """The value becomes null."""

    side = "value"


@config
class ExtractTopicConfig:
    """Keys of ExtractTopic."""

    field: str = key(
        "field",
        default="",
        doc="The field (of a header: its name) whose text is the topic; the whole key or value where it is empty.",
    )
    format: str = key(
        "field.format",
        default="PLAIN",
        check=one_of("PLAIN", "JSON_PATH", ignore_case=True),
        doc="PLAIN: field is a name. JSON_PATH: it is a path of names, as $.place.city or $['place']['city'].",
    )
    skip: bool = key(
        "skip.missing.or.null",
        default=False,
        importance="low",
        doc="Whether records without such a text keep their topic; otherwise they are errors.",
    )


class _ExtractTopic(Transformation):
    config_class = ExtractTopicConfig
    config: ExtractTopicConfig
    traces_fields = True
    side: Literal["key", "value", "header"]

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        topics, wrong = [], []
        for row, topic in enumerate(self._topics_of_rows(batch)):
            if not isinstance(topic, str) or not topic:
                wrong.append(row)
            topics.append(topic if isinstance(topic, str) and topic else batch.topic)
        if wrong and not self.config.skip:
            what = f"field {self.config.field!r} of the {self.side}" if self.config.field else f"the {self.side}"
            raise DataError(
                f"{what} of {batch.topic} is missing, null, empty or no text: it names no topic", rows=wrong
            )
        return routed(batch, topics)

    def _topics_of_rows(self, batch: RecordBatch) -> list[Any]:
        """The source of the topic in each row."""
        if self.side == "header":
            rows = [()] * len(batch) if batch.headers is None else header_lists(batch.headers)
            topics = [next((h.value for h in headers if h.key == self.config.field), None) for headers in rows]
            return [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in topics]
        column = batch.keys if self.side == "key" else batch.values
        schema = batch.key_schema if self.side == "key" else batch.value_schema
        if column is None:
            return [None] * len(batch)
        path = self._path
        if schema is None:
            values = [None if text is None else json.loads(text) for text in column.to_pylist()]
            return values if path is None else [path.value(v) if isinstance(v, dict) else None for v in values]
        if path is None:
            return list(column.to_pylist())
        if schema.type is not SchemaType.STRUCT or path.field(schema) is None:
            return [None] * len(batch)
        return list(path.column(schema, column, defaults=True).to_pylist())

    @property
    def _path(self) -> FieldPath | None:
        name = self.config.field
        if not name:
            return None
        if self.config.format.upper() == "PLAIN":
            return FieldPath(name, "V1")
        steps = name.removeprefix("$").replace("']['", ".").strip("[']").lstrip(".")
        return FieldPath(steps, "V2")


class ExtractTopicKey(_ExtractTopic):
    """From the key."""

    side = "key"


class ExtractTopicValue(_ExtractTopic):
    """From the value."""

    side = "value"


class ExtractTopicHeader(_ExtractTopic):
    """From a header."""

    side = "header"


@config
class MessageTimestampRouterConfig:
    """Keys of MessageTimestampRouter."""

    topic_format: str = key(
        "topic.format",
        default="${topic}-${timestamp}",
        importance="high",
        doc="The new topic; ${topic} stands for the old one and ${timestamp} for the time.",
    )
    names: list[str] = key(
        "message.timestamp.keys",
        importance="high",
        doc="Fields of the value, of which the first that is there has the time.",
    )
    message_format: str = key(
        "message.timestamp.format",
        default="yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
        importance="high",
        doc="How the time is read: a pattern of Java's SimpleDateFormat, in UTC. Numbers are milliseconds.",
    )
    written_format: str = key(
        "topic.timestamp.format",
        default="yyyyMMdd",
        importance="high",
        doc="How the time is written: a pattern of Java's SimpleDateFormat, in UTC.",
    )

    def problems(self) -> Iterable[Problem]:
        patterns = {"message.timestamp.format": self.message_format, "topic.timestamp.format": self.written_format}
        for name, pattern in patterns.items():
            try:
                date_format(pattern)
            except ValueError as error:
                yield Problem(name, f"Invalid value {pattern} for configuration {name}: {error}")


class MessageTimestampRouter(Transformation):
    """Accepts values with and without a schema; Confluent's accepts only those without."""

    config_class = MessageTimestampRouterConfig
    config: MessageTimestampRouterConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        topics, wrong = [], []
        template = self.config.topic_format.replace("${topic}", batch.topic)
        for row, record in enumerate(batch.records()):
            value = record.value if isinstance(record.value, dict) else {}
            moment = next((value[name] for name in self.config.names if value.get(name) is not None), None)
            ms = self._milliseconds(moment)
            if ms is None:
                wrong.append(row)
            topics.append(template.replace("${timestamp}", date_format(self.config.written_format).format(ms or 0)))
        if wrong:
            names = ", ".join(self.config.names)
            raise DataError(f"no time of the pattern {self.config.message_format!r} in any of: {names}", rows=wrong)
        return routed(batch, topics)

    def _milliseconds(self, value: Any) -> int | None:
        if isinstance(value, str):
            return date_format(self.config.message_format).parse(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return None if not hasattr(value, "timestamp") else int(value.timestamp() * 1000)


_BEHAVIOURS: Final = ("drop_silent", "drop_warn", "ignore", "fail", "warn")


@config
class TombstoneHandlerConfig:
    """Keys of TombstoneHandler."""

    behaviour: str = key(
        "behavior",
        default="drop_warn",
        check=one_of(*_BEHAVIOURS, ignore_case=True),
        doc="What becomes of tombstones: drop_silent, drop_warn (or warn) drop them, the latter with a warning in the log; "
        "ignore lets them pass; fail makes them errors.",
    )


class TombstoneHandler(Transformation):
    """A tombstone is a record without a value."""

    config_class = TombstoneHandlerConfig
    config: TombstoneHandlerConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        behaviour = self.config.behaviour.lower()
        if not batch.values.null_count or behaviour == "ignore":
            return [batch]
        if behaviour == "fail":
            rows = [row for row, null in enumerate(batch.values.is_null().to_pylist()) if null]
            raise DataError(
                f"Tombstone record encountered in topic {batch.topic}, failing due to configured 'fail'", rows=rows
            )
        if behaviour != "drop_silent":
            logger.warning("tombstones dropped", topic=batch.topic, records=batch.values.null_count)
        return [batch.filter(batch.values.is_valid())]
