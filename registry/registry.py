"""The registry's operations: what may be registered, found and deleted. Knows the store, not HTTP."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, Final

from registry import compatibility
from registry.compatibility import Level, Previous
from registry.errors import (
    Incompatible,
    InvalidSchema,
    InvalidSubject,
    InvalidVersion,
    OperationNotPermitted,
    ReferenceExists,
    SchemaNotFound,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotFound,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from registry.formats.parsed import ParsedSchema
from registry.metrics import RegistryMetrics
from registry.records import KeyType, RecordKey, SchemaVersion, encode_value
from registry.schemas import Definition, Schemas
from registry.settings import Mode, Settings
from registry.state import State
from registry.store import Store
from registry.subjects import DEFAULT_CONTEXT, context_of, is_valid

__all__ = ["LATEST", "Registry", "parse_version"]

LATEST: Final = -1
"""The version number that means the newest one not deleted."""


class Registry:
    """One registry over one store. Questions are answered from memory at once; writes wait for the log.

    Subjects are given in their normal form (``subjects.normalize``).
    """

    def __init__(
        self, store: Store, metrics: RegistryMetrics, *, default_level: Level, mode_mutable: bool = True
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._mode_mutable = mode_mutable
        self._schemas = Schemas(store.state)
        self.settings = Settings(store.state, default_level)

    @property
    def state(self) -> State:
        return self._store.state

    # -- finding

    def subjects(self, prefix: str = "", *, deleted: bool = False, deleted_only: bool = False) -> list[str]:
        """Names of subjects, sorted; ``deleted`` adds and ``deleted_only`` selects those without a live version."""
        matching = [subject for subject in self.state.subjects() if _has_prefix(subject, prefix)]
        if deleted and not deleted_only:
            return matching
        return [subject for subject in matching if bool(self.state.versions(subject)) is not deleted_only]

    def versions(self, subject: str, *, deleted: bool = False, deleted_only: bool = False) -> list[SchemaVersion]:
        """The versions of a subject, oldest first; raises SubjectNotFound."""
        found = self.state.versions(subject, deleted=deleted or deleted_only)
        if not found:
            raise SubjectNotFound(subject)
        return [version for version in found if version.deleted] if deleted_only else found

    def version(self, subject: str, number: int, *, deleted: bool = False) -> SchemaVersion:
        """One version; raises SubjectNotFound or VersionNotFound."""
        versions = self.versions(subject, deleted=deleted)
        if number == LATEST:
            return versions[-1]
        found = next((version for version in versions if version.version == number), None)
        if found is None:
            raise VersionNotFound(number)
        return found

    def by_id(self, schema_id: int, subject: str | None = None) -> list[SchemaVersion]:
        """Every version that has the id, deleted ones too, in the context of ``subject``; raises SchemaNotFound."""
        found = self.state.by_id(DEFAULT_CONTEXT if subject is None else context_of(subject), schema_id)
        if subject is not None and (own := [version for version in found if version.subject == subject]):
            return own
        if not found:
            raise SchemaNotFound(schema_id)
        return found

    def referenced_by(self, subject: str, number: int, *, deleted: bool = False) -> list[int]:
        """Ids of the schemas that refer to a version, ascending."""
        version = self.version(subject, number, deleted=True)
        referrers = self.state.referrers(subject, version.version)
        return sorted({referrer.id for referrer in referrers if deleted or not referrer.deleted})

    def lookup(
        self, subject: str, definition: Definition, *, normalize: bool = False, deleted: bool = False
    ) -> SchemaVersion:
        """Where this schema is registered under the subject; raises SubjectNotFound or SchemaNotFound."""
        versions = self.versions(subject, deleted=deleted)
        if not definition.schema.strip():
            return versions[-1]
        parsed = self._parse(subject, definition, normalize=normalize, strict=False)
        found = self._find(versions, parsed, self._stored_form(subject, definition, parsed))
        if found is None:
            raise SchemaNotFound
        return found

    def _find(
        self, versions: Sequence[SchemaVersion], parsed: ParsedSchema, wanted: Definition
    ) -> SchemaVersion | None:
        """The newest version that is the same schema, or the same with the references of that version written out."""
        for version in reversed(versions):
            if version.schema_type != wanted.schema_type:
                continue
            # What a client leaves out, it does not ask about.
            if wanted.metadata not in (None, version.metadata) or wanted.rule_set not in (None, version.rule_set):
                continue
            if (version.schema, version.references) == (wanted.schema, wanted.references):
                return version
            written_out = version.references and not wanted.references
            if written_out and self._schemas.stored(version).resolved == parsed.resolved:
                return version
        return None

    def check(self, subject: str, definition: Definition, number: int | None, *, normalize: bool = False) -> list[str]:
        """Why the schema would be refused after version ``number`` (None: all); empty when it is compatible."""
        versions = self.state.versions(subject)
        if number == LATEST:
            versions = versions[-1:]
        elif number is not None:
            versions = [version for version in versions if version.version == number]
            if not versions:
                raise VersionNotFound(number)
        if not definition.schema.strip():
            raise InvalidSchema("Empty schema")
        parsed = self._parse(subject, definition, normalize=normalize, strict=True)
        return self._incompatibilities(subject, parsed, definition.metadata, versions)

    # -- registering

    async def register(
        self,
        subject: str,
        definition: Definition,
        *,
        schema_id: int | None = None,
        version: int | None = None,
        normalize: bool = False,
        force: bool = False,
    ) -> SchemaVersion:
        """Register a schema and return its version once the log has it; the same schema again gives the same one.

        ``schema_id`` and ``version`` are for import mode. ``force`` leaves out the compatibility check.
        """
        if not is_valid(subject):
            raise InvalidSubject(subject)
        if definition.schema.strip() and (known := self._known(subject, definition, schema_id, version, normalize)):
            return known
        async with self._store.writing():
            self.settings.check_register(subject, with_id=schema_id is not None)
            importing = self.settings.mode_in_scope(subject) is Mode.IMPORT
            current = self.state.versions(subject)
            if not importing:
                definition = _filled_from(definition, current)
            parsed = self._parse(subject, definition, normalize=normalize, strict=schema_id is None)
            stored = self._stored_form(subject, definition, parsed)
            found = self._find(current, parsed, stored) if version is None else None
            if found is not None and schema_id in (None, found.id) and _same_annotations(found, stored):
                return found
            if not importing and not force:
                problems = self._incompatibilities(subject, parsed, stored.metadata, current)
                if problems:
                    self._metrics.incompatible.inc()
                    raise Incompatible(subject, problems)
            made = self._place(subject, stored, schema_id, version, importing)
            await self._drop_deleted_twins(made)
            await self._store.put(RecordKey(KeyType.SCHEMA, subject, made.version), encode_value(made))
            self._metrics.registered.labels(made.schema_type).inc()
            return made

    def _known(
        self, subject: str, definition: Definition, schema_id: int | None, version: int | None, normalize: bool
    ) -> SchemaVersion | None:
        """The version that answers a registration without a write; most registrations are of this kind."""
        current = self.state.versions(subject)
        if not current:
            return None
        parsed = self._parse(subject, definition, normalize=normalize, strict=False)
        found = self._find(current, parsed, self._stored_form(subject, definition, parsed))
        if found is None or schema_id not in (None, found.id) or version not in (None, found.version):
            return None
        return found

    def _place(
        self, subject: str, stored: Definition, schema_id: int | None, version: int | None, importing: bool
    ) -> SchemaVersion:
        """Give a schema its version number and id; raises where the client's own do not fit."""
        number = self.state.next_version(subject)
        if version is not None and version != number and not importing:
            raise InvalidSchema(f"Version is not one more than previous version: {version} was given, {number} is next")
        number = version or number
        context = context_of(subject)
        made = SchemaVersion(
            subject,
            number,
            0,
            stored.schema,
            stored.schema_type,
            stored.references,
            stored.metadata,
            stored.rule_set,
        )
        known = self.state.id_of(context, made.fingerprint)
        if schema_id is not None:
            holders = self.state.by_id(context, schema_id)
            if holders and holders[0].fingerprint != made.fingerprint:
                raise OperationNotPermitted(
                    f"Overwrite new schema with id {schema_id} in context {context} is not permitted."
                )
            return dataclasses.replace(made, id=schema_id)
        return dataclasses.replace(made, id=known if known is not None else self.state.next_id(context))

    async def _drop_deleted_twins(self, made: SchemaVersion) -> None:
        """Remove soft-deleted versions of the subject with the same id for good, unless something refers to them."""
        for old in self.state.versions(made.subject, deleted=True):
            twin = old.deleted and old.id == made.id and old.version < made.version
            if twin and not self.state.referrers(old.subject, old.version):
                await self._store.put(RecordKey(KeyType.SCHEMA, old.subject, old.version), None)

    def _parse(self, subject: str, definition: Definition, *, normalize: bool, strict: bool) -> ParsedSchema:
        normalize = normalize or self.settings.normalizes(subject)
        return self._schemas.parse(subject, definition, strict=strict, normalized=normalize)

    def _stored_form(self, subject: str, definition: Definition, parsed: ParsedSchema) -> Definition:
        """What is written: canonical text, and references to the latest version pinned to the one it is now."""
        references = tuple(
            dataclasses.replace(reference, version=self._schemas.referenced(subject, reference).version)
            for reference in definition.references
        )
        return dataclasses.replace(
            definition, schema=parsed.canonical, schema_type=parsed.schema_type, references=references
        )

    def _incompatibilities(
        self, subject: str, parsed: ParsedSchema, metadata: str | None, versions: Sequence[SchemaVersion]
    ) -> list[str]:
        level = self.settings.level(subject)
        group = self.settings.config_in_scope(subject).get("compatibilityGroup")
        if isinstance(group, str):
            wanted = _group(metadata, group)
            versions = [version for version in versions if _group(version.metadata, group) == wanted]
        if level is Level.NONE:
            return []
        if not level.transitive:
            versions = versions[-1:]
        previous = [Previous(version.version, self._schemas.stored(version)) for version in versions]
        return compatibility.check(level, parsed, previous)

    # -- deleting

    async def delete_version(self, subject: str, number: int, *, permanent: bool = False) -> int:
        """Delete a version, softly first and for good the second time; returns its number."""
        async with self._store.writing():
            version = self.version(subject, number, deleted=number != LATEST)
            if version.deleted and not permanent:
                raise VersionSoftDeleted(subject, number)
            self.settings.check_not_read_only(subject)
            self._check_unreferenced(version, permanent)
            if permanent and not version.deleted:
                raise VersionNotSoftDeleted(subject, version.version)
            key = RecordKey(KeyType.SCHEMA, subject, version.version)
            if permanent:
                await self._store.put(key, None)
                if not self.state.versions(subject, deleted=True):
                    await self._drop_settings(subject)
            else:
                await self._store.put(key, encode_value(dataclasses.replace(version, deleted=True)))
            self._metrics.deleted.inc()
            return version.version

    async def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete every version of a subject, softly first and for good the second time; returns their numbers."""
        async with self._store.writing():
            every = self.state.versions(subject, deleted=True)
            live = self.state.versions(subject)
            if not every:
                raise SubjectNotFound(subject)
            if not permanent and not live:
                raise SubjectSoftDeleted(subject)
            self.settings.check_not_read_only(subject)
            doomed = every if permanent else live
            for version in doomed:
                self._check_unreferenced(version, permanent, but_by=subject)
            if permanent and live:
                raise SubjectNotSoftDeleted(subject)
            if permanent:
                # Newest first: a version may refer to an older one of its own subject.
                for version in reversed(doomed):
                    await self._store.put(RecordKey(KeyType.SCHEMA, subject, version.version), None)
                await self._drop_settings(subject)
            else:
                value = {"subject": subject, "version": doomed[-1].version}
                await self._store.put(RecordKey(KeyType.DELETE_SUBJECT, subject), encode_value(value))
            self._metrics.deleted.inc(len(doomed))
            return [version.version for version in doomed]

    def _check_unreferenced(self, version: SchemaVersion, permanent: bool, but_by: str | None = None) -> None:
        for referrer in self.state.referrers(version.subject, version.version):
            if referrer.subject != but_by and (permanent or not referrer.deleted):
                raise ReferenceExists(version.subject, version.version)

    async def _drop_settings(self, subject: str) -> None:
        if self.settings.mode(subject) is not None:
            await self._store.put(RecordKey(KeyType.MODE, subject), None)
        if self.settings.config(subject) is not None:
            await self._store.put(RecordKey(KeyType.CONFIG, subject), None)

    # -- settings

    async def set_config(self, subject: str | None, changes: dict[str, Any]) -> dict[str, Any]:
        """Change a config; a None takes a setting away. Returns what is set now."""
        self._check_settings_subject(subject)
        async with self._store.writing() as state:
            self.settings.check_not_read_only(subject)
            merged = {**(state.configs.get(subject) or {}), **changes}
            value = {name: item for name, item in merged.items() if item is not None and name != "subject"}
            named = value if subject is None else {"subject": subject, **value}
            await self._store.put(RecordKey(KeyType.CONFIG, subject), encode_value(named))
            return value

    async def delete_config(self, subject: str | None) -> dict[str, Any]:
        """Go back to what is in force above; returns what was set. Raises SubjectNotFound where nothing was."""
        async with self._store.writing():
            before = self.settings.config(subject)
            if before is None:
                raise SubjectNotFound(str(subject))
            self.settings.check_not_read_only(subject)
            await self._store.put(RecordKey(KeyType.CONFIG, subject), None)
            return before

    async def set_mode(self, subject: str | None, mode: Mode | None, *, force: bool = False) -> None:
        """Set or (None) take away a mode. IMPORT needs an empty subject or registry unless ``force``."""
        self._check_settings_subject(subject)
        self._check_mode_mutable()
        async with self._store.writing():
            if mode is Mode.IMPORT and self.settings.mode_in_scope(subject) is not Mode.IMPORT and not force:
                await self._clear_for_import(subject)
            value = None if mode is None else {"mode": mode.value}
            named = value if subject is None or value is None else {"subject": subject, **value}
            await self._store.put(RecordKey(KeyType.MODE, subject), None if named is None else encode_value(named))

    async def delete_mode(self, subject: str | None, *, recursive: bool = False) -> Mode | None:
        """Go back to the mode in force above; returns what was set. ``recursive`` includes the subjects below."""
        self._check_mode_mutable()
        async with self._store.writing():
            before = self.settings.mode(subject)
            if before is None and not recursive:
                raise SubjectNotFound(str(subject))
            await self._store.put(RecordKey(KeyType.MODE, subject), None)
            if recursive and _is_context(subject):
                for below in sorted(name for name in self.state.modes if name is not None):
                    if below != subject and _has_prefix(below, subject or ""):
                        await self._store.put(RecordKey(KeyType.MODE, below), None)
            return before

    async def _clear_for_import(self, subject: str | None) -> None:
        """Remove soft-deleted versions, so that imported ones can take their ids; live ones forbid the import."""
        names = self.subjects(subject or "", deleted=True) if _is_context(subject) else [str(subject)]
        versions = [version for name in names for version in self.state.versions(name, deleted=True)]
        if any(not version.deleted for version in versions):
            raise OperationNotPermitted("Cannot import since found existing subjects")
        for version in versions:
            self._check_unreferenced(version, permanent=True)
        for version in versions:
            await self._store.put(RecordKey(KeyType.SCHEMA, version.subject, version.version), None)
        value = {} if subject is None else {"subject": subject}
        await self._store.put(RecordKey(KeyType.CLEAR_SUBJECT, subject), encode_value(value))

    def _check_mode_mutable(self) -> None:
        if not self._mode_mutable:
            raise OperationNotPermitted("Mode changes are not allowed")

    @staticmethod
    def _check_settings_subject(subject: str | None) -> None:
        if subject is not None and not is_valid(subject, context_only=True):
            raise InvalidSubject(subject)


def _has_prefix(subject: str, prefix: str) -> bool:
    """Whether a subject falls under a prefix; ``:*:`` is every context, no context is the default one only."""
    if prefix.startswith(":*:"):
        return subject.rsplit(":", 1)[-1].startswith(prefix[3:])
    if not prefix.startswith(":") and subject.startswith(":."):
        return False
    return subject.startswith(prefix)


def _is_context(subject: str | None) -> bool:
    return subject is None or (subject.startswith(":.") and subject.endswith(":"))


def _filled_from(definition: Definition, current: Sequence[SchemaVersion]) -> Definition:
    """What a client leaves out is taken from the latest version: the schema itself, metadata, rules."""
    latest = current[-1] if current else None
    if not definition.schema.strip():
        if latest is None:
            raise InvalidSchema("Empty schema")
        definition = dataclasses.replace(
            definition, schema=latest.schema, schema_type=latest.schema_type, references=latest.references
        )
    if latest is None:
        return definition
    return dataclasses.replace(
        definition,
        metadata=definition.metadata if definition.metadata is not None else latest.metadata,
        rule_set=definition.rule_set if definition.rule_set is not None else latest.rule_set,
    )


def _same_annotations(version: SchemaVersion, definition: Definition) -> bool:
    return (version.metadata, version.rule_set) == (definition.metadata, definition.rule_set)


def _group(metadata: str | None, name: str) -> object:
    value = json.loads(metadata) if metadata is not None else None
    properties = value.get("properties") if isinstance(value, dict) else None
    return properties.get(name) if isinstance(properties, dict) else None


def parse_version(text: str) -> int:
    """``latest``, ``-1`` or a number from 1; raises InvalidVersion."""
    if text in ("latest", "-1"):
        return LATEST
    if text.isascii() and text.isdigit() and 1 <= int(text[:11]) < 1 << 31:
        return int(text)
    raise InvalidVersion(text)
