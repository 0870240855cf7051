"""JWT bearer assertions (RFC 7523): a connected app requests a token for a user with a JWT signed by its key."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from events.access.accounts import ConnectedApp
from events.access.certificates import public_key
from events.access.errors import InvalidGrant, UnknownClient
from tidegate.kit.logs import get_logger

__all__ = ["Assertion", "read_assertion"]

logger = get_logger(__name__)

_INVALID: Final = "invalid assertion"
_LONGEST_MS: Final = 24 * 60 * 60 * 1000
"""The longest validity of an assertion, because a leaked one permits logins until it expires.

Clients mostly use 3 to 60 minutes.
"""
_CLAIMS: Final = ("iss", "sub", "aud", "exp")


class Assertion(NamedTuple):
    """A verified assertion: the app, and the name of the user it requests."""

    app: ConnectedApp
    user_name: str


def read_assertion(
    assertion: str, apps: Mapping[str, ConnectedApp], audiences: Collection[str], now_ms: int
) -> Assertion:
    """Check issuer, signature (RS256), audience and expiry, in this order. Raises UnknownClient or InvalidGrant."""
    import jwt

    try:
        claims: dict[str, Any] = jwt.decode(assertion, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise InvalidGrant(_INVALID) from error
    issuer = claims.get("iss")
    app = apps.get(issuer) if isinstance(issuer, str) else None
    if app is None:
        raise UnknownClient
    if app.certificate is None:
        raise InvalidGrant(_INVALID)
    try:
        key = public_key(app.certificate)
        claims = jwt.decode(
            assertion,
            key,
            algorithms=["RS256"],
            audience=list(audiences),
            options={"require": list(_CLAIMS), "verify_exp": False, "verify_iat": False},
        )
        expires_s = int(claims["exp"])  # some clients send it as text
    except jwt.InvalidAudienceError as error:
        raise InvalidGrant("audience is invalid") from error
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
        logger.info("an assertion is refused", client=app.client_id, reason=str(error))
        raise InvalidGrant(_INVALID) from error
    if expires_s * 1000 <= now_ms:
        raise InvalidGrant("expired authorization code")
    if expires_s * 1000 - now_ms > _LONGEST_MS:
        logger.info("an assertion is refused", client=app.client_id, reason="its exp is more than a day ahead")
        raise InvalidGrant(f"{_INVALID}: exp must be within a day, Salesforce asks for 3 minutes")
    return Assertion(app, str(claims["sub"]))
