"""From what is stored or sent to parsed schemas: references resolved, results kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from registry.errors import InvalidSchema
from registry.formats import parser_of
from registry.formats.parsed import ParsedSchema, Reference
from registry.model.records import SchemaVersion
from registry.model.state import State
from registry.model.subjects import context_of, within

__all__ = ["Definition", "Schemas"]

_MAX_REFERENCES: Final = 1000
_MAX_DEPTH: Final = 200
_KEPT: Final = 1000
_MAX_KEPT_TEXT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Definition:
    """A schema as sent by a client. ``metadata`` and ``rule_set`` are JSON text; ``schema`` may be empty."""

    schema: str = ""
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: str | None = None
    rule_set: str | None = None


class Schemas:
    """Parses, and remembers the last thousand versions and the last thousand texts it parsed."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._parsed: OrderedDict[tuple[object, ...], ParsedSchema] = OrderedDict()
        self._sent: OrderedDict[tuple[object, ...], ParsedSchema] = OrderedDict()

    def parse(self, subject: str, definition: Definition, *, strict: bool, normalized: bool) -> ParsedSchema:
        """Understand a definition sent for ``subject``; raises InvalidSchema."""
        # Every producer that starts sends its schema again, so most of what comes has just been here.
        key = (definition.schema_type, definition.schema, strict, normalized)
        repeatable = not definition.references and len(definition.schema) <= _MAX_KEPT_TEXT
        if repeatable and (known := self._sent.get(key)) is not None:
            self._sent.move_to_end(key)
            return known
        parse = parser_of(definition.schema_type)
        parsed = parse(definition.schema, self._resolve(subject, definition.references), strict=strict)
        if normalized:
            parsed = parsed.normalized()
        if repeatable:
            self._sent[key] = parsed
            if len(self._sent) > _KEPT:
                self._sent.popitem(last=False)
        return parsed

    def stored(self, version: SchemaVersion) -> ParsedSchema:
        """A registered version, parsed; it is fixed for good, so it is parsed once."""
        key = (context_of(version.subject), version.fingerprint)
        parsed = self._parsed.get(key)
        if parsed is None:
            definition = Definition(version.schema, version.schema_type, version.references)
            parsed = self.parse(version.subject, definition, strict=False, normalized=False)
            self._parsed[key] = parsed
            if len(self._parsed) > _KEPT:
                self._parsed.popitem(last=False)
        else:
            self._parsed.move_to_end(key)
        return parsed

    def _resolve(self, subject: str, references: Iterable[Reference]) -> dict[str, str]:
        """The texts that ``references`` stand for, by their names, each once and after those it needs itself."""
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
            place = (version.subject, version.version)
            if len(texts) >= _MAX_REFERENCES or len(open_) >= _MAX_DEPTH:
                raise InvalidSchema(f"The schema needs more than {_MAX_REFERENCES} other schemas")
            if place in open_:  # an import can bring schemas that refer to one another
                raise InvalidSchema(f"The schema in {place[0]}, version {place[1]}, refers to itself")
            self._collect(version.subject, version.references, texts, open_ | {place})
            texts[reference.name] = version.schema

    def referenced(self, parent: str, reference: Reference) -> SchemaVersion:
        """The version that a reference of a schema under ``parent`` means; raises InvalidSchema.

        Version -1 is the latest; a soft-deleted version still serves.
        """
        subject = within(parent, reference.subject)
        if reference.version == -1:
            found = next(reversed(self._state.versions(subject)), None)
        else:
            found = self._state.version(subject, reference.version)
        if found is None:
            raise InvalidSchema(
                f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
            )
        return found
