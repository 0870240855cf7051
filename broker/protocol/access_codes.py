"""The wire codes of access control entries (``org.apache.kafka.common.acl`` and ``.resource``)."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Operation", "PatternType", "Permission", "ResourceType"]


class Operation(IntEnum):
    """Kafka's ``AclOperation``, by its wire codes."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """Kafka's ``ResourceType``, by its wire codes."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Kafka's ``PatternType``, by its wire codes. ANY and MATCH are for filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Kafka's ``AclPermissionType``, by its wire codes."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3
