"""Decides about a registration: the existing version, or the records for a new one. Writes nothing."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from registry.domain.catalog import LATEST, Candidate, Catalog, as_version, fill_in
from registry.domain.schemas import Definition
from registry.domain.tags import tagged_entities, with_tags
from registry.errors import Incompatible, InvalidSchema, OperationNotPermitted, RegistryError
from registry.formats.entities import Tags
from registry.model import contracts
from registry.model.associations import STRONG
from registry.model.records import KeyType, RecordKey, SchemaVersion, encode_value
from registry.model.state import State
from registry.model.subjects import DEFAULT_CONTEXT, bare_context, context_of, within

__all__ = ["NewSchema", "Planned", "Registration", "TagChange"]


@dataclass(frozen=True, slots=True)
class NewSchema:
    """A schema to register.

    ``id`` is for import. ``version`` 0 is the next one, -1 the next unless the latest is equal.
    """

    definition: Definition
    id: int | None = None
    version: int = 0
    add_tags: Tags = dataclasses.field(default_factory=dict)
    remove_tags: Tags = dataclasses.field(default_factory=dict)
    propagate_tags: bool = False

    @property
    def changes_tags(self) -> bool:
        return bool(self.add_tags or self.remove_tags or self.propagate_tags)


@dataclass(frozen=True, slots=True)
class TagChange:
    """A new version that differs from an old one in tags, metadata or rules."""

    new_version: int = 0
    add: Tags = dataclasses.field(default_factory=dict)
    remove: Tags = dataclasses.field(default_factory=dict)
    metadata: str | None = None
    rule_set: str | None = None
    rules_to_merge: str | None = None
    rules_to_remove: tuple[str, ...] | None = None


class Planned(NamedTuple):
    """The new version and all its records, in order."""

    version: SchemaVersion
    records: list[tuple[RecordKey, SchemaVersion | dict[str, str] | None]]

    def encoded(self) -> list[tuple[RecordKey, bytes | None]]:
        return [(key, None if value is None else encode_value(value)) for key, value in self.records]


class Registration:
    """Decides by the state. The caller that writes the result must prevent concurrent writes."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._settings = catalog.settings

    @property
    def _state(self) -> State:
        return self._catalog.state

    def known(self, subject: str, new: NewSchema, *, normalize: bool) -> SchemaVersion | None:
        """The version that answers a registration without a write, which is the usual case."""
        if new.changes_tags or self._settings.scoped(subject).fills_in or not new.definition.schema.strip():
            return None
        if not self._state.versions(subject):
            return None
        sent = self._catalog.candidate(subject, new.definition, normalize=normalize, strict=False)
        version = self._catalog.same(subject, sent, latest_only=new.version == LATEST)
        if version is None:
            return None
        if new.version in (0, LATEST):
            return version if new.id in (None, version.id) else None
        if version.id != new.id:
            return None
        # The same schema may have been imported under several versions.
        older = self._state.version(subject, new.version)
        same = older is not None and not older.deleted and older.fingerprint == version.fingerprint
        return older if same else None

    def prepare(self, subject: str, new: NewSchema, *, normalize: bool) -> None:
        """Parse the schema, which takes longest, before the registration's turn to write.

        ``plan`` then uses the cached result.
        """
        if new.changes_tags or not new.definition.schema.strip():
            return
        strict = new.id is None and self._settings.scoped(subject).validate_new
        with contextlib.suppress(RegistryError):  # plan raises it, after the checks that come first
            self._catalog.candidate(subject, new.definition, normalize=normalize, strict=strict)

    def plan(self, subject: str, new: NewSchema, *, normalize: bool, force: bool) -> SchemaVersion | Planned:
        """The existing version, or what to write.

        Raises if the mode, compatibility or the client's numbers forbid it.
        """
        self._settings.check_register(subject, with_id=new.id is not None)
        scoped = self._settings.scoped(subject)
        importing = self._settings.mode_in_scope(subject).imports
        live, next_version = self._state.versions(subject), self._state.next_version(subject)
        definition = self._retagged(subject, new)
        if not importing:
            definition = self._filled(subject, new, definition, live, next_version)
        if not definition.schema.strip():
            raise InvalidSchema("Empty schema")
        strict = new.id is None and scoped.validate_new
        sent = self._catalog.candidate(subject, definition, normalize=normalize, strict=strict)
        self._check_references(subject, definition)

        schema_id = new.id
        known = self._state.id_of(context_of(subject), as_version(subject, sent.definition).fingerprint)
        if known is not None and schema_id in (None, known):
            under = self._state.under(subject, known)
            if new.version == 0 and under and not under[-1].deleted:
                return under[-1]
            schema_id = known
        if new.version == 0:
            for version in reversed(live):
                if schema_id in (None, version.id) and self._catalog.finds(sent, version):
                    return version

        if not importing and not force:
            problems = self._catalog.incompatibilities(subject, sent, live)
            if problems:
                raise Incompatible(subject, problems)
        number = new.version if new.version > 0 else next_version
        if number != next_version and not importing:
            raise InvalidSchema("Version is not one more than previous version")
        return self._planned(subject, sent, number, schema_id)

    def _check_references(self, subject: str, definition: Definition) -> None:
        """Refuse references to subjects that belong to one topic."""
        for reference in definition.references:
            if self._state.associations.of_subject(within(subject, reference.subject), lifecycle=STRONG):
                raise OperationNotPermitted(
                    f"Subject '{reference.subject}' has a strong association and cannot be referenced"
                )

    def _retagged(self, subject: str, new: NewSchema) -> Definition:
        if not new.add_tags and not new.remove_tags:
            return new.definition
        return self._with_tags(subject, new.definition, new.add_tags, new.remove_tags)

    def _with_tags(self, subject: str, definition: Definition, add: Tags, remove: Tags) -> Definition:
        parsed = self._catalog.schemas.parse(subject, definition, strict=False, normalized=False)
        text = with_tags(parsed.schema_type, parsed.canonical, add, remove)
        return dataclasses.replace(definition, schema=text)

    def _filled(
        self,
        subject: str,
        new: NewSchema,
        definition: Definition,
        live: list[SchemaVersion],
        next_version: int,
    ) -> Definition:
        """Take what a client left out from the latest version: the schema itself, tags, metadata, rules."""
        latest = live[-1] if live else None
        if latest is not None and not definition.schema.strip():
            definition = dataclasses.replace(
                definition, schema=latest.schema, schema_type=latest.schema_type, references=latest.references
            )
        if new.propagate_tags and latest is not None and (tags := tagged_entities(latest.schema_type, latest.schema)):
            definition = self._with_tags(subject, definition, tags, {})
        # Tags in the request count as a named version, so that the metadata records the resulting version.
        claimed = new.version or (LATEST if new.add_tags or new.remove_tags else 0)
        return fill_in(self._settings.scoped(subject), definition, latest, next_version, claimed)

    def _planned(self, subject: str, sent: Candidate, number: int, schema_id: int | None) -> Planned:
        context = context_of(subject)
        made = dataclasses.replace(as_version(subject, sent.definition), version=number)
        if schema_id is None:
            schema_id = self._state.next_id(context)
        elif (holders := self._state.by_id(context, schema_id)) and holders[0].fingerprint != made.fingerprint:
            raise OperationNotPermitted(
                f"Overwrite new schema with id {schema_id} in context {bare_context(context)} is not permitted."
            )
        made = dataclasses.replace(made, id=schema_id)
        if self._state.closes_circle(made):  # an import may overwrite a version that others refer to
            raise InvalidSchema(f"The schema in {subject}, version {number}, refers to itself")
        records: list[tuple[RecordKey, SchemaVersion | dict[str, str] | None]] = []
        if context != DEFAULT_CONTEXT and context not in self._state.contexts():
            records.append((RecordKey(KeyType.CONTEXT, context=context), {"tenant": "default", "context": context}))
        records += [(RecordKey(KeyType.SCHEMA, twin.subject, twin.version), None) for twin in self._twins(made)]
        records.append((RecordKey(KeyType.SCHEMA, subject, number), made))
        return Planned(made, records)

    def _twins(self, made: SchemaVersion) -> Iterable[SchemaVersion]:
        """Soft-deleted earlier versions with the same id.

        They are removed permanently unless something refers to them.
        """
        for old in self._state.versions(made.subject, deleted=True):
            twin = old.deleted and old.id == made.id and old.version < made.version
            if twin and not self._state.referrers(old.subject, old.version):
                yield old

    def tag_change(self, version: SchemaVersion, change: TagChange) -> NewSchema:
        """The registration that results from a change of tags, metadata or rules."""
        text = with_tags(version.schema_type, version.schema, change.add, change.remove)
        metadata = change.metadata if change.metadata is not None else version.metadata
        definition = Definition(
            text,
            version.schema_type,
            version.references,
            contracts.with_confluent_version(metadata, change.new_version),
            self._changed_rules(version.subject, change),
        )
        return NewSchema(definition, version=change.new_version)

    def _changed_rules(self, subject: str, change: TagChange) -> str | None:
        if change.rules_to_merge is None and change.rules_to_remove is None:
            return change.rule_set
        before = (
            self._state.version(subject, change.new_version - 1)
            if change.new_version > 1
            else next(reversed(self._state.versions(subject)), None)
        )
        rules = before.rule_set if before is not None and not before.deleted else None
        rules = contracts.merge_rule_sets(rules, change.rules_to_merge)
        return rules if change.rules_to_remove is None else contracts.without_rules(rules, change.rules_to_remove)
