"""The registry's write operations: register, delete, change settings. ``catalog`` has the reads. No HTTP here."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

from registry.domain import association_changes as changes
from registry.domain.association_requests import Change, Delete, Request
from registry.domain.catalog import LATEST, Catalog, parse_version
from registry.domain.registration import NewSchema, Planned, Registration, TagChange
from registry.domain.settings import Mode, ordered
from registry.errors import (
    AssociationNotFound,
    ContextNotEmpty,
    Incompatible,
    InvalidSubject,
    NoActiveVersion,
    OperationNotPermitted,
    ReferenceExists,
    SubjectAssociated,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from registry.formats.compatibility import Level
from registry.log.store import Store
from registry.metrics import RegistryMetrics
from registry.model.associations import STRONG, Association
from registry.model.records import KeyType, RecordKey, SchemaVersion, encode_value
from registry.model.subjects import DEFAULT_CONTEXT, GLOBAL, context_of, is_context, is_valid, subject_matcher

__all__ = ["LATEST", "Registry", "parse_version"]


class Registry:
    """Writes to the schema log. ``catalog`` answers reads from memory.

    Subjects have their normal form (``subjects.normalize``), with aliases resolved. In settings, the subject None means
    the default context.
    """

    def __init__(
        self, store: Store, metrics: RegistryMetrics, *, default_level: Level, mode_mutable: bool = True
    ) -> None:
        self.catalog = Catalog(store.state, default_level)
        self._store = store
        self._metrics = metrics
        self._mode_mutable = mode_mutable
        self._registration = Registration(self.catalog)

    async def require_caught_up(self) -> None:
        """Raises NotCaughtUp, with the reason, unless the whole schema log has been read."""
        await self._store.require_caught_up()

    # -- registering

    async def register(
        self, subject: str, new: NewSchema, *, normalize: bool = False, force: bool = False
    ) -> SchemaVersion:
        """Register a schema and return its version once the log has it. The same schema gets the same version again.

        ``force`` skips the compatibility check.
        """
        if not is_valid(subject):
            raise InvalidSubject(subject)
        await self.catalog.understand(subject, new.definition, normalize=normalize, strict=(False,), versions=False)
        known = self._registration.known(subject, new, normalize=normalize)
        if known is not None:
            return known
        strict = False if new.id is not None else None
        await self.catalog.understand(
            subject, new.definition, normalize=normalize, strict=(strict,), versions=not force
        )
        self._registration.prepare(subject, new, normalize=normalize)
        return await self._register(subject, new, normalize=normalize, force=force)

    async def change_tags(self, subject: str, version: SchemaVersion, change: TagChange) -> SchemaVersion:
        """Register a version like ``version`` with other tags, metadata or rules."""
        new = self._registration.tag_change(version, change)
        return await self._register(subject, new, normalize=False, force=False)

    async def _register(self, subject: str, new: NewSchema, *, normalize: bool, force: bool) -> SchemaVersion:
        if new.id is not None:
            # An id chosen by the client may clash with any other.
            async with self._store.writing():
                outcome = self._plan(subject, new, normalize=normalize, force=force)
                return await self._written(outcome) if isinstance(outcome, Planned) else outcome
        async with self._store.registering():
            return await self._register_among_others(subject, new, normalize=normalize, force=force)

    async def _written(self, planned: Planned) -> SchemaVersion:
        """Write a planned version. Call it within ``Store.writing``."""
        await self._store.put_all(planned.encoded())
        self._metrics.registered.labels(planned.version.schema_type).inc()
        return planned.version

    async def _register_among_others(
        self, subject: str, new: NewSchema, *, normalize: bool, force: bool
    ) -> SchemaVersion:
        """Register concurrently with others.

        A registration for the same subject or of the same schema waits for the earlier one.
        """
        while True:
            outcome = self._plan(subject, new, normalize=normalize, force=force)
            context = context_of(subject)
            claims: tuple[Hashable, ...] = (subject,)
            if isinstance(outcome, Planned):
                claims = (subject, (context, outcome.version.fingerprint))
            before = self._store.under_way(claims)
            if before is not None:
                await asyncio.wait([before])
                continue
            if not isinstance(outcome, Planned):
                return outcome
            self.catalog.state.promised[context] = max(self.catalog.state.promised.get(context, 0), outcome.version.id)
            await asyncio.shield(self._store.enqueue(outcome.encoded(), claims))
            self._metrics.registered.labels(outcome.version.schema_type).inc()
            return outcome.version

    def _plan(self, subject: str, new: NewSchema, *, normalize: bool, force: bool) -> SchemaVersion | Planned:
        try:
            return self._registration.plan(subject, new, normalize=normalize, force=force)
        except Incompatible:
            self._metrics.incompatible.inc()
            raise

    # -- deleting

    async def delete_version(self, subject: str, number: int, *, permanent: bool = False) -> int:
        """Delete a version, softly first and permanently the second time. Returns its number."""
        async with self._store.writing():
            version = self.catalog.find_version(subject, number, deleted=True)
            if version is None:
                raise self.catalog.missing(subject, number, deleted=True)
            if version.deleted and not permanent:
                raise VersionSoftDeleted(subject, number)
            self.catalog.settings.check_not_read_only(subject)
            alone = all(each == version for each in self.catalog.state.versions(subject))
            if not permanent and alone and self.catalog.state.associations.of_subject(subject):
                raise NoActiveVersion(subject)
            if self.catalog.referenced_by(version, deleted=permanent):
                raise ReferenceExists(subject, version.version)
            if permanent and not version.deleted:
                raise VersionNotSoftDeleted(subject, version.version)
            key = RecordKey(KeyType.SCHEMA, subject, version.version)
            if permanent:
                await self._store.put(key, None)
                if not self.catalog.state.versions(subject, deleted=True):
                    await self._drop_settings(subject)
            else:
                await self._store.put(key, encode_value(dataclasses.replace(version, deleted=True)))
            self._metrics.deleted.inc()
            return version.version

    async def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete every version of a subject, softly first and permanently the second time. Returns their numbers."""
        async with self._store.writing():
            return await self._delete_subject(subject, permanent=permanent)

    async def _delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        if not self.catalog.has(subject, deleted=True):
            raise SubjectNotFound(subject)
        if not permanent and not self.catalog.has(subject):
            raise SubjectSoftDeleted(subject)
        self.catalog.settings.check_not_read_only(subject)
        doomed = self.catalog.state.versions(subject, deleted=permanent)
        if self.catalog.state.associations.of_subject(subject):
            raise SubjectAssociated(subject)
        for version in doomed:
            self._check_unreferenced(version, deleted=permanent)
            if permanent and not version.deleted:
                raise SubjectNotSoftDeleted(subject)
        if permanent:
            # Newest first: a version may refer to an older one of the same subject.
            await self._store.put_all(
                (RecordKey(KeyType.SCHEMA, subject, version.version), None) for version in reversed(doomed)
            )
            await self._drop_settings(subject)
        elif doomed:
            value = {"subject": subject, "version": doomed[-1].version}
            await self._store.put(RecordKey(KeyType.DELETE_SUBJECT, subject), encode_value(value))
        self._metrics.deleted.inc(len(doomed))
        return [version.version for version in doomed]

    def _check_unreferenced(self, version: SchemaVersion, *, deleted: bool) -> None:
        """Raises ReferenceExists if another subject refers to the version."""
        for referrer in self.catalog.state.referrers(version.subject, version.version):
            if referrer.subject != version.subject and (deleted or not referrer.deleted):
                raise ReferenceExists(version.subject, version.version)

    async def _drop_settings(self, subject: str) -> None:
        if subject in self.catalog.state.modes:
            await self._store.put(RecordKey(KeyType.MODE, subject), None)
        if subject in self.catalog.state.configs:
            await self._store.put(RecordKey(KeyType.CONFIG, subject), None)

    async def delete_context(self, subject: str) -> None:
        """Delete a context (a bare one) without versions, including deleted ones. Raises ContextNotEmpty."""
        async with self._store.writing():
            if self.catalog.has(subject, deleted=True):
                raise ContextNotEmpty(subject)
            context = context_of(subject)
            if context != DEFAULT_CONTEXT:
                await self._store.put(RecordKey(KeyType.CONTEXT, context=context), None)

    # -- associations

    async def associate(
        self, request: Request, *, context: str, create: bool, dry_run: bool
    ) -> tuple[list[Association], dict[str, SchemaVersion]]:
        """Create (``create``) or change the associations of a resource, and register their schemas.

        Returns the written associations, and the registered versions by kind. ``dry_run`` only checks.
        """
        async with self._store.writing():
            return await self._associate(request, context=context, create=create, dry_run=dry_run)

    async def _associate(
        self, request: Request, *, context: str, create: bool, dry_run: bool
    ) -> tuple[list[Association], dict[str, SchemaVersion]]:
        checked = changes.check(self.catalog, request, context=context, create=create, dry_run=dry_run)
        if dry_run:
            return [], {}
        schemas: dict[str, SchemaVersion] = {}
        for each in checked.every:
            if each.schema is not None:
                outcome = self._registration.plan(str(each.subject), each.schema, normalize=each.normalize, force=False)
                if isinstance(outcome, Planned):
                    await self._store.put_all(outcome.encoded())
                    outcome = outcome.version
                schemas[each.kind] = outcome
        associations = changes.made(checked)
        await self._store.put_all(
            (RecordKey(KeyType.ASSOC, each.subject, resource=each.resource), encode_value(each.as_record()))
            for each in associations
        )
        return associations, schemas

    async def disassociate(
        self, resource_id: str, type_: str, kinds: Sequence[str], *, cascade: bool, dry_run: bool
    ) -> None:
        """Delete associations of a resource. ``cascade`` permanently deletes the subjects that belong to it alone.

        Raises AssociationNotFound.
        """
        async with self._store.writing():
            if not self.catalog.state.associations.of_id(resource_id, type_, kinds):
                raise AssociationNotFound(resource_id)
            await self._disassociate(resource_id, type_, kinds, cascade=cascade, dry_run=dry_run)

    async def _disassociate(
        self, resource_id: str | None, type_: str, kinds: Sequence[str], *, cascade: bool, dry_run: bool
    ) -> None:
        doomed = self.catalog.state.associations.of_id(resource_id, type_, kinds)
        changes.check_deletion(self.catalog, doomed, cascade=cascade)
        for each in [] if dry_run else doomed:
            await self._store.put(RecordKey(KeyType.ASSOC, each.subject, resource=each.resource), None)
            importing = self.catalog.settings.mode_in_scope(each.subject) is Mode.IMPORT
            if cascade and each.lifecycle == STRONG and not importing:
                if self.catalog.has(each.subject):
                    await self._delete_subject(each.subject, permanent=False)
                await self._delete_subject(each.subject, permanent=True)

    async def change_associations(self, change: Change, *, context: str, dry_run: bool) -> dict[str, SchemaVersion]:
        """Carry out one request of a batch, step by step; returns the registered versions by kind."""
        request, schemas = change.request, dict[str, SchemaVersion]()
        async with self._store.writing():
            for step in change.steps:
                if isinstance(step, Delete):
                    await self._disassociate(
                        request.id, request.type, [step.kind], cascade=step.cascade, dry_run=dry_run
                    )
                    continue
                create, associations = step
                part = dataclasses.replace(request, associations=associations)
                schemas |= (await self._associate(part, context=context, create=create, dry_run=dry_run))[1]
        return schemas

    # -- settings

    async def set_config(self, subject: str | None, changes: dict[str, Any]) -> dict[str, Any]:
        """Change a config. None removes a setting. Returns the current settings."""
        self._check_settings_subject(subject)
        async with self._store.writing() as state:
            self.catalog.settings.check_not_read_only(subject)
            value = ordered({**(state.configs.get(subject) or {}), **changes})
            named = value if subject is None else {"subject": subject, **value}
            await self._store.put(RecordKey(KeyType.CONFIG, subject), encode_value(named))
            return value

    async def delete_config(self, subject: str | None) -> dict[str, Any]:
        """Remove a config, so that the inherited one applies.

        Returns the old one. Raises SubjectNotFound if none was set.
        """
        async with self._store.writing():
            before = self.catalog.settings.config(subject)
            if before is None:
                raise SubjectNotFound(str(subject))
            self.catalog.settings.check_not_read_only(subject)
            await self._store.put(RecordKey(KeyType.CONFIG, subject), None)
            return before

    async def set_mode(self, subject: str | None, mode: Mode | None, *, force: bool = False) -> None:
        """Set or (None) remove a mode. IMPORT needs an empty subject, context or registry unless ``force`` is set."""
        self._check_settings_subject(subject)
        self._check_mode_mutable()
        async with self._store.writing():
            if mode is Mode.IMPORT and self.catalog.settings.mode_in_scope(subject) is not Mode.IMPORT and not force:
                await self._clear_for_import(subject)
            value = None if mode is None else {"mode": mode.value}
            named = value if subject is None or value is None else {"subject": subject, **value}
            await self._store.put(RecordKey(KeyType.MODE, subject), None if named is None else encode_value(named))

    async def delete_mode(self, subject: str | None, *, recursive: bool = False) -> Mode | None:
        """Remove a mode, so that the inherited one applies.

        Returns the old one. ``recursive`` includes the subjects of a context.
        """
        async with self._store.writing():
            before = self.catalog.settings.mode(subject)
            if before is None and not recursive:
                raise SubjectNotFound(str(subject))
            self._check_mode_mutable()
            await self._store.put(RecordKey(KeyType.MODE, subject), None)
            if recursive and is_context(subject):
                below = subject_matcher("" if subject is None else subject)
                for name in sorted(name for name in self.catalog.state.modes if name is not None):
                    if name not in (subject, GLOBAL) and below(name):
                        await self._store.put(RecordKey(KeyType.MODE, name), None)
            return before

    async def _clear_for_import(self, subject: str | None) -> None:
        """Remove soft-deleted versions, so that imported ones can use their ids. Live versions forbid the import."""
        if self.catalog.has(subject):
            raise OperationNotPermitted("Cannot import since found existing subjects")
        matches = subject_matcher(subject)
        names = [name for name in self.catalog.state.subjects() if matches(name)]
        versions = [version for name in names for version in self.catalog.state.versions(name, deleted=True)]
        for version in versions:
            if self.catalog.referenced_by(version, deleted=True):
                raise ReferenceExists(version.subject, version.version)
        for version in versions:
            await self._store.put(RecordKey(KeyType.SCHEMA, version.subject, version.version), None)
        value = {} if subject is None else {"subject": subject}
        await self._store.put(RecordKey(KeyType.CLEAR_SUBJECT, subject), encode_value(value))

    def _check_mode_mutable(self) -> None:
        if not self._mode_mutable:
            raise OperationNotPermitted("Mode changes are not allowed")

    @staticmethod
    def _check_settings_subject(subject: str | None) -> None:
        if subject is not None and not is_valid(subject, for_settings=True):
            raise InvalidSubject(subject)
