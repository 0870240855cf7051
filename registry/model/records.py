"""The records of the ``_schemas`` topic: Confluent's keys byte for byte, and the variants of other registries.

Keys are compact JSON in a fixed order of members (keytype, subject, version, magic), because compaction compares bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final
from uuid import UUID

import orjson

from registry.errors import InvalidBody
from registry.formats.json_text import write_json
from registry.formats.parsed import Reference
from registry.model import contracts
from registry.model.associations import Resource

__all__ = [
    "TENANT",
    "InvalidRecord",
    "KeyType",
    "RecordKey",
    "SchemaVersion",
    "UnknownKeyType",
    "decode_key",
    "decode_value",
    "encode_key",
    "encode_value",
]


TENANT: Final = "default"
"""The tenant in CONTEXT records; self-managed registries have no other."""


class InvalidRecord(ValueError):
    """The bytes are not a record of a schema registry."""


class UnknownKeyType(InvalidRecord):
    """A record of a newer registry: kept silently, without a warning for each."""

    def __init__(self, keytype: str) -> None:
        super().__init__(f"records of keytype {keytype[:100]!r} are unknown to this registry")
        self.keytype = keytype


class KeyType(Enum):
    NOOP = "NOOP"
    SCHEMA = "SCHEMA"
    CONFIG = "CONFIG"
    MODE = "MODE"
    DELETE_SUBJECT = "DELETE_SUBJECT"
    CLEAR_SUBJECT = "CLEAR_SUBJECT"
    CONTEXT = "CONTEXT"
    ASSOC = "ASSOC"
    """The resource that a subject belongs to (Confluent 8)."""


_RESOURCE: Final = ("resourceName", "resourceNamespace", "resourceType", "associationType")
_KEY_TYPES: Final = {kind.value: kind for kind in KeyType}


@dataclass(frozen=True, slots=True)
class RecordKey:
    """The key of a record. ``subject`` None is the global config or mode. SCHEMA keys have a ``version``.

    CONTEXT keys have a ``context``, ASSOC keys a ``resource``.
    """

    type: KeyType
    subject: str | None = None
    version: int | None = None
    context: str | None = None
    resource: Resource | None = None


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A schema registered under a subject. ``metadata`` and ``rule_set`` are JSON text in the order of ``contracts``.

    ``timestamp_ms`` is the time of its record; None before it was written.
    """

    subject: str
    version: int
    id: int
    schema: str
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: str | None = None
    rule_set: str | None = None
    deleted: bool = False
    timestamp_ms: int | None = None

    @property
    def fingerprint(self) -> bytes:
        """Equal for the same schema under any subject, so that these share an id.

        The hash behind ``guid``, and the type.
        """
        digest = self._digest()
        return digest if self.schema_type == "AVRO" else digest + self.schema_type.encode()

    @property
    def guid(self) -> str:
        """Confluent's name for a schema across contexts and registries: a hash of text, references, metadata and rules."""
        return str(UUID(bytes=self._digest()))

    def _digest(self) -> bytes:
        # Java replaces lone surrogates by "?".
        hashed = hashlib.md5(self.schema.encode(errors="replace"), usedforsecurity=False)
        for reference in self.references:
            hashed.update(f"{reference.name}{reference.subject}".encode(errors="replace"))
            hashed.update(reference.version.to_bytes(4, "big", signed=True))
        if self.metadata is not None or self.rule_set is not None:
            for text in contracts.hashed(self.metadata, self.rule_set):
                hashed.update(text.encode(errors="replace"))
        return hashed.digest()

    def as_record(self) -> dict[str, Any]:
        """Confluent's members of a record in Confluent's order, without empty ones."""
        value: dict[str, Any] = {
            "subject": self.subject,
            "version": self.version,
            "id": self.id,
            "schemaType": self.schema_type,
        }
        if self.references:
            value["references"] = [reference.as_json() for reference in self.references]
        if self.metadata is not None:
            value["metadata"] = json.loads(self.metadata)
        if self.rule_set is not None:
            value["ruleSet"] = json.loads(self.rule_set)
        return {**value, "schema": self.schema, "deleted": self.deleted}


