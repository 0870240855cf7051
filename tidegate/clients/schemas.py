"""Schemas for people: their text, what changed between versions, and why one is refused."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from registry.client import RegisteredSchema, RegistryClient
    from registry.explain.explanation import Explanation

__all__ = ["Change", "Verdict", "checked", "compared", "pretty_schema"]


@dataclass(frozen=True)
class Verdict:
    """Whether a schema may become the next version of a subject, as the registry says, and why not."""

    is_first: bool
    level: str
    messages: Sequence[str]
    """The registry's own words; empty if it may."""
    explanations: Sequence[Explanation]
    """Ours; empty if the registry refuses for another reason than the schemas."""

    @property
    def is_compatible(self) -> bool:
        return not self.messages


@dataclass(frozen=True)
class Change:
    """The changes between two versions, as lines of a unified diff, and the data of one that the other can't read."""

    older: RegisteredSchema
    newer: RegisteredSchema
    lines: Sequence[str]
    backward: Sequence[Explanation]
    """Why the newer can't read data of the older."""
    forward: Sequence[Explanation]
    """Why the older can't read data of the newer."""


def checked(client: RegistryClient, subject: str, asked: RegisteredSchema) -> Verdict:
    """Ask the registry whether a schema may become the next version of a subject, and explain a no.

    Of ``asked`` the text, the type and the references count. Raises TidegateError for a schema that can't be parsed.
    """
    from registry.client import NotFound
    from registry.explain.comparison import explain
    from registry.formats.compatibility import Level, Previous

    new = client.any_parsed(asked)
    try:
        versions = client.versions(subject)
    except NotFound:
        versions = []
    level = client.compatibility(subject)
    if not versions:
        return Verdict(True, level, [], [])
    problems = client.problems(
        subject, asked.text, version=None, references=asked.references, schema_type=asked.schema_type
    )
    told: Sequence[Explanation] = []
    if problems:
        numbers = versions if level.endswith("_TRANSITIVE") else versions[-1:]
        previous = [Previous(number, client.any_parsed(client.version(subject, number))) for number in numbers]
        told = explain(Level(level), new, previous)
    return Verdict(False, level, problems, told)


def _references(version: RegisteredSchema) -> list[str]:
    return [f"{each.name} = {each.subject} version {each.version}" for each in version.references]


def compared(client: RegistryClient, subject: str, older: str = "previous", newer: str = "latest") -> Change:
    """Compare two versions of a subject; ``previous`` is the one before the newest, or the only one."""
    from registry.explain.comparison import unreadable
    from registry.explain.explanation import Sides

    if older == "previous":
        versions = client.versions(subject)
        older = str(versions[-2] if len(versions) > 1 else versions[-1])
    before, after = (client.version(subject, version) for version in (older, newer))
    old, new = (f"version {version.version}" for version in (before, after))
    read_before, read_after = client.any_parsed(before), client.any_parsed(after)
    was, now = ([*pretty_schema(version).splitlines(), *_references(version)] for version in (before, after))
    lines = list(difflib.unified_diff(was, now, f"{subject} {old}", f"{subject} {new}", lineterm=""))
    return Change(
        before,
        after,
        lines,
        unreadable(read_after, read_before, Sides(new, old, forward=False)),
        unreadable(read_before, read_after, Sides(old, new, forward=True)),
    )


def pretty_schema(schema: RegisteredSchema) -> str:
    """A schema's text with a line for each part."""
    if schema.schema_type == "PROTOBUF":
        return schema.text.rstrip("\n")
    try:
        return json.dumps(json.loads(schema.text), indent=2, ensure_ascii=False)
    except json.JSONDecodeError:
        return schema.text
