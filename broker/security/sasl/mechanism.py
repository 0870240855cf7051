"""The interface between a SASL mechanism and the exchange around it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from broker.security.principal import Principal

__all__ = ["Identity", "InvalidCredentials", "Mechanism", "Rejected"]


class Rejected(Exception):
    """Authentication failed, and the client may be told why."""


class InvalidCredentials(Exception):
    """Authentication failed. The reason is for the log only: the client must not learn which users exist."""


class Identity(NamedTuple):
    """The identity that a client proved."""

    principal: Principal
    expires_at_ms: int | None = None
    """When the credentials expire, in milliseconds since 1970."""


class Mechanism(Protocol):
    """The server's side of one authentication."""

    identity: Identity | None
    """None until the exchange is complete."""

    def evaluate(self, response: bytes) -> bytes:
        """The challenge for the client's message.

        Raises Rejected or InvalidCredentials, which ends the authentication.
        """
        ...