def encode_key(key: RecordKey) -> bytes:
    # Called for each record read, to compare its key with our spelling: so it avoids an intermediate mapping.
    parts = [f'{{"keytype":"{key.type.value}"']
    if key.context is not None:
        parts.append(f'"tenant":"{TENANT}","context":{write_json(key.context)}')
    if key.resource is not None:
        parts.append(f'"tenant":"{TENANT}"')
        parts += (f'"{name}":{write_json(text)}' for name, text in zip(_RESOURCE, key.resource, strict=True))
    if key.subject is not None:
        parts.append(f'"subject":{write_json(key.subject)}')
    if key.version is not None:
        parts.append(f'"version":{key.version}')
    parts.append('"magic":1}' if key.type is KeyType.SCHEMA else '"magic":0}')
    return ",".join(parts).encode()


def encode_value(value: SchemaVersion | Mapping[str, Any]) -> bytes:
    if isinstance(value, SchemaVersion):
        return write_json(value.as_record()).encode()
    return write_json(value).encode()


def decode_key(data: bytes | None) -> RecordKey:
    """Decode a key of any registry. Raises InvalidRecord."""
    value = _object(data, "key")
    kind = value.get("keytype")
    if not isinstance(kind, str):
        raise InvalidRecord("the key has no keytype")
    type_ = _KEY_TYPES.get(kind)
    if type_ is None:
        raise UnknownKeyType(kind)
    subject, version = value.get("subject"), value.get("version")
    if subject is not None and not isinstance(subject, str):
        raise InvalidRecord(f"the subject of the key is {subject!r}, not text")
    if type_ is KeyType.SCHEMA:
        if subject is None or not _is_int(version):
            raise InvalidRecord("a SCHEMA key needs a subject and a version")
        if value.get("magic", 0) not in (0, 1):
            raise InvalidRecord(f"a SCHEMA key of format {value['magic']!r}; 0 and 1 are known")
        return RecordKey(type_, subject, version)
    if type_ is KeyType.CONTEXT:
        if not isinstance(value.get("context"), str):
            raise InvalidRecord("a CONTEXT key needs a context")
        return RecordKey(type_, context=value["context"])
    if type_ is KeyType.ASSOC:
        named = [value.get(name) for name in _RESOURCE]
        if subject is None or not all(isinstance(name, str) for name in named):
            raise InvalidRecord("an ASSOC key needs a subject and its resource")
        return RecordKey(type_, subject, resource=Resource(*map(str, named)))
    if type_ is KeyType.DELETE_SUBJECT and subject is None:
        raise InvalidRecord(f"a {type_.value} key needs a subject")
    return RecordKey(type_, subject)


def decode_value(
    key: RecordKey, data: bytes | None, timestamp_ms: int | None = None
) -> SchemaVersion | dict[str, Any] | None:
    """Decode the value that belongs to ``key``.

    None is a deletion, and so is Karapace's empty value. Raises InvalidRecord.
    """
    if not data or data == b"null":
        return None
    value = _object(data, "value")
    return _schema_version(key, value, timestamp_ms) if key.type is KeyType.SCHEMA else value


def _schema_version(key: RecordKey, value: dict[str, Any], timestamp_ms: int | None) -> SchemaVersion:
    schema_id, schema = value.get("id"), value.get("schema")
    if not _is_int(schema_id) or not isinstance(schema, str):
        raise InvalidRecord("a schema record needs an id and a schema")
    references = []
    listed = value.get("references") or ()
    if not isinstance(listed, list | tuple):
        raise InvalidRecord("the references of a schema record are not a list")
    for item in listed:
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
        metadata=_contract(contracts.read_metadata, value.get("metadata")),
        rule_set=_contract(contracts.read_rule_set, value.get("ruleSet")),
        deleted=value.get("deleted") is True,
        timestamp_ms=timestamp_ms,
    )


def _contract(read: Callable[[object], str | None], value: object) -> str | None:
    try:
        return read(value)
    except InvalidBody:
        return None  # keep the schema although its metadata is invalid


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _object(data: bytes | None, what: str) -> dict[str, Any]:
    try:
        value = orjson.loads(data or b"")
    except orjson.JSONDecodeError:
        value = _lenient(data or b"", what)
    if not isinstance(value, dict):
        raise InvalidRecord(f"the {what} is not a JSON object")
    return value


def _lenient(data: bytes, what: str) -> Any:
    """Accept what the strict parser refuses but other registries may have written: lone surrogates, NaN."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"the {what} is not JSON: {error}") from error
