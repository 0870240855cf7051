"""Compatibility levels: which earlier versions a new schema is compared with, in which direction, in Confluent's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from registry.formats.parsed import ParsedSchema

__all__ = ["Compare", "Level", "Previous", "check"]

Compare = Callable[[ParsedSchema, ParsedSchema, bool], list[str]]
"""Takes the reader, the writer and whether to be lenient; returns ``ParsedSchema.reading_problems``."""

MAX_SCHEMA_IN_MESSAGE: Final = 10 * 1024


class Level(Enum):
    """Confluent's compatibility levels. BACKWARD: the new schema reads old data. FORWARD: old schemas read new data."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """Whether every earlier version is compared, not only the latest."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def backward(self) -> bool:
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        return self.value.startswith(("FORWARD", "FULL"))


@dataclass(frozen=True, slots=True)
class Previous:
    """A registered version to compare with."""

    version: int
    schema: ParsedSchema


def _compare(reader: ParsedSchema, writer: ParsedSchema, lenient: bool) -> list[str]:
    return reader.reading_problems(writer, lenient=lenient)


def check(
    level: Level,
    new: ParsedSchema,
    previous: Sequence[Previous],
    *,
    compare: Compare = _compare,
    lenient: bool = False,
    validate_fields: bool = False,
    reserved: Sequence[str] = (),
) -> list[str]:
    """Why ``level`` refuses ``new`` after ``previous`` (oldest first); empty if compatible.

    As in Confluent, the latest version is compared first, and the first incompatible version is reported. ``lenient``
    is the compatibility policy of that name. ``validate_fields`` is that setting, for the answer; ``reserved`` are its
    messages, which come first.
    """
    messages = list(reserved)
    for old in reversed(previous):
        problems = _against(level, new, old, lenient, compare)
        messages += problems
        if problems or not level.transitive:
            break
    if messages:
        messages.append(f"{{validateFields: '{str(validate_fields).lower()}', compatibility: '{level.value}'}}")
    return messages


def _against(level: Level, new: ParsedSchema, old: Previous, lenient: bool, compare: Compare) -> list[str]:
    if level is Level.NONE:
        return []
    if new.schema_type != old.schema.schema_type:
        return ["Incompatible because of different schema type"]
    messages: list[str] = []
    backward: list[str] = []
    if level.forward:
        messages += [_filled(message, "old", "new") for message in compare(old.schema, new, lenient)]
    if level.backward:
        backward = [_filled(message, "new", "old") for message in compare(new, old.schema, lenient)]
    messages += backward
    # Under FULL, Confluent names the old schema only if the second direction, backward, found something.
    if backward or (messages and not level.backward):
        text = old.schema.canonical
        cut = len(text) > MAX_SCHEMA_IN_MESSAGE
        shown = f"<truncated> '{text[:MAX_SCHEMA_IN_MESSAGE]}...'" if cut else f"'{text}'"
        messages += [f"{{oldSchemaVersion: {old.version}}}", f"{{oldSchema: {shown}}}"]
    return messages


def _filled(message: str, reader: str, writer: str) -> str:
    placeholders = message.replace("%%", "").count("%s")
    return message % (reader, writer)[:placeholders]
