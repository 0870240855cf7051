"""The principal of a connection, in the form ``User:name`` that ACLs, quotas and logs use."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ANONYMOUS", "Principal"]


class Principal(NamedTuple):
    """Kafka's ``KafkaPrincipal``: the type is ``User`` for everyone that authenticates."""

    type: str
    name: str
    token_authenticated: bool = False
    """Whether a delegation token was shown instead of credentials: such a client may not ask for further tokens."""

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""Everyone on a listener that does not ask who they are."""
