"""Parses stored and sent schemas, resolves their references, and caches the results."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

from registry.errors import InvalidSchema, RegistryError
from registry.formats import parser_of
from registry.formats.parsed import ParsedSchema, Reference
from registry.model.records import SchemaVersion
from registry.model.state import State
from registry.model.subjects import context_of, within

__all__ = ["Definition", "Schemas"]

_MAX_REFERENCES: Final = 1000
_MAX_DEPTH: Final = 200
_MAX_TEXT: Final = 1024 * 1024
"""The most characters of a client's schema. A longer one exceeds the default size limit of a log record."""
_MAX_TEXTS: Final = 4 * 1024 * 1024
"""The most characters of all schemas that one refers to."""
_KEPT: Final = 1000
_MAX_KEPT_TEXT: Final = 16 * 1024 * 1024
"""The most characters of all cached schemas. Parsed, they take up to 40 times as many bytes."""
_LONG: Final = 20_000
"""A text of this many characters takes about 40 ms to parse, so it is parsed in a thread."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A schema as sent by a client. ``metadata`` and ``rule_set`` are JSON text; ``schema`` may be empty."""

    schema: str = ""
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: str | None = None
    rule_set: str | None = None


class _Kept:
    """The most recently parsed schemas, limited in number and in characters."""

    def __init__(self) -> None:
        self._schemas: OrderedDict[tuple[object, ...], tuple[ParsedSchema, int]] = OrderedDict()
        self._characters = 0

    def __contains__(self, key: tuple[object, ...]) -> bool:
        return key in self._schemas

    def get(self, key: tuple[object, ...]) -> ParsedSchema | None:
        entry = self._schemas.get(key)
        if entry is None:
            return None
        self._schemas.move_to_end(key)
        return entry[0]

    def put(self, key: tuple[object, ...], parsed: ParsedSchema, characters: int) -> None:
        if key in self._schemas:
            return
        self._schemas[key] = (parsed, characters)
        self._characters += characters
        while len(self._schemas) > _KEPT or (self._characters > _MAX_KEPT_TEXT and len(self._schemas) > 1):
            _, (_, size) = self._schemas.popitem(last=False)
            self._characters -= size


