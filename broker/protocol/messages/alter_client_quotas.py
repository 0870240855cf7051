# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "EntityData",
    "EntryData",
    "OpData",
    "ResponseEntityData",
    "ResponseEntryData",
]


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


class OpData(Message):
    __slots__ = (
        "key",
        "value",
        "remove",
    )
    FIELDS: ClassVar = (
        Field(name="key", kind="string"),
        Field(name="value", kind="float64"),
        Field(name="remove", kind="bool"),
    )

    def __init__(self, *, key: str = "", value: float = 0.0, remove: bool = False) -> None:
        self.key = key
        self.value = value
        self.remove = remove


class EntryData(Message):
    __slots__ = (
        "entity",
        "ops",
    )
    FIELDS: ClassVar = (
        Field(name="entity", kind=EntityData, array=True),
        Field(name="ops", kind=OpData, array=True),
    )

    def __init__(self, *, entity: Sequence[EntityData] = (), ops: Sequence[OpData] = ()) -> None:
        self.entity = entity
        self.ops = ops


class AlterClientQuotasRequest(Request):
    __slots__ = (
        "entries",
        "validate_only",
    )
    API_KEY = 49
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (
        Field(name="entries", kind=EntryData, array=True),
        Field(name="validate_only", kind="bool"),
    )

    def __init__(self, *, entries: Sequence[EntryData] = (), validate_only: bool = False) -> None:
        self.entries = entries
        self.validate_only = validate_only


class ResponseEntityData(Message):
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


class ResponseEntryData(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "entity",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="entity", kind=ResponseEntityData, array=True),
    )

    def __init__(
        self, *, error_code: int = 0, error_message: str | None = "", entity: Sequence[ResponseEntityData] = ()
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = entity


class AlterClientQuotasResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "entries",
    )
    API_KEY = 49
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="entries", kind=ResponseEntryData, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, entries: Sequence[ResponseEntryData] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = entries
