"""JSON Web Tokens (RFC 7515, 7519): parsing and validation."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from broker.security.config import ListenerConfig
from tidegate.kit.jaas import LoginModule

__all__ = ["InvalidToken", "Jwt", "KeySource", "SignedTokens", "Token", "TokenValidator", "UnsecuredTokens", "read_jwt"]

_SEGMENTS: Final = 3


class InvalidToken(Exception):
    """A refused token; the text is for the log. ``scope`` is set if the token lacks a required scope."""

    def __init__(self, message: str, scope: str | None = None) -> None:
        super().__init__(message)
        self.scope = scope


class Jwt(NamedTuple):
    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signed: bytes
    """The signed bytes."""
    signature: bytes


class Token(NamedTuple):
    """The claims of a valid token."""

    principal_name: str
    expires_at_ms: int


class TokenValidator(Protocol):
    def validate(self, token: str, now_ms: int) -> Token:
        """Raises InvalidToken."""
        ...


class KeySource(Protocol):
    """The keys of a token issuer."""

    def verify(self, jwt: Jwt) -> None:
        """Raises InvalidToken if no key of the issuer made the signature."""
        ...


def read_jwt(token: str) -> Jwt:
    """Parse a compact serialization without validating it. Raises InvalidToken."""
    segments = token.split(".")
    if len(segments) != _SEGMENTS or not all(segments[:2]):
        raise InvalidToken("a token has 3 parts with dots between them")
    header, claims = _json(segments[0]), _json(segments[1])
    return Jwt(header, claims, f"{segments[0]}.{segments[1]}".encode(), _base64(segments[2]))


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidToken(f"malformed base 64 in the token: {error}") from error


def _json(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(_base64(text))
    except (ValueError, RecursionError) as error:
        raise InvalidToken(f"malformed JSON in the token: {error}") from error
    if not isinstance(value, dict):
        raise InvalidToken("a part of the token is not a JSON object")
    return value


def _seconds(claims: Mapping[str, Any], name: str, *, required: bool) -> float | None:
    value = claims.get(name)
    if value is None:
        if required:
            raise InvalidToken(f"Required claim missing: {name}")
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise InvalidToken(f"the claim {name} is not a time in seconds")
    return value


def _name(claims: Mapping[str, Any], claim: str) -> str:
    value = claims.get(claim)
    if not isinstance(value, str) or not value.strip():
        raise InvalidToken(f"No principal name in JWT claim: {claim}")
    return value


def _scopes(claims: Mapping[str, Any], claim: str) -> list[str]:
    value = claims.get(claim)
    if isinstance(value, str):
        return [value.strip()] if value.strip() else []
    if isinstance(value, list):
        return [str(item).strip() for item in value if str(item).strip()]
    if value is None:
        return []
    raise InvalidToken(f"the claim {claim} is neither text nor a list")


class UnsecuredTokens:
    """Kafka's default: unsigned tokens, for development. Uses the options ``unsecuredValidator...`` of the login
    module.

    Raises ValueError for invalid options.
    """

    def __init__(self, module: LoginModule | None) -> None:
        options = module.options if module is not None else {}
        self._principal_claim = options.get("unsecuredValidatorPrincipalClaimName", "").strip() or "sub"
        self._scope_claim = options.get("unsecuredValidatorScopeClaimName", "").strip() or "scope"
        self._required: Sequence[str] = options.get("unsecuredValidatorRequiredScope", "").split()
        skew = options.get("unsecuredValidatorAllowableClockSkewMs", "").strip() or "0"
        if not skew.isdecimal():
            raise ValueError(f"unsecuredValidatorAllowableClockSkewMs is {skew!r}; milliseconds are wanted")
        self._skew_ms = int(skew)

    def validate(self, token: str, now_ms: int) -> Token:
        jwt = read_jwt(token)
        if jwt.header.get("alg") != "none":
            raise InvalidToken("Unsecured JWS must have 'none' for an algorithm")
        if jwt.signature:
            raise InvalidToken("Unsecured JWS must not contain a digital signature")
        name = _name(jwt.claims, self._principal_claim)
        expires = _seconds(jwt.claims, "exp", required=True) or 0
        issued = _seconds(jwt.claims, "iat", required=False)
        if issued is not None and 1000 * issued > now_ms + self._skew_ms:
            raise InvalidToken(f"the token was issued in the future, at {issued} s")
        if now_ms - self._skew_ms >= 1000 * expires:
            raise InvalidToken(f"the token expired at {expires} s")
        if issued is not None and expires <= issued:
            raise InvalidToken("the token expires before it was issued")
        scopes = _scopes(jwt.claims, self._scope_claim)
        missing = next((text for text in self._required if text not in scopes), None)
        if missing is not None:
            raise InvalidToken(f"the scope {missing} is missing", f"[{', '.join(self._required)}]")
        return Token(name, round(expires * 1000))


class SignedTokens:
    """Tokens signed with a key of their issuer, validated like Kafka's ``OAuthBearerValidatorCallbackHandler``."""

    def __init__(self, settings: ListenerConfig, keys: KeySource) -> None:
        self._settings = settings
        self._keys = keys

    def validate(self, token: str, now_ms: int) -> Token:
        jwt = read_jwt(token)
        self._keys.verify(jwt)
        settings, claims = self._settings, jwt.claims
        now, skew = now_ms / 1000, settings.oauth_clock_skew_seconds
        expires = _seconds(claims, "exp", required=True) or 0
        issued = _seconds(claims, "iat", required=True) or 0
        begins = _seconds(claims, "nbf", required=False)
        if now - skew >= expires:
            raise InvalidToken(f"the token expired at {expires} s")
        if begins is not None and now + skew < begins:
            raise InvalidToken(f"the token holds from {begins} s on")
        if expires < issued or issued < 0:
            raise InvalidToken("the token expires before it was issued")
        issuer = settings.oauth_expected_issuer
        if issuer is not None and claims.get("iss") != issuer:
            raise InvalidToken(f"the issuer is {claims.get('iss')!r}; {issuer!r} is expected")
        self._check_audience(claims)
        scopes = _scopes(claims, settings.oauth_scope_claim)
        if len(set(scopes)) != len(scopes):
            raise InvalidToken(f"the claim {settings.oauth_scope_claim} names a scope twice")
        return Token(_name(claims, settings.oauth_sub_claim).strip(), round(expires * 1000))

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        value = claims.get("aud")
        named = value if isinstance(value, list) else [] if value is None else [value]
        expected = self._settings.oauth_expected_audience
        if expected and not any(name in named for name in expected):
            raise InvalidToken(f"the audience is {named}; one of {expected} is expected")
        if named and not expected:
            # Like jose4j, which Kafka verifies with: a token with an audience is refused if no audience is expected.
            raise InvalidToken(f"the token is for {named}; name it in sasl.oauthbearer.expected.audience")
