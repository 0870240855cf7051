"""Access control entries as records of the metadata log (Kafka's ``AccessControlEntryRecord`` and its removal)."""

from __future__ import annotations

import uuid
from typing import ClassVar

from broker.protocol.metadata_record import MetadataRecord
from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field

__all__ = ["AccessControlEntryRecord", "RemoveAccessControlEntryRecord"]


class AccessControlEntryRecord(MetadataRecord):
    """An entry was added; types, operation and permission by their wire codes."""

    __slots__ = (
        "acl_id", "host", "operation", "pattern_type", "permission_type", "principal", "resource_name", "resource_type",
    )  # fmt: skip
    API_KEY = 18
    FIELDS: ClassVar = (
        Field(name="acl_id", kind="uuid"),
        Field(name="resource_type", kind="int8"),
        Field(name="resource_name", kind="string"),
        Field(name="pattern_type", kind="int8"),
        Field(name="principal", kind="string"),
        Field(name="host", kind="string"),
        Field(name="operation", kind="int8"),
        Field(name="permission_type", kind="int8"),
    )

    def __init__(
        self,
        *,
        acl_id: uuid.UUID = ZERO_UUID,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.acl_id = acl_id
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class RemoveAccessControlEntryRecord(MetadataRecord):
    """The entry of that id was removed."""

    __slots__ = ("acl_id",)
    API_KEY = 19
    FIELDS: ClassVar = (Field(name="acl_id", kind="uuid"),)

    def __init__(self, *, acl_id: uuid.UUID = ZERO_UUID) -> None:
        self.acl_id = acl_id
