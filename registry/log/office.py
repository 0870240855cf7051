"""The right to write, as the store requires it. An election grants it; a single registry always has it."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Alone", "Office"]


class Office(Protocol):
    """Tells whether this registry may write.

    ``require`` raises NotLeader or UnknownLeader if not. ``term`` counts its elections. ``confirm`` asks the election
    whether this registry is still the writer. ``certain`` is whether, without asking, no other one can have been
    elected.
    """

    @property
    def term(self) -> int: ...

    def require(self) -> None: ...

    async def confirm(self) -> bool: ...

    @property
    def certain(self) -> bool: ...


class Alone:
    """For a registry that shares its log with no other."""

    certain = True
    term = 1

    def require(self) -> None:
        pass

    async def confirm(self) -> bool:
        return True
