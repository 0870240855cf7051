# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "ComponentData",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
    "EntityData",
    "EntryData",
    "ValueData",
]


class ComponentData(Message):
    __slots__ = (
        "entity_type",
        "match_type",
        "match",
    )
    FIELDS: ClassVar = (
        Field(name="entity_type", kind="string"),
        Field(name="match_type", kind="int8"),
        Field(name="match", kind="string", null_since=0),
    )

    def __init__(self, *, entity_type: str = "", match_type: int = 0, match: str | None = "") -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match


class DescribeClientQuotasRequest(Request):
    __slots__ = (
        "components",
        "strict",
    )
    API_KEY = 48
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (
        Field(name="components", kind=ComponentData, array=True),
        Field(name="strict", kind="bool"),
    )

    def __init__(self, *, components: Sequence[ComponentData] = (), strict: bool = False) -> None:
        self.components = components
        self.strict = strict


class EntityData(Message):
    __slots__ = (
        "entity_type",
        "entity_name",
    )
    FIELDS: ClassVar = (
        Field(name="entity_type", kind="string"),
        Field(name="entity_name", kind="string", null_since=0),
    )

    def __init__(self, *, entity_type: str = "", entity_name: str | None = "") -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class ValueData(Message):
    __slots__ = (
        "key",
        "value",
    )
    FIELDS: ClassVar = (
        Field(name="key", kind="string"),
        Field(name="value", kind="float64"),
    )

    def __init__(self, *, key: str = "", value: float = 0.0) -> None:
        self.key = key
        self.value = value


class EntryData(Message):
    __slots__ = (
        "entity",
        "values",
    )
    FIELDS: ClassVar = (
        Field(name="entity", kind=EntityData, array=True),
        Field(name="values", kind=ValueData, array=True),
    )

    def __init__(self, *, entity: Sequence[EntityData] = (), values: Sequence[ValueData] = ()) -> None:
        self.entity = entity
        self.values = values


class DescribeClientQuotasResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "entries",
    )
    API_KEY = 48
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="entries", kind=EntryData, array=True, null_since=0),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: Sequence[EntryData] | None = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = entries
