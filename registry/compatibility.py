"""Compatibility levels: which earlier versions a new schema is held against, in which direction, in Confluent's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from registry.formats.parsed import ParsedSchema

__all__ = ["Level", "Previous", "check"]

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
        """Whether every earlier version counts, not only the latest."""
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


def check(level: Level, new: ParsedSchema, previous: Sequence[Previous]) -> list[str]:
    """What ``level`` has against ``new`` after ``previous`` (oldest first); empty when compatible.

    As Confluent does, the latest version is looked at first and the first incompatible version is the one reported.
    """
    for old in reversed(previous):
        messages = _against(level, new, old)
        if messages:
            return [*messages, f"{{validateFields: 'false', compatibility: '{level.value}'}}"]
        if not level.transitive:
            break
    return []


def _against(level: Level, new: ParsedSchema, old: Previous) -> list[str]:
    if level is Level.NONE:
        return []
    if new.schema_type != old.schema.schema_type:
        return ["Incompatible because of different schema type"]
    messages: list[str] = []
    backward: list[str] = []
    if level.forward:
        messages += [_filled(message, "old", "new") for message in old.schema.reading_problems(new)]
    if level.backward:
        backward = [_filled(message, "new", "old") for message in new.reading_problems(old.schema)]
    messages += backward
    # Under FULL, Confluent names the old schema only when the second direction, backward, found something.
    if backward or (messages and not level.backward):
        text = old.schema.canonical
        cut = len(text) > MAX_SCHEMA_IN_MESSAGE
        shown = f"<truncated> '{text[:MAX_SCHEMA_IN_MESSAGE]}...'" if cut else f"'{text}'"
        messages += [f"{{oldSchemaVersion: {old.version}}}", f"{{oldSchema: {shown}}}"]
    return messages


def _filled(message: str, reader: str, writer: str) -> str:
    places = message.replace("%%", "").count("%s")
    return message % (reader, writer)[:places]
