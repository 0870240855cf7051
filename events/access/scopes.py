"""OAuth scopes: what a connected app may do with a user's session, with Salesforce's names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["API_SCOPES", "IDENTITY_SCOPES", "OFFLINE_SCOPES", "SCOPES", "mask_of_scopes", "scopes_of_mask"]

SCOPES: Final = ("api", "full", "id", "web", "refresh_token", "offline_access")
"""All scopes of a connected app, which are its default too. The order is that of the bits in a token."""

API_SCOPES: Final = frozenset(("api", "full"))
"""Either permits a session to use REST, SOAP, Bulk, CometD and the Pub/Sub API."""

IDENTITY_SCOPES: Final = frozenset(("api", "full", "id", "web"))
"""Any of them permits a session to query its user's identity."""

OFFLINE_SCOPES: Final = frozenset(("refresh_token", "offline_access"))
"""Either gives an app a refresh token."""


def mask_of_scopes(scopes: Iterable[str]) -> bytes:
    """Scopes encoded as one byte for a token."""
    return bytes([sum(1 << SCOPES.index(scope) for scope in set(scopes))])


def scopes_of_mask(mask: bytes) -> tuple[str, ...]:
    return tuple(scope for index, scope in enumerate(SCOPES) if mask and mask[0] >> index & 1)
