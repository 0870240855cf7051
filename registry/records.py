"""The records of the ``_schemas`` topic: Confluent's keys byte for byte, and whatever other registries wrote there.

Keys are compact JSON in a fixed order of members (keytype, subject, version, magic); compaction goes by their bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from registry.formats.avro.text import write_json
from registry.formats.parsed import Reference

__all__ = [
    "InvalidRecord",
    "KeyType",
    "RecordKey",
    "SchemaVersion",
    "decode_key",
    "decode_value",
    "encode_key",
    "encode_value",
]


class InvalidRecord(ValueError):
    """The bytes are no record of a schema registry."""


class KeyType(Enum):
    NOOP = "NOOP"
    SCHEMA = "SCHEMA"
    CONFIG = "CONFIG"
    MODE = "MODE"
    DELETE_SUBJECT = "DELETE_SUBJECT"
    CLEAR_SUBJECT = "CLEAR_SUBJECT"
    CONTEXT = "CONTEXT"
    OTHER = "OTHER"
    """Written by a registry that knows more than this one; passed over."""


@dataclass(frozen=True, slots=True)
class RecordKey:
    """What a record is about. ``subject`` None is the global config or mode; ``version`` belongs to SCHEMA keys."""

    type: KeyType
    subject: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A schema registered under a subject. ``metadata`` and ``rule_set`` are kept as their JSON."""

    subject: str
    version: int
    id: int
    schema: str
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: str | None = None
    rule_set: str | None = None
    deleted: bool = False

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """Equal for the same schema under any subject: these share an id."""
        return (self.schema_type, self.schema, self.references, self.metadata, self.rule_set)

    def as_json(self, *, schema_type: bool = True) -> dict[str, Any]:
        """Confluent's members in Confluent's order, without what is empty."""
        return {
            "subject": self.subject,
            "version": self.version,
            "id": self.id,
            **self.definition_as_json(schema_type=schema_type),
        }

    def definition_as_json(self, *, schema_type: bool = True) -> dict[str, Any]:
        """The schema itself, without where it is registered."""
        value: dict[str, Any] = {"schemaType": self.schema_type} if schema_type else {}
        if self.references:
            value["references"] = [reference.as_json() for reference in self.references]
        if self.metadata is not None:
            value["metadata"] = json.loads(self.metadata)
        if self.rule_set is not None:
            value["ruleSet"] = json.loads(self.rule_set)
        value["schema"] = self.schema
        return value


def encode_key(key: RecordKey) -> bytes:
    value: dict[str, Any] = {"keytype": key.type.value}
    if key.subject is not None:
        value["subject"] = key.subject
    if key.version is not None:
        value["version"] = key.version
    value["magic"] = 1 if key.type is KeyType.SCHEMA else 0
    return write_json(value).encode()


def encode_value(value: SchemaVersion | Mapping[str, Any]) -> bytes:
    if isinstance(value, SchemaVersion):
        return write_json({**value.as_json(), "deleted": value.deleted}).encode()
    return write_json(value).encode()


def decode_key(data: bytes | None) -> RecordKey:
    """Read a key of any registry; raises InvalidRecord."""
    value = _object(data, "key")
    kind = value.get("keytype")
    if not isinstance(kind, str):
        raise InvalidRecord("the key has no keytype")
    try:
        type_ = KeyType(kind)
    except ValueError:
        type_ = KeyType.OTHER
    subject, version = value.get("subject"), value.get("version")
    if subject is not None and not isinstance(subject, str):
        raise InvalidRecord(f"the subject of the key is {subject!r}, not text")
    if type_ is KeyType.SCHEMA:
        if subject is None or not _is_int(version):
            raise InvalidRecord("a SCHEMA key needs a subject and a version")
        return RecordKey(type_, subject, version)
    if type_ is KeyType.DELETE_SUBJECT and subject is None:
        raise InvalidRecord(f"a {type_.value} key needs a subject")
    return RecordKey(type_, subject)


def decode_value(key: RecordKey, data: bytes | None) -> SchemaVersion | dict[str, Any] | None:
    """Read the value that belongs to ``key``; None is a deletion, as is Karapace's empty value. Raises InvalidRecord."""
    if not data or data == b"null":
        return None
    value = _object(data, "value")
    return _schema_version(key, value) if key.type is KeyType.SCHEMA else value


def _schema_version(key: RecordKey, value: dict[str, Any]) -> SchemaVersion:
    schema_id, schema = value.get("id"), value.get("schema")
    if not _is_int(schema_id) or not isinstance(schema, str):
        raise InvalidRecord("a schema record needs an id and a schema")
    references = []
    for item in value.get("references") or ():
        if not isinstance(item, dict) or not isinstance(item.get("subject"), str) or not _is_int(item.get("version")):
            raise InvalidRecord("a reference needs a name, a subject and a version")
        references.append(Reference(str(item.get("name")), item["subject"], item["version"]))
    return SchemaVersion(
        subject=str(key.subject),
        version=int(key.version or 0),
        id=int(schema_id or 0),
        schema=schema,
        schema_type=str(value.get("schemaType") or "AVRO"),
        references=tuple(references),
        metadata=_kept(value.get("metadata")),
        rule_set=_kept(value.get("ruleSet")),
        deleted=value.get("deleted") is True,
    )


def _kept(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _object(data: bytes | None, what: str) -> dict[str, Any]:
    try:
        value = json.loads(data or b"")
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"the {what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidRecord(f"the {what} is not a JSON object")
    return value