class Schemas:
    """Parses schemas, and caches the last thousand versions and the last thousand texts.

    ``parse_aside`` parses a long text in a thread first, so that the event loop stays free.
    """

    def __init__(self, state: State, thread: Executor) -> None:
        self._state, self._thread = state, thread
        self._parsed, self._sent = _Kept(), _Kept()

    def parse(self, subject: str, definition: Definition, *, strict: bool, normalized: bool) -> ParsedSchema:
        """Parse a definition sent for ``subject``. Raises InvalidSchema."""
        # Every producer sends its schema again when it starts, so most texts are in the cache.
        texts = self._resolve(subject, definition.references)
        key = _key(definition, texts, strict=strict, normalized=normalized)
        parsed = self._sent.get(key)
        if parsed is None:
            parsed = _parse(definition, texts, strict=strict, normalized=normalized)
            self._sent.put(key, parsed, _characters(definition, texts))
        return parsed

    async def parse_aside(self, subject: str, definition: Definition, *, strict: bool, normalized: bool) -> None:
        """Parse a long text in a thread, so that the next ``parse`` of it is fast and reports any error."""
        if len(definition.schema) < _LONG and not definition.references:
            return
        with contextlib.suppress(RegistryError):
            texts = self._resolve(subject, definition.references)
            characters = _characters(definition, texts)
            key = _key(definition, texts, strict=strict, normalized=normalized)
            if characters >= _LONG and key not in self._sent:
                self._sent.put(key, await self._aside(definition, texts, strict, normalized), characters)

    async def stored_aside(self, version: SchemaVersion) -> None:
        """The same for ``stored``."""
        key = (context_of(version.subject), version.fingerprint)
        if (len(version.schema) < _LONG and not version.references) or key in self._parsed:
            return
        with contextlib.suppress(RegistryError):
            definition = Definition(version.schema, version.schema_type, version.references)
            texts = self._resolve(version.subject, definition.references)
            if (characters := _characters(definition, texts)) >= _LONG:
                self._parsed.put(key, await self._aside(definition, texts, False, False), characters)

    async def _aside(
        self, definition: Definition, texts: Mapping[str, str], strict: bool, normalized: bool
    ) -> ParsedSchema:
        def work() -> ParsedSchema:
            parsed = _parse(definition, texts, strict=strict, normalized=normalized)
            parsed.canonical  # noqa: B018 - it is kept once it is made
            return parsed

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def too_large(self, subject: str, definition: Definition) -> str | None:
        """Why a client's schema is too large to parse; None if it is not."""
        if len(definition.schema) > _MAX_TEXT:
            return f"The schema has {len(definition.schema)} characters; it may have {_MAX_TEXT}"
        if definition.references:
            with contextlib.suppress(RegistryError):  # parsing reports missing references
                texts = self._resolve(subject, definition.references)
                if (size := sum(map(len, texts.values()))) > _MAX_TEXTS:
                    return f"The schemas it refers to have {size} characters; they may have {_MAX_TEXTS}"
        return None

    def stored(self, version: SchemaVersion) -> ParsedSchema:
        """The parsed form of a registered version. It never changes, so it is parsed once."""
        key = (context_of(version.subject), version.fingerprint)
        parsed = self._parsed.get(key)
        if parsed is None:
            definition = Definition(version.schema, version.schema_type, version.references)
            texts = self._resolve(version.subject, definition.references)
            parsed = _parse(definition, texts, strict=False, normalized=False)
            self._parsed.put(key, parsed, _characters(definition, texts))
        return parsed

    def _resolve(self, subject: str, references: Iterable[Reference]) -> dict[str, str]:
        """The texts of ``references`` by name, each once and after its own references."""
        texts: dict[str, str] = {}
        self._collect(subject, references, texts, set())
        return texts

    def _collect(
        self, parent: str, references: Iterable[Reference], texts: dict[str, str], open_: set[tuple[str, int]]
    ) -> None:
        for reference in references:
            if reference.name in texts:
                continue
            version = self.referenced(parent, reference)
            key = (version.subject, version.version)
            if len(texts) >= _MAX_REFERENCES or len(open_) >= _MAX_DEPTH:
                raise InvalidSchema(f"The schema needs more than {_MAX_REFERENCES} other schemas")
            if key in open_:  # an import can contain schemas that refer to one another
                raise InvalidSchema(f"The schema in {key[0]}, version {key[1]}, refers to itself")
            self._collect(version.subject, version.references, texts, open_ | {key})
            texts[reference.name] = version.schema

    def referenced(self, parent: str, reference: Reference) -> SchemaVersion:
        """The version that a reference of a schema under ``parent`` refers to. Raises InvalidSchema.

        Version -1 is the latest. Soft-deleted versions can be referenced.
        """
        subject = within(parent, reference.subject)
        if reference.version == -1:
            latest = next(reversed(self._state.versions(subject)), None)
        else:
            latest = self._state.version(subject, reference.version)
        if latest is None:
            raise InvalidSchema(
                f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
            )
        return latest


def _key(definition: Definition, texts: Mapping[str, str], *, strict: bool, normalized: bool) -> tuple[object, ...]:
    return (definition.schema_type, definition.schema, tuple(texts.items()), strict, normalized)


def _characters(definition: Definition, texts: Mapping[str, str]) -> int:
    return len(definition.schema) + sum(map(len, texts.values()))


def _parse(definition: Definition, texts: Mapping[str, str], *, strict: bool, normalized: bool) -> ParsedSchema:
    parsed = parser_of(definition.schema_type)(definition.schema, texts, strict=strict)
    return parsed.normalized() if normalized else parsed
