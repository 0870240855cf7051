"""The registry's whole state, rebuilt from the records of its topic in order. No I/O, no waiting."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from registry.formats import SCHEMA_TYPES
from registry.model.associations import Association, AssociationIndex
from registry.model.foreign import canonical, is_foreign
from registry.model.records import (
    InvalidRecord,
    KeyType,
    RecordKey,
    SchemaVersion,
    decode_key,
    decode_value,
    encode_key,
)
from registry.model.subjects import DEFAULT_CONTEXT, context_of, subject_matcher, within

__all__ = ["State"]


class State:
    """Subjects, ids, settings. Only ``apply`` changes it, so that every registry on the topic agrees."""

    def __init__(self) -> None:
        self.revision = 0
        """Incremented with every record: an answer for a revision stays valid for that revision."""
        self.promised: dict[str, int] = {}
        """The highest id by context assigned to pending writes; not part of the log's state."""
        self.configs: dict[str | None, dict[str, Any]] = {}
        self.modes: dict[str | None, str] = {}
        self.associations = AssociationIndex()
        self._subjects: dict[str, dict[int, SchemaVersion]] = {}
        self._by_id: dict[str, dict[int, set[tuple[str, int]]]] = defaultdict(dict)
        self._ids: dict[str, dict[bytes, int]] = defaultdict(dict)
        self._max_id: dict[str, int] = defaultdict(int)
        self._referrers: dict[tuple[str, int], set[tuple[str, int]]] = defaultdict(set)
        self._foreign_keys: dict[RecordKey, set[bytes]] = defaultdict(set)
        self._contexts: set[str] = set()

    # -- applying records

    def apply(
        self, key_bytes: bytes | None, value_bytes: bytes | None, *, offset: int = -1, timestamp_ms: int | None = None
    ) -> None:
        """Apply the next record. If it raises InvalidRecord, it has changed nothing."""
        key = decode_key(key_bytes)
        value = decode_value(key, value_bytes, timestamp_ms)
        # All checks that may refuse the record come first.
        if isinstance(value, SchemaVersion):
            value = self._readable(value)
        association = self._association(key, value, timestamp_ms)
        up_to = value.get("version") if key.type is KeyType.DELETE_SUBJECT and isinstance(value, dict) else 0
        if not isinstance(up_to, int):
            raise InvalidRecord("a DELETE_SUBJECT record needs a version")
        self.revision += 1
        if key_bytes is not None:
            self._note_bytes(key, key_bytes, value is None)
        match key.type:
            case KeyType.SCHEMA:
                self._forget(str(key.subject), key.version or 0)
                if isinstance(value, SchemaVersion):
                    self._add(value)
            case KeyType.CLEAR_SUBJECT if isinstance(value, dict):
                self._clear(key.subject)
            case KeyType.DELETE_SUBJECT if isinstance(value, dict):
                self._soft_delete(str(key.subject), up_to)
            case KeyType.CONFIG:
                _put(self.configs, key.subject, value)
            case KeyType.MODE:
                mode = value.get("mode") if isinstance(value, dict) else None
                _put(self.modes, key.subject, mode if isinstance(mode, str) else None)
            case KeyType.CONTEXT if key.context is not None:
                if value is None:
                    self._contexts.discard(key.context)
                else:
                    self._contexts.add(key.context)
            case KeyType.ASSOC if key.resource is not None:
                if association is None:
                    self.associations.remove(str(key.subject), key.resource)
                else:
                    self.associations.put(association)

    def _association(self, key: RecordKey, value: object, timestamp_ms: int | None) -> Association | None:
        if key.resource is None or not isinstance(value, dict):
            return None
        subject = str(key.subject)
        old = self.associations.get(subject, key.resource)
        try:
            return Association.read(subject, key.resource, value, timestamp_ms, old)
        except ValueError as error:
            raise InvalidRecord(str(error)) from error

    def _readable(self, version: SchemaVersion) -> SchemaVersion:
        """The version to store. Raises InvalidRecord if it can't be stored."""
        if self.closes_circle(version):
            raise InvalidRecord(
                f"{version.subject} version {version.version} refers to itself by way of its references"
            )
        if is_foreign(version):
            version = canonical(version, self.version)
        self._check_id(version)
        return version

    def closes_circle(self, version: SchemaVersion) -> bool:
        """Whether a version would refer to itself, directly or indirectly."""
        mine = version.subject, version.version
        ahead = [(within(version.subject, reference.subject), reference.version) for reference in version.references]
        if mine not in ahead and not self._referrers.get(mine):
            return False  # the usual case: nothing refers to a new version
        seen: set[tuple[str, int]] = set()
        while ahead:
            key = ahead.pop()
            if key == mine:
                return True
            if key in seen:
                continue
            seen.add(key)
            referrer = self.version(*key)
            if referrer is not None:
                ahead += [
                    (within(referrer.subject, reference.subject), reference.version)
                    for reference in referrer.references
                ]
        return False

    def _check_id(self, version: SchemaVersion) -> None:
        """An id never changes its meaning within a context: a record that would change it is skipped, as in Confluent."""
        for subject, number in self._by_id[context_of(version.subject)].get(version.id, ()):
            if self._subjects[subject][number].schema != version.schema:
                raise InvalidRecord(
                    f"{version.subject} version {version.version} has id {version.id}, which is that of another schema, "
                    f"{subject} version {number}"
                )
            return

    def _note_bytes(self, key: RecordKey, key_bytes: bytes, deleted: bool) -> None:
        if key_bytes != encode_key(key):
            if deleted:
                self._foreign_keys[key].discard(key_bytes)
            else:
                self._foreign_keys[key].add(key_bytes)

    def _add(self, version: SchemaVersion) -> None:
        context = context_of(version.subject)
        for subject, number in self._by_id[context].get(version.id, ()):
            # Share one text in memory among all subjects with the schema.
            twin = self._subjects[subject][number]
            if twin.schema == version.schema:
                version = dataclasses.replace(version, schema=twin.schema)
            break
        versions = self._subjects.setdefault(version.subject, {})
        in_order = not versions or version.version > next(reversed(versions))
        versions[version.version] = version
        if not in_order:
            self._subjects[version.subject] = dict(sorted(versions.items()))
        if context != DEFAULT_CONTEXT:
            self._contexts.add(context)
        self._by_id[context].setdefault(version.id, set()).add((version.subject, version.version))
        self._ids[context][version.fingerprint] = version.id
        self._max_id[context] = max(self._max_id[context], version.id)
        for reference in version.references:
            self._referrers[within(version.subject, reference.subject), reference.version].add(
                (version.subject, version.version)
            )

    def _forget(self, subject: str, number: int) -> None:
        versions = self._subjects.get(subject)
        version = versions.pop(number, None) if versions is not None else None
        if version is None:
            return
        if not versions:
            del self._subjects[subject]
        context = context_of(subject)
        holders = self._by_id[context][version.id]
        holders.discard((subject, number))
        if not holders:
            del self._by_id[context][version.id]
            if self._ids[context].get(version.fingerprint) == version.id:
                del self._ids[context][version.fingerprint]
        for reference in version.references:
            self._referrers[within(subject, reference.subject), reference.version].discard((subject, number))

    def _soft_delete(self, subject: str, up_to: int) -> None:
        for number, version in self._subjects.get(subject, {}).items():
            if number <= up_to:
                self._subjects[subject][number] = dataclasses.replace(version, deleted=True)

    def _clear(self, subject: str | None) -> None:
        """Drop the soft-deleted versions of a subject, a context or all, before an import."""
        matches = subject_matcher(subject)
        for name in [name for name in self._subjects if matches(name)]:
            for version in [candidate for candidate in self._subjects[name].values() if candidate.deleted]:
                self._forget(name, version.version)

    # -- queries

    def foreign_keys(self, key: RecordKey) -> tuple[bytes, ...]:
        """Live keys of the same meaning that another registry wrote: they have to be deleted together with ours."""
        return tuple(sorted(self._foreign_keys.get(key, ())))

    def subjects(self) -> list[str]:
        """Every subject that has a version, deleted or not, sorted."""
        return sorted(self._subjects)

    def versions(self, subject: str, *, deleted: bool = False) -> list[SchemaVersion]:
        """The versions of a subject, oldest first; ``deleted`` adds the soft-deleted ones."""
        return [version for version in self._subjects.get(subject, {}).values() if deleted or not version.deleted]

    def version(self, subject: str, number: int) -> SchemaVersion | None:
        return self._subjects.get(subject, {}).get(number)

    def next_version(self, subject: str) -> int:
        return max(self._subjects.get(subject, {}), default=0) + 1

    def next_id(self, context: str) -> int:
        return max(self._max_id[context], self.promised.get(context, 0)) + 1

    def max_id(self, context: str) -> int:
        return self._max_id[context]

    def id_of(self, context: str, fingerprint: bytes) -> int | None:
        """The id of exactly this schema in a context, under any subject."""
        return self._ids[context].get(fingerprint)

    def id_of_guid(self, context: str, guid: bytes) -> int | None:
        """The id that a schema has in a context, by its guid, whatever its type."""
        ids = self._ids[context]
        return next((ids[key] for kind in SCHEMA_TYPES if (key := _with_type(guid, kind)) in ids), None)

    def by_id(self, context: str, schema_id: int) -> list[SchemaVersion]:
        """Every version with this id, by subject and number."""
        keys = sorted(self._by_id[context].get(schema_id, ()))
        return [self._subjects[subject][number] for subject, number in keys]

    def under(self, subject: str, schema_id: int) -> list[SchemaVersion]:
        """The versions of one subject with this id, oldest first."""
        numbers = [number for name, number in self._by_id[context_of(subject)].get(schema_id, ()) if name == subject]
        return [self._subjects[subject][number] for number in sorted(numbers)]

    def contexts(self) -> list[str]:
        """The default context, then the others by name."""
        return [DEFAULT_CONTEXT, *sorted(self._contexts)]

    def referrers(self, subject: str, number: int) -> list[SchemaVersion]:
        """The versions that refer to this one, by subject and number; including soft-deleted ones."""
        return [self._subjects[s][n] for s, n in sorted(self._referrers.get((subject, number), ()))]

    def all_versions(self, subjects: Iterable[str] | None = None) -> Iterator[SchemaVersion]:
        for subject in self.subjects() if subjects is None else subjects:
            yield from self._subjects[subject].values()


def _with_type(guid: bytes, schema_type: str) -> bytes:
    """See ``SchemaVersion.fingerprint``."""
    return guid if schema_type == "AVRO" else guid + schema_type.encode()


def _put(table: dict[str | None, Any], subject: str | None, value: Any) -> None:
    if value is None:
        table.pop(subject, None)
    else:
        table[subject] = value
