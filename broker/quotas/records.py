"""Client quotas as records of the metadata log (Kafka's ``ClientQuotaRecord``)."""

from __future__ import annotations

from collections.abc import Sequence

from broker.protocol.declare import structure, wire
from broker.protocol.metadata_record import MetadataRecord
from broker.protocol.schema import Message

__all__ = ["ClientQuotaRecord", "QuotaEntity"]


@structure
class QuotaEntity(Message):
    """One part of a quota's entity. Without a name it is the default of that type."""

    entity_type: str = wire("string")
    entity_name: str | None = wire("string", null_since=0, default=None)


@structure
class ClientQuotaRecord(MetadataRecord):
    """A quota was set, or removed (``remove``)."""

    API_KEY = 14
    entity: Sequence[QuotaEntity] = wire(QuotaEntity, array=True)
    key: str = wire("string")
    value: float = wire("float64")
    remove: bool = wire("bool")
