"""Messages as tables of fields, which generated classes declare once for all versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

__all__ = ["NEVER", "Field", "Message", "SharedArray", "plain"]

NEVER: Final = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a message in all its versions.

    ``kind`` is a primitive type's name or the class of a nested structure. A field with a ``tag`` is written after the
    others, and only if it differs from its default (KIP-482).
    """

    name: str
    kind: str | type[Message]
    array: bool = False
    since: int = 0
    until: int = NEVER
    null_since: int = NEVER
    tag: int | None = None

    def exists_in(self, version: int) -> bool:
        return self.since <= version <= self.until


class SharedArray(tuple[Any, ...]):  # noqa: SLOT001 - a tuple of varying length has none
    """An array shared by many messages: it is encoded once per version, then copied."""

    def __init__(self, _items: Iterable[Any] = ()) -> None:
        self.written: dict[tuple[int, bool], bytes] = {}
        """By version and whether that is flexible."""


class Message:  # noqa: PLW1641 - mutable, so unhashable
    """A structure of the protocol. Generated classes take their fields as keyword arguments, each with Kafka's default."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[Field, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(plain(getattr(self, f.name)) == plain(getattr(other, f.name)) for f in self.FIELDS)

    def __repr__(self) -> str:
        values = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self.FIELDS)
        return f"{type(self).__name__}({values})"


def plain(value: Any) -> Any:
    """Convert sequences to lists, so that arrays compare equal whatever holds them."""
    return list(value) if isinstance(value, list | tuple) else value
