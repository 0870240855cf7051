"""OAuth's grant types as in Salesforce (RFC 6749, 7523, 7636), and token introspection (RFC 7662)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from events.access.access import Access, Session
from events.access.accounts import ConnectedApp, User
from events.access.assertions import read_assertion
from events.access.errors import (
    AppAccessDenied,
    InactiveUser,
    InvalidClient,
    InvalidGrant,
    InvalidTokenRequest,
    UnknownClient,
    UnsupportedGrant,
)
from events.access.scopes import OFFLINE_SCOPES, SCOPES, mask_of_scopes, scopes_of_mask
from events.access.tokens import Kind, Token, client_mark

__all__ = ["CODE_LASTS_MS", "Granted", "Grants"]

CODE_LASTS_MS: Final = 10 * 60 * 1000
_JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_NOT_APPROVED: Final = "user hasn't approved this consumer"
_URL_BYTES: Final = 16
_EXPIRED: Final = {Kind.CODE: "expired authorization code", Kind.REFRESH: "expired access/refresh token"}


class Granted(NamedTuple):
    """A session with the data for its answer. ``secret`` is the client's as sent; it signs the answer."""

    session: Session
    scopes: tuple[str, ...]
    refresh_token: str = ""
    secret: str = ""


class Grants:
    """The token endpoint without HTTP. Every method raises a GrantError if it refuses."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._ways: Mapping[str, Callable[[Mapping[str, str]], Awaitable[Granted]]] = {
            "password": self._password,
            "client_credentials": self._client_credentials,
            _JWT_BEARER: self._assertion,
            "refresh_token": self._refresh,
            "authorization_code": self._code,
        }

    async def grant(self, form: Mapping[str, str]) -> Granted:
        """Grant a token by ``grant_type``. The form has client id and secret, wherever the request had them."""
        asked = form.get("grant_type", "")
        way = self._ways.get(asked)
        if way is None:
            raise UnsupportedGrant(f"grant type {asked[:60]!r} not supported; there are {', '.join(self._ways)}")
        return await way(form)

    async def _password(self, form: Mapping[str, str]) -> Granted:
        app = await self._client(form)
        user = await self._access.authenticated(form.get("username", ""), form.get("password", ""))
        if user is None:
            raise InvalidGrant("authentication failure")
        return self._granted(user, app, form)

    async def _client_credentials(self, form: Mapping[str, str]) -> Granted:
        app = await self._client(form)
        user = self._access.accounts.named(app.run_as)
        if user is None:
            raise InvalidGrant("no client credentials user enabled")
        return self._granted(user, app, form)

    async def _assertion(self, form: Mapping[str, str]) -> Granted:
        accounts, access = self._access.accounts, self._access
        app, name = read_assertion(form.get("assertion", ""), accounts.apps, access.audiences, access.clock_ms())
        user = accounts.named(name)
        if user is None:
            raise InvalidGrant(_NOT_APPROVED)
        return self._granted(user, app, {})

    async def _refresh(self, form: Mapping[str, str]) -> Granted:
        app = await self._client(form, public=True)
        token, user = self._usable(Kind.REFRESH, form.get("refresh_token", ""), app)
        scopes = scopes_of_mask(token.extra)
        granted = self._granted(user, app, form, scopes, grant=token.grant)
        if app.secret is not None:
            return granted
        # Only the token proves the client's identity, so each can be used once: that reveals a stolen one.
        return granted._replace(refresh_token=self._refresh_token(user, app, scopes, token.grant))

    def _usable(self, kind: Kind, text: str, app: ConnectedApp) -> tuple[Token, User]:
        """A token of this app, and its user. Raises InvalidGrant.

        Reuse of a one-time token means that it was stolen, by this client or from it. So everything issued under its
        grant is revoked (RFC 6749, section 4.1.2; RFC 9700, section 4.14.2).
        """
        tokens = self._access.tokens
        token = tokens.read(kind, text)
        holder = self._access.holder(token) if token is not None else None
        if token is not None and holder is not None and holder[1] == app:
            return token, holder[0]
        spent = tokens.spent(kind, text)
        if spent is not None and spent.client == client_mark(app.client_id):
            self._access.revoke_grant(spent)
        raise InvalidGrant(_EXPIRED[kind])

    def _refresh_token(self, user: User, app: ConnectedApp, scopes: tuple[str, ...], grant: bytes) -> str:
        lasts_ms, extra = self._access.refresh_timeout_ms, mask_of_scopes(scopes)
        text, token = self._access.issue(Kind.REFRESH, user, app, lasts_ms, grant=grant, extra=extra)
        if app.secret is None:
            self._access.tokens.rotate(text, token)
        return text

    async def _code(self, form: Mapping[str, str]) -> Granted:
        app = await self._client(form, public=True)
        text = form.get("code", "")
        token, user = self._usable(Kind.CODE, text, app)
        mask, url, challenge = token.extra[:1], token.extra[1 : _URL_BYTES + 1], token.extra[_URL_BYTES + 1 :]
        if url != _url_mark(form.get("redirect_uri", "")):
            raise InvalidGrant("redirect_uri must match configuration")
        if app.secret is None and not challenge:
            raise InvalidClient
        if challenge and not hmac.compare_digest(challenge, _challenge(form.get("code_verifier", ""))):
            raise InvalidGrant("invalid code verifier")
        self._access.tokens.revoke(text, token)
        scopes = scopes_of_mask(mask)
        granted = self._granted(user, app, form, scopes, grant=token.grant)
        if OFFLINE_SCOPES.isdisjoint(scopes):
            return granted
        return granted._replace(refresh_token=self._refresh_token(user, app, scopes, token.grant))

    def code(self, user: User, app: ConnectedApp, redirect_uri: str, scope: str, challenge: str) -> str:
        """An authorization code for a user that has logged in. ``challenge`` (S256) is empty without PKCE."""
        self._admit(user, app)
        extra = mask_of_scopes(self.scopes(app, scope)) + _url_mark(redirect_uri) + _challenge_bytes(challenge)
        return self._access.issue(Kind.CODE, user, app, CODE_LASTS_MS, extra=extra)[0]

    def scopes(self, app: ConnectedApp, asked: str) -> tuple[str, ...]:
        """The granted scopes: those requested, or all scopes of the app if none are requested.

        Raises InvalidTokenRequest.
        """
        for scope in asked.split():
            if scope not in SCOPES or scope not in app.scopes:
                raise InvalidTokenRequest(f"scope {scope[:60]!r} is not one of {', '.join(app.scopes)}")
        return tuple(asked.split()) or app.scopes

    async def introspect(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Introspect a token of the requesting app. For any other token the answer only says that it is not active."""
        app = await self._client(form)
        text = form.get("token", "")
        for kind, name in ((Kind.SESSION, "access_token"), (Kind.REFRESH, "refresh_token")):
            token = self._access.tokens.read(kind, text)
            holder = self._access.holder(token) if token is not None else None
            if token is not None and holder is not None and holder[1] == app:
                return {
                    "active": True,
                    "scope": " ".join(scopes_of_mask(token.extra)),
                    "client_id": app.client_id,
                    "username": holder[0].name,
                    "sub": holder[0].id,
                    "token_type": name,
                    "exp": token.expires_ms // 1000,
                    "iat": token.issued_ms // 1000,
                    "nbf": token.issued_ms // 1000,
                }
        return {"active": False}

    async def _client(self, form: Mapping[str, str], *, public: bool = False) -> ConnectedApp:
        """The requesting app, verified by its secret; ``public`` apps may have none."""
        app = self._access.accounts.apps.get(form.get("client_id", ""))
        if app is None:
            raise UnknownClient
        if app.secret is None and public:
            return app
        if app.secret is None or not await self._access.matches(app.secret, form.get("client_secret", "")):
            raise InvalidClient
        return app

    def _granted(
        self,
        user: User,
        app: ConnectedApp,
        form: Mapping[str, str],
        scopes: tuple[str, ...] | None = None,
        *,
        grant: bytes = b"",
    ) -> Granted:
        """A session with all scopes of the app, unless the user has allowed fewer."""
        self._admit(user, app)
        scopes = app.scopes if scopes is None else scopes
        session = self._access.open(user, app, scopes, grant=grant)
        return Granted(session, scopes, secret=form.get("client_secret", ""))

    def _admit(self, user: User, app: ConnectedApp) -> None:
        if not user.active:
            raise InactiveUser
        if not app.admits(user):
            raise AppAccessDenied


def _url_mark(url: str) -> bytes:
    return hashlib.sha256(url.encode(errors="replace")).digest()[:_URL_BYTES]


def _challenge(verifier: str) -> bytes:
    """The challenge of RFC 7636 with S256, the only method that Salesforce supports."""
    return hashlib.sha256(verifier.encode(errors="replace")).digest()


def _challenge_bytes(challenge: str) -> bytes:
    if not challenge:
        return b""
    try:
        made = base64.urlsafe_b64decode(challenge + "=" * (-len(challenge) % 4))
    except ValueError:
        made = b""
    if len(made) != 32:
        raise InvalidTokenRequest("code_challenge is not a SHA-256 digest in base64url")
    return made
