"""EventRouter: converts rows of an outbox table to the events in them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final, NamedTuple

from connect.api import (
    DataError,
    Header,
    JavaRegex,
    Problem,
    Record,
    Schema,
    Transformation,
    config,
    key,
    one_of,
)
from connect.transforms.debezium.fields import is_envelope
from connect.transforms.debezium.json_payload import Expansion
from tidegate.kit.logs import get_logger

__all__ = ["EventRouter", "EventRouterConfig"]

logger = get_logger(__name__)
_UNITS: Final = {
    "io.debezium.time.Timestamp": 1,
    "io.debezium.time.MicroTimestamp": 1000,
    "io.debezium.time.NanoTimestamp": 1_000_000,
}
_PLACEMENTS: Final = ("header", "envelope", "partition")


class _Additional(NamedTuple):
    field: str
    placement: str
    alias: str


@config
class EventRouterConfig:
    """Keys of EventRouter."""

    event_id: str = key("table.field.event.id", default="id", importance="low", doc="The column of the event's id.")
    event_key: str = key(
        "table.field.event.key", default="aggregateid", importance="low", doc="The column of the event's key."
    )
    event_type: str = key(
        "table.field.event.type", default="type", importance="low", doc="The column of the event's type."
    )
    payload: str = key(
        "table.field.event.payload", default="payload", importance="low", doc="The column of the payload."
    )
    timestamp: str | None = key(
        "table.field.event.timestamp",
        default=None,
        importance="medium",
        doc="The column of the record's time; that of the change unless given.",
    )
    additional: list[str] = key(
        "table.fields.additional.placement",
        default=[],
        importance="high",
        doc="More columns and where they go, as column:header, column:envelope:name or column:partition.",
    )
    missing: str = key(
        "table.field.additional.missing",
        default="error",
        check=one_of("error", "ignore", ignore_case=True),
        importance="low",
        doc="What happens when one of them is not there.",
    )
    error_on_missing: bool | None = key(
        "table.fields.additional.error.on.missing",
        default=None,
        importance="medium",
        doc="The older name of the same choice.",
    )
    schema_version: str | None = key(
        "table.field.event.schema.version",
        default=None,
        importance="low",
        doc="The column of the event's schema version.",
    )
    invalid: str = key(
        "table.op.invalid.behavior",
        default="warn",
        check=one_of("warn", "error", "fatal", ignore_case=True),
        importance="medium",
        doc="What happens on an update of the table: left out with a warning or an error in the log, or the task fails.",
    )
    expand: bool = key(
        "table.expand.json.payload",
        default=False,
        importance="medium",
        doc="Whether payloads of JSON text become structs.",
    )
    json_null: str = key(
        "table.json.payload.null.behavior",
        default="ignore",
        check=one_of("ignore", "optional_bytes", ignore_case=True),
        importance="medium",
        doc="In such payloads: whether a null is left out, or an optional field of bytes.",
    )
    json_empty: str = key(
        "table.json.payload.empty.array.behavior",
        default="ignore",
        check=one_of("ignore", "optional_string", ignore_case=True),
        importance="low",
        doc="In such payloads: whether an empty array is left out, or one of optional strings.",
    )
    route_field: str = key(
        "route.by.field", default="aggregatetype", importance="high", doc="The column that tells the topic."
    )
    route_regex: str = key(
        "route.topic.regex", default="(?<routedByValue>.*)", importance="low", doc="What of that column tells it."
    )
    route_replacement: str = key(
        "route.topic.replacement",
        default="outbox.event.${routedByValue}",
        importance="high",
        doc="The topic made of it.",
    )
    tombstones: bool = key(
        "route.tombstone.on.empty.payload",
        default=False,
        importance="high",
        doc="Whether an empty payload makes a tombstone.",
    )
    tracing_field: str = key(
        "tracing.span.context.field",
        default="tracingspancontext",
        importance="high",
        doc="Accepted; nothing is traced.",
    )
    tracing_name: str = key(
        "tracing.operation.name", default="debezium-read", importance="high", doc="Accepted; nothing is traced."
    )
    tracing_only: bool = key(
        "tracing.with.context.field.only", default=False, importance="high", doc="Accepted; nothing is traced."
    )

    def problems(self) -> Iterable[Problem]:
        try:
            placements(self.additional)
        except ValueError as error:
            yield Problem("table.fields.additional.placement", str(error))


def placements(texts: list[str]) -> list[_Additional]:
    """The placements in ``table.fields.additional.placement``. Raises ValueError."""
    placed = []
    for text in texts:
        parts = [part.strip() for part in text.split(":")]
        if len(parts) not in (2, 3) or parts[1].lower() not in _PLACEMENTS or not parts[0]:
            raise ValueError(f"{text!r} must be column:placement or column:placement:alias, with one of {_PLACEMENTS}")
        placed.append(_Additional(parts[0], parts[1].lower(), parts[2] if len(parts) == 3 else parts[0]))
    return placed


class EventRouter(Transformation):
    """Inserts are events.

    Deletes, tombstones and, depending on ``table.op.invalid.behavior``, updates are dropped. Records that are not
    change events pass unchanged.
    """

    config_class = EventRouterConfig
    config: EventRouterConfig

    @cached_property
    def _additional(self) -> list[_Additional]:
        return placements(self.config.additional)

    @cached_property
    def _expansion(self) -> Expansion:
        return Expansion(
            null_bytes=self.config.json_null.lower() == "optional_bytes",
            empty_strings=self.config.json_empty.lower() == "optional_string",
        )

    def apply_record(self, record: Record) -> Record | None:
        if record.value is None:
            return None
        if not is_envelope(record.value_schema):
            return record
        operation = record.value.get("op")
        if operation == "d":
            return None
        if operation == "u":
            self._unexpected(record)
            return None
        assert record.value_schema is not None
        return self._event(record, record.value_schema)

    def _unexpected(self, record: Record) -> None:
        behaviour = self.config.invalid.lower()
        if behaviour == "fatal":
            raise DataError(f"Unexpected update message received {record.key}, fail.")
        (logger.warning if behaviour == "warn" else logger.error)("update of an outbox left out", topic=record.topic)

    def _event(self, record: Record, envelope: Schema) -> Record:
        row, schema = record.value.get("after"), envelope.field("after").schema
        if row is None:
            raise DataError("Only Struct objects supported for [Read Outbox Event], found: null")
        payload_schema = self._member(schema, self.config.payload, "payload")
        time = self._time(record, schema, row)
        event_id = _value(schema, row, self.config.event_id)
        payload = _value(schema, row, self.config.payload)
        headers = [*record.headers, Header("id", event_id, schema.field(self.config.event_id).schema)]
        if self.config.expand and isinstance(payload, str):
            expanded = self._expansion.expanded(self.config.payload, payload)
            if expanded is None:
                logger.warning("the payload of an outbox event is not JSON", topic=record.topic)
            else:
                payload_schema, payload = expanded
        route = self._text(schema, row, self.config.route_field)
        made_schema, made = self._enveloped(schema, row, route, payload_schema, payload)
        if self.config.tombstones and (payload is None or not str(payload).strip()):
            made_schema = made = None
        partition = None
        for extra in self._additional:
            if extra.field not in schema.field_names:
                self._missing(extra)
            elif extra.placement == "header":
                headers.append(Header(extra.alias, _value(schema, row, extra.field), schema.field(extra.field).schema))
            elif extra.placement == "partition":
                partition = _value(schema, row, extra.field)
        key_name = self.config.event_key
        event_key = _value(schema, row, key_name)
        return Record(
            topic=self._topic(route),
            key=event_key,
            key_schema=schema.field(key_name).schema,
            value=made,
            value_schema=made_schema,
            partition=partition,
            timestamp_ms=time,
            headers=tuple(headers),
            offset=record.offset,
            origin=record.origin,
        )

    def _enveloped(
        self, schema: Schema, row: dict[str, Any], route: str, payload_schema: Schema, payload: Any
    ) -> tuple[Schema | None, Any]:
        """The payload alone, or in a struct with the columns placed there."""
        beside = [extra for extra in self._additional if extra.placement == "envelope"]
        if not beside:
            return payload_schema, payload
        fields, values = {"payload": payload_schema}, {"payload": payload}
        for extra in beside:
            if extra.field not in schema.field_names:
                self._missing(extra)
                continue
            fields[extra.alias] = schema.field(extra.field).schema
            values[extra.alias] = _value(schema, row, extra.field)
        version = self.config.schema_version
        number = _value(schema, row, version) if version else None
        return Schema.struct(fields, name=_name(schema.name, route), version=number), values

    def _missing(self, extra: _Additional) -> None:
        lenient = (
            self.config.missing.lower() == "ignore"
            if self.config.error_on_missing is None
            else not self.config.error_on_missing
        )
        if not lenient:
            raise DataError(f"{extra.field} is not a valid field name of the event")

    def _member(self, schema: Schema, name: str, what: str) -> Schema:
        if name not in schema.field_names:
            raise DataError(f"Unable to find {what} field {name} in event; there are: {', '.join(schema.field_names)}")
        return schema.field(name).schema

    def _text(self, schema: Schema, row: dict[str, Any], name: str) -> str:
        value = _value(schema, row, name)
        if not isinstance(value, str):
            raise DataError(f"Field '{name}' is not of type STRING, or null: there is no topic for the event")
        return value

    def _topic(self, route: str) -> str:
        topic = JavaRegex(self.config.route_regex).replace_whole(route, self.config.route_replacement)
        return route if topic is None else topic

    def _time(self, record: Record, schema: Schema, row: dict[str, Any]) -> int | None:
        changed: int | None = record.value.get("ts_ms")
        name = self.config.timestamp
        if name is None:
            return changed
        member = self._member(schema, name, "timestamp")
        value = _value(schema, row, name)
        if value is None:
            return changed
        if member.name not in _UNITS:
            what = f"{member.type.name} (without logical schema name)" if member.name is None else member.name
            raise DataError(f"Unsupported field type {what} for event timestamp")
        return int(value) // _UNITS[member.name]


def _value(schema: Schema, row: dict[str, Any], name: str) -> Any:
    if name not in schema.field_names:
        raise DataError(f"{name} is not a valid field name of the event; there are: {', '.join(schema.field_names)}")
    value = row.get(name)
    return schema.field(name).schema.default if value is None else value


def _name(name: str | None, route: str) -> str:
    """The table's schema name with the topic's part before its last step."""
    if name is None:
        return route
    before, dot, last = name.rpartition(".")
    return f"{before}{dot}{route}.{last}"
