"""Access control entries as records of the metadata log (Kafka's ``AccessControlEntryRecord`` and its removal)."""

from __future__ import annotations

import uuid

from broker.protocol.declare import structure, wire
from broker.protocol.metadata_record import MetadataRecord

__all__ = ["AccessControlEntryRecord", "RemoveAccessControlEntryRecord"]


@structure
class AccessControlEntryRecord(MetadataRecord):
    """An entry was added; types, operation and permission by their wire codes."""

    API_KEY = 18
    acl_id: uuid.UUID = wire("uuid")
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    pattern_type: int = wire("int8")
    principal: str = wire("string")
    host: str = wire("string")
    operation: int = wire("int8")
    permission_type: int = wire("int8")


@structure
class RemoveAccessControlEntryRecord(MetadataRecord):
    """The entry with this id was removed."""

    API_KEY = 19
    acl_id: uuid.UUID = wire("uuid")
