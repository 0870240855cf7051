"""The principal of a connection, in the form ``User:name`` that ACLs, quotas and logs use."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ANONYMOUS", "Principal"]


class Principal(NamedTuple):
    """Kafka's ``KafkaPrincipal``: the type is ``User`` for everyone that authenticates."""

    type: str
    name: str
    token_authenticated: bool = False
    """Whether it authenticated with a delegation token; such a client may not request further tokens."""

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""Every client on a listener without authentication."""
