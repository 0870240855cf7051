"""Configuration keys as clients see them: a value, its source, and the values it overrides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from tidegate.kit.config import Key, KeyType

__all__ = ["ConfigEntry", "Operation", "Source", "Synonym", "as_text"]


class Source(IntEnum):
    """The source of a value (``ConfigEntry.ConfigSource``). The first that is set wins."""

    TOPIC = 1
    BROKER = 2
    BROKER_DEFAULT = 3
    STATIC = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Operation(IntEnum):
    """The kind of an incremental change (``AlterConfigOp.OpType``)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_TYPES: Final = {
    KeyType.BOOLEAN: 1,
    KeyType.STRING: 2,
    KeyType.INT: 3,
    KeyType.SHORT: 4,
    KeyType.LONG: 5,
    KeyType.DOUBLE: 6,
    KeyType.LIST: 7,
    KeyType.CLASS: 8,
    KeyType.PASSWORD: 9,
}
_NO_TYPE: Final = 0


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One key of a resource: the effective value, and under ``synonyms`` all values, highest precedence first."""

    key: Key
    synonyms: Sequence[Synonym]
    read_only: bool = False
    settled: str | None = None
    """The effective value if no synonym is shown."""
    settled_source: Source = Source.DEFAULT

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def value(self) -> str | None:
        if self.sensitive:
            return None
        return self.synonyms[0].value if self.synonyms else self.settled

    @property
    def source(self) -> Source:
        return self.synonyms[0].source if self.synonyms else self.settled_source

    @property
    def sensitive(self) -> bool:
        return self.key.secret

    @property
    def type_code(self) -> int:
        return _NO_TYPE if self.source is Source.LOGGER else _TYPES[self.key.type]


def as_text(value: Any) -> str | None:
    """A parsed value as text for a configuration."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
