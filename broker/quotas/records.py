"""Client quotas as records of the metadata log (Kafka's ``ClientQuotaRecord``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.metadata_record import MetadataRecord
from broker.protocol.schema import Field, Message

__all__ = ["ClientQuotaRecord", "QuotaEntity"]


class QuotaEntity(Message):
    """One part of whom a quota is for; no name stands for the default of that type."""

    __slots__ = ("entity_name", "entity_type")
    FIELDS: ClassVar = (
        Field(name="entity_type", kind="string"),
        Field(name="entity_name", kind="string", null_since=0),
    )

    def __init__(self, *, entity_type: str = "", entity_name: str | None = None) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class ClientQuotaRecord(MetadataRecord):
    """A quota was set, or with ``remove`` taken back."""

    __slots__ = ("entity", "key", "remove", "value")
    API_KEY = 14
    FIELDS: ClassVar = (
        Field(name="entity", kind=QuotaEntity, array=True),
        Field(name="key", kind="string"),
        Field(name="value", kind="float64"),
        Field(name="remove", kind="bool"),
    )

    def __init__(
        self, *, entity: Sequence[QuotaEntity] = (), key: str = "", value: float = 0.0, remove: bool = False
    ) -> None:
        self.entity = entity
        self.key = key
        self.value = value
        self.remove = remove
