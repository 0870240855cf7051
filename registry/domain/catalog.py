"""Answers from memory: subjects, versions, schemas by id and guid, lookups, compatibility."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple
from uuid import UUID

from registry.domain.comparisons import Comparisons
from registry.domain.schemas import Definition, Schemas
from registry.domain.settings import Scoped, Settings
from registry.errors import (
    InvalidSchema,
    InvalidVersion,
    RegistryError,
    SchemaNotFound,
    SubjectNotFound,
    VersionNotFound,
)
from registry.formats import compatibility
from registry.formats.avro.equivalence import equivalent
from registry.formats.compatibility import Level, Previous
from registry.formats.parsed import ParsedSchema
from registry.model import contracts
from registry.model.records import SchemaVersion
from registry.model.state import State
from registry.model.subjects import (
    DEFAULT_CONTEXT,
    bare_context,
    context_of,
    prefix_matcher,
    split,
    subject_matcher,
    within,
)

__all__ = ["LATEST", "Candidate", "Catalog", "parse_version"]

LATEST: Final = -1
"""The version number of the newest version that is not deleted."""

_RESERVED: Final = "confluent:reserved"
"""The metadata property that lists field names no version may use."""


class Candidate(NamedTuple):
    """A parsed schema of a client: the form to store, and the parsed form."""

    definition: Definition
    parsed: ParsedSchema


class Catalog:
    """Queries of the state. Nothing waits, nothing changes.

    Pass subjects in their normal form (``subjects.normalize``), with aliases resolved.
    """

    def __init__(self, state: State, default_level: Level) -> None:
        self.state = state
        self.settings = Settings(state, default_level)
        # A single thread, because each takes its share of the interpreter from the event loop.
        thread = ThreadPoolExecutor(1, thread_name_prefix="schemas")
        self.schemas, self.comparisons = Schemas(state, thread), Comparisons(thread)

    # -- subjects and versions

    def subjects(self, prefix: str = "", *, deleted: bool = False, deleted_only: bool = False) -> list[str]:
        """Names of subjects, sorted; ``deleted`` adds and ``deleted_only`` selects those without a live version."""
        matches = prefix_matcher(prefix)
        matching = [subject for subject in self.state.subjects() if matches(subject)]
        if deleted and not deleted_only:
            return matching
        return [subject for subject in matching if bool(self.state.versions(subject)) is not deleted_only]

    def has(self, subject: str | None, *, deleted: bool = False) -> bool:
        """Whether there are versions under a subject, in a bare context or (None) anywhere."""
        if subject is not None and split(subject)[1]:
            return bool(self.state.versions(subject, deleted=deleted))
        matches = subject_matcher(subject)
        return any(matches(name) and self.state.versions(name, deleted=deleted) for name in self.state.subjects())

    def versions(self, subject: str, *, deleted: bool = False, deleted_only: bool = False) -> list[SchemaVersion]:
        """The versions of a subject, oldest first; raises SubjectNotFound."""
        if not self.has(subject, deleted=deleted or deleted_only):
            raise SubjectNotFound(subject)
        versions = self.state.versions(subject, deleted=deleted or deleted_only)
        return [version for version in versions if version.deleted] if deleted_only else versions

    def version(self, subject: str, number: int, *, deleted: bool = False) -> SchemaVersion:
        """One version. An unqualified subject without versions is looked up in other contexts. Raises a 404."""
        for name in self._in_contexts(subject):
            if (version := self.find_version(name, number, deleted=deleted)) is not None:
                return version
        raise self.missing(subject, number, deleted=deleted)

    def missing(self, subject: str, number: int, *, deleted: bool) -> SubjectNotFound | VersionNotFound:
        """The error for a missing version."""
        return VersionNotFound(number) if self.has(subject, deleted=deleted) else SubjectNotFound(subject)

    def find_version(self, subject: str, number: int, *, deleted: bool) -> SchemaVersion | None:
        """The version of that number, or the newest for LATEST; None if it does not exist or is deleted."""
        if number == LATEST:
            return next(reversed(self.state.versions(subject)), None)
        version = self.state.version(subject, number)
        return version if version is not None and (deleted or not version.deleted) else None

    def _in_contexts(self, subject: str) -> Iterator[str]:
        """The subject, and if it names no context, the same name in all other contexts."""
        yield subject
        if context_of(subject) == DEFAULT_CONTEXT:
            for context in self.state.contexts()[1:]:
                yield bare_context(context) + subject

    def latest_with(self, subject: str, properties: Mapping[str, str], *, deleted: bool = False) -> SchemaVersion:
        """The newest version whose metadata has all these properties; raises a 404."""
        for version in reversed(self.state.versions(subject, deleted=deleted)):
            if version.metadata is not None and all(
                contracts.property_of(version.metadata, name) == value for name, value in properties.items()
            ):
                return version
        raise SchemaNotFound if self.has(subject, deleted=deleted) else SubjectNotFound(subject)

    def listed(
        self,
        prefix: str,
        *,
        deleted: bool = False,
        latest_only: bool = False,
        rule_type: str = "",
        aliases: bool = False,
    ) -> Iterator[tuple[SchemaVersion, Sequence[str]]]:
        """Versions by subject and number, each with the aliases of its subject if requested."""
        named = self._aliases(prefix) if aliases else {}
        subjects = set(self.subjects(prefix, deleted=True)) | named.keys()
        for subject in sorted(subjects):
            versions = self.state.versions(subject, deleted=deleted)
            for version in versions[-1:] if latest_only else versions:
                if not rule_type or contracts.has_rule_type(version.rule_set, rule_type):
                    yield version, named.get(subject, ())

    def _aliases(self, prefix: str) -> dict[str, list[str]]:
        """Real subjects with the aliases under the prefix that point to them."""
        matches, aliases = prefix_matcher(prefix), dict[str, list[str]]()
        for scope in sorted(name for name in self.state.configs if name is not None and matches(name)):
            if alias := self.settings.alias(scope):
                aliases.setdefault(within(scope, alias), []).append(scope)
        return aliases

    def unaliased(self, subject: str) -> str:
        """The subject behind an alias, or the subject itself."""
        alias = self.settings.alias(subject)
        return subject if alias is None else within(subject, alias)

    # -- ids

    def by_id(self, schema_id: int, subject: str = "") -> SchemaVersion:
        """A version with the id, even a deleted one. Raises SchemaNotFound.

        It is a version of the subject itself; for a bare context, of any subject there; for an unqualified name, of
        that name in any context, or else of any subject in the default context.
        """
        context, name = split(subject)
        if not name:
            version = self.state.by_id(context, schema_id)
        elif context != DEFAULT_CONTEXT:
            version = self.state.under(subject, schema_id)
        else:
            ids = (self.state.under(each, schema_id) for each in self._in_contexts(subject))
            version = next((versions for versions in ids if versions), []) or self.state.by_id(context, schema_id)
        if not version:
            raise SchemaNotFound(schema_id)
        return version[-1] if name else version[0]

    def with_id(self, schema_id: int, subject: str = "", *, deleted: bool = False) -> list[SchemaVersion]:
        """Every version that has the id in the context that ``by_id`` selects; raises SchemaNotFound."""
        try:
            context = context_of(self.by_id(schema_id, subject).subject)
        except SchemaNotFound:
            raise SchemaNotFound from None
        return [version for version in self.state.by_id(context, schema_id) if deleted or not version.deleted]

    def ids_of(self, guid: str) -> list[tuple[str, int]]:
        """The contexts that have a schema, with its id there."""
        try:
            digest = UUID(guid).bytes
        except ValueError:
            return []
        ids = [(context, self.state.id_of_guid(context, digest)) for context in sorted(self.state.contexts())]
        return [(context, schema_id) for context, schema_id in ids if schema_id is not None]

    def by_guid(self, guid: str) -> SchemaVersion:
        """Raises SchemaNotFound."""
        for context, schema_id in self.ids_of(guid):
            for version in self.state.by_id(context, schema_id):
                return version
        raise SchemaNotFound(guid)

    def referenced_by(self, version: SchemaVersion, *, deleted: bool = False) -> list[int]:
        """Ids of the schemas that refer to a version, by context and id.

        Without ``deleted`` only schemas with a live version.
        """
        ids = {(context_of(r.subject), r.id) for r in self.state.referrers(version.subject, version.version)}
        return [
            schema_id
            for context, schema_id in sorted(ids)
            if deleted or any(not each.deleted for each in self.state.by_id(context, schema_id))
        ]

    # -- lookups

    async def understand(
        self, subject: str, definition: Definition, *, normalize: bool, strict: Sequence[bool | None], versions: bool
    ) -> None:
        """Parse long schemas in a thread, so that the following query is fast and does not block the event loop.

        ``strict`` is how the query will parse it (None: as the subject's settings say). ``versions`` is whether the
        query compares it with the subject's versions. Raises nothing: the query reports errors.
        """
        scoped, normalized = self.settings.scoped(subject), self._normalizes(subject, normalize)
        if not definition.schema.strip() or self.schemas.too_large(subject, definition) is not None:
            return
        as_strict = {scoped.validate_new if asked is None else asked for asked in strict}
        for each in as_strict:
            await self.schemas.parse_aside(subject, definition, strict=each, normalized=normalized)
        if not versions or scoped.level is Level.NONE:
            return
        live = self.state.versions(subject)
        live = live if scoped.level.transitive else live[-1:]
        for version in live:
            await self.schemas.stored_aside(version)
        with contextlib.suppress(RegistryError):
            new = self.schemas.parse(subject, definition, strict=max(as_strict), normalized=normalized)
            previous = [Previous(version.version, self.schemas.stored(version)) for version in live]
            await self.comparisons.compare_aside(scoped.level, new, previous, lenient=scoped.lenient)

    def _normalizes(self, subject: str, asked: bool) -> bool:
        checked = not self.settings.mode_in_scope(subject).imports
        return checked and (asked or self.settings.scoped(subject).normalize)

    def candidate(self, subject: str, definition: Definition, *, normalize: bool, strict: bool) -> Candidate:
        """Parse a client's schema for a subject. Raises InvalidSchema."""
        if (reason := self.schemas.too_large(subject, definition)) is not None:
            raise InvalidSchema(reason)
        scoped = self.settings.scoped(subject)
        checked = not self.settings.mode_in_scope(subject).imports
        normalize = self._normalizes(subject, normalize)
        parsed = self.schemas.parse(subject, definition, strict=strict, normalized=normalize)
        if checked and scoped.validate_fields:
            parsed.check_fields()
        references = tuple(
            dataclasses.replace(reference, version=self.schemas.referenced(subject, reference).version)
            for reference in definition.references
        )
        if normalize:
            references = tuple(sorted(dict.fromkeys(references), key=lambda each: (each.subject, each.version)))
        stored = dataclasses.replace(
            definition, schema=parsed.canonical, schema_type=parsed.schema_type, references=references
        )
        return Candidate(stored, parsed)

    def lookup(
        self, subject: str, definition: Definition, *, normalize: bool = False, deleted: bool = False
    ) -> SchemaVersion:
        """The version under which this schema is registered. Raises SubjectNotFound or SchemaNotFound."""
        for name in self._in_contexts(subject):
            try:
                if (version := self._lookup(name, definition, normalize=normalize, deleted=deleted)) is not None:
                    return version
            except InvalidSchema:
                if name == subject:
                    raise
        raise SchemaNotFound if self.has(subject, deleted=deleted) else SubjectNotFound(subject)

    def _lookup(self, subject: str, definition: Definition, *, normalize: bool, deleted: bool) -> SchemaVersion | None:
        if not self.state.versions(subject, deleted=True):
            return None
        latest = self.find_version(subject, LATEST, deleted=False)
        if not definition.schema.strip():
            return latest
        sent = self.candidate(subject, definition, normalize=normalize, strict=False)
        version = self.same(subject, sent, deleted=deleted)
        if version is None and latest is not None:
            # Registration would fill in what the client left out, so the lookup does the same.
            filled = fill_in(self.settings.scoped(subject), sent.definition, latest, None)
            if filled != sent.definition:
                version = self.same(subject, Candidate(filled, sent.parsed), deleted=deleted)
        return version

    def same(
        self, subject: str, sent: Candidate, *, deleted: bool = False, latest_only: bool = False
    ) -> SchemaVersion | None:
        """The subject's version with exactly this schema, or the newest one that differs only in how it was sent."""
        if latest_only:
            versions = self.state.versions(subject)[-1:]
        else:
            known = self.state.id_of(context_of(subject), as_version(subject, sent.definition).fingerprint)
            exact = [] if known is None else self.state.under(subject, known)
            if exact and (deleted or not exact[-1].deleted):
                return exact[-1]
            versions = self.state.versions(subject, deleted=deleted)
        return next((version for version in reversed(versions) if self.finds(sent, version)), None)

    def finds(self, sent: Candidate, version: SchemaVersion) -> bool:
        """Whether ``version`` may have been registered from ``sent``.

        References may have been inlined, attributes reordered, and ``confluent:version`` left out or claimed correctly.
        """
        definition = sent.definition
        if definition.schema_type != version.schema_type or definition.rule_set != version.rule_set:
            return False
        if not _same_metadata(definition.metadata, version):
            return False
        same = equivalent if definition.schema_type == "AVRO" else str.__eq__
        if definition.references == version.references:
            return same(definition.schema, version.schema)
        written_out = bool(version.references) and not definition.references
        return written_out and same(self.schemas.stored(version).resolved, sent.parsed.resolved)

    # -- compatibility

    def check(self, subject: str, definition: Definition, number: int | None, *, normalize: bool = False) -> list[str]:
        """Why the schema would be refused after version ``number`` (None: all); empty if it is compatible."""
        versions = self.state.versions(subject)
        if number is not None:
            version = self.find_version(subject, number, deleted=False)
            if version is None and number != LATEST:
                raise VersionNotFound(number)
            versions = [] if version is None else [version]
        if not definition.schema.strip():
            raise InvalidSchema("Empty schema")
        strict = self.settings.scoped(subject).validate_new
        return self.incompatibilities(
            subject, self.candidate(subject, definition, normalize=normalize, strict=strict), versions
        )

    def incompatibilities(self, subject: str, sent: Candidate, versions: Sequence[SchemaVersion]) -> list[str]:
        """Why the effective config refuses the schema after these versions (oldest first), in Confluent's words."""
        scoped = self.settings.scoped(subject)
        reserved = _reserved_problems(sent, versions[-1] if versions else None) if scoped.validate_fields else []
        if (group := scoped.group) is not None:
            group_value = contracts.property_of(sent.definition.metadata, group)
            versions = [each for each in versions if contracts.property_of(each.metadata, group) == group_value]
        if scoped.level is Level.NONE:
            versions = []
        elif not scoped.level.transitive:
            versions = versions[-1:]
        return compatibility.check(
            scoped.level,
            sent.parsed,
            [Previous(version.version, self.schemas.stored(version)) for version in versions],
            lenient=scoped.lenient,
            validate_fields=scoped.validate_fields,
            reserved=reserved,
            compare=lambda reader, writer, lenient: self.comparisons.problems(reader, writer, lenient=lenient),
        )


def as_version(subject: str, definition: Definition) -> SchemaVersion:
    """A definition in stored form, without number and id."""
    return SchemaVersion(
        subject,
        0,
        0,
        definition.schema,
        definition.schema_type,
        definition.references,
        definition.metadata,
        definition.rule_set,
    )


def fill_in(
    scoped: Scoped, definition: Definition, latest: SchemaVersion | None, new_version: int | None, claimed: int = 0
) -> Definition:
    """Fill in metadata and rules that a client left out from the latest version; defaults come below them, overrides
    above.

    ``claimed`` is the version number that the client sent (0: none). A version in the request or its metadata is set to
    ``new_version``.
    """
    metadata, rule_set = definition.metadata, definition.rule_set
    if latest is not None:
        metadata = latest.metadata if metadata is None else metadata
        rule_set = latest.rule_set if rule_set is None else rule_set
    metadata = contracts.merge_metadata(
        contracts.merge_metadata(scoped.default_metadata, metadata), scoped.override_metadata
    )
    rule_set = contracts.merge_rule_sets(
        contracts.merge_rule_sets(scoped.default_rules, rule_set), scoped.override_rules
    )
    named = claimed != 0 or contracts.property_of(metadata, contracts.CONFLUENT_VERSION) is not None
    if new_version is not None and named:
        metadata = contracts.with_confluent_version(metadata, new_version)
    if metadata is None and rule_set is None:
        return definition
    return dataclasses.replace(definition, metadata=metadata, rule_set=rule_set)


def _same_metadata(metadata: str | None, version: SchemaVersion) -> bool:
    claimed, recorded = contracts.confluent_version(metadata), contracts.confluent_version(version.metadata)
    if claimed is None and recorded is not None:
        return (metadata or "{}") == contracts.without_confluent_version(version.metadata)
    if claimed is not None and recorded is None:
        return claimed == version.version and contracts.without_confluent_version(metadata) == (
            version.metadata or "{}"
        )
    return metadata == version.metadata


def _reserved_problems(sent: Candidate, latest: SchemaVersion | None) -> list[str]:
    """Reserved names must stay reserved, and no field may use one."""
    reserved = _reserved(sent.definition.metadata)
    before = set() if latest is None else _reserved(latest.metadata)
    removed = (
        f"The new schema has reserved field {name} removed from its metadata which is present in the old schema's metadata."
        for name in sorted(before - reserved)
    )
    used = (
        f"The new schema has field that conflicts with the reserved field {name}."
        for name in sorted(reserved & sent.parsed.top_level_fields)
    )
    return [*removed, *used]


def _reserved(metadata: str | None) -> set[str]:
    names = (contracts.property_of(metadata, _RESERVED) or "").split(",")
    return {name.strip() for name in names if name.strip()}


def parse_version(text: str) -> int:
    """``latest``, ``-1`` or a number from 1; raises InvalidVersion."""
    text = text.strip()
    if text.lower() in ("latest", "-1"):
        return LATEST
    digits = text.removeprefix("+")
    if digits.isascii() and digits.isdigit() and len(digits) <= 20 and 1 <= int(digits) < 1 << 31:
        return int(digits)
    raise InvalidVersion(text)
