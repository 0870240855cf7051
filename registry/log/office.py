"""The right to write, as the store asks for it; an ``election`` gives it, or nobody needs to."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Alone", "Office"]


class Office(Protocol):
    """Who may write. ``require`` raises NotLeader or UnknownLeader where it is not this registry; ``term`` counts how
    often it has been elected anew; ``confirm`` asks the election whether it still is the one, and ``certain`` is whether,
    without asking, nobody else can have been elected."""

    @property
    def term(self) -> int: ...

    def require(self) -> None: ...

    async def confirm(self) -> bool: ...

    @property
    def certain(self) -> bool: ...


class Alone:
    """The office of a registry that shares its log with no other."""

    certain = True
    term = 1

    def require(self) -> None:
        pass

    async def confirm(self) -> bool:
        return True
