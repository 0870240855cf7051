"""Logins and sessions. Sessions are signed rather than stored: see ``tokens``."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from events.access.accounts import Accounts, ConnectedApp, Permission, User, read_accounts
from events.access.errors import InsufficientScope
from events.access.ids import long_id
from events.access.platform_users import user_of_platform
from events.access.scopes import API_SCOPES, SCOPES, mask_of_scopes, scopes_of_mask
from events.access.tokens import Kind, Token, Tokens
from events.config import EventsConfig
from events.errors import InvalidLogin, InvalidSession
from tidegate.kit.passwords import WatchedFile
from tidegate.kit.secrets import PlainSecret, Secret, nobody
from tidegate.kit.users import Users, UsersFile

__all__ = ["Access", "Session"]

_MOST_CHARACTERS: Final = 1000
_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Session:
    """A login: its user, its connected app (empty for none), and its expiry (milliseconds since 1970)."""

    id: str
    user: User
    client_id: str
    issued_ms: int
    expires_ms: int
    scopes: frozenset[str] = frozenset(SCOPES)
    """The scopes granted to its app or allowed by the user; all scopes for a login without an app."""

    @property
    def user_id(self) -> str:
        return self.user.id

    @property
    def user_name(self) -> str:
        return self.user.name


class Access:
    """The accounts of the configuration and of the accounts file, and their sessions. Use it on one event loop."""

    def __init__(self, config: EventsConfig, clock_ms: Callable[[], int]) -> None:
        """Raises UsageError if the accounts file is unusable."""
        self.clock_ms = clock_ms
        self.org_id = long_id(config.org_id)
        self.session_timeout_ms = config.session_timeout_ms
        self.refresh_timeout_ms = config.refresh_timeout_ms
        self.audiences: set[str] = {
            "https://login.salesforce.com",
            "https://test.salesforce.com",
            *config.jwt_audiences,
        }
        """Valid audiences of a JWT. The server adds its own addresses once they are known."""
        forever = min(self.refresh_timeout_ms, self.session_timeout_ms) < 0
        longest_ms = -1 if forever else max(self.refresh_timeout_ms, self.session_timeout_ms)
        self.tokens = Tokens(config.data_path, self.org_id, clock_ms, longest_ms)
        self._configured = _configured(config)
        self._file = WatchedFile(config.accounts_path, read_accounts)
        self._platform = UsersFile(Path(config.users_file)) if config.users_file else None
        self._merged = self._merge()
        self._sessions: dict[str, tuple[Accounts, Session]] = {}
        """Verified sessions, each with the accounts at the time of verification."""
        self._looked = False
        """Whether the accounts file was checked in this turn of the event loop."""
        self._key = secrets.token_bytes(32)
        self._right: dict[Secret, bytes] = {}

    @property
    def accounts(self) -> Accounts:
        """All current accounts.

        For a duplicate name the accounts file comes first, then the platform, then the configuration.
        """
        if self._file.value is not self._merged[0] or self._platform_users is not self._merged[1]:
            self._merged = self._merge()
        return self._merged[2]

    @property
    def _platform_users(self) -> Users | None:
        return self._platform.users if self._platform is not None else None

    def _merge(self) -> tuple[Accounts, Users | None, Accounts]:
        """The accounts of the file, the users of the platform, and all accounts merged."""
        accounts, platform = self._file.value, self._platform_users
        users = Accounts(map(user_of_platform, platform)) if platform is not None else Accounts()
        return accounts, platform, accounts.over(users.over(self._configured))

    async def login(self, name: str, password: str) -> Session:
        """A new session. A user's security token, if any, must be appended to the password. Raises InvalidLogin."""
        user = await self.authenticated(name, password)
        if user is None or not user.active:
            raise InvalidLogin
        return self.open(user)

    async def authenticated(self, name: str, password: str) -> User | None:
        """The user with this name and password, even a frozen one."""
        user = self.accounts.named(name)
        secret, token = (user.password, user.security_token) if user is not None else (None, None)
        split = token.cut_off(password[: _MOST_CHARACTERS + 1]) if token is not None else password
        if secret is not None and split is not None and await self.matches(secret, split):
            return user
        if secret is None or split is None or not secret.slow:
            # Equal timing for unknown names, so that existing names and tokens can't be found by measurement.
            await asyncio.to_thread(nobody().matches, password[:_MOST_CHARACTERS])
        return None

    async def matches(self, secret: Secret, attempt: str) -> bool:
        """Whether a secret is correct. Slow comparisons run in a thread, and correct secrets are cached."""
        if len(attempt) > _MOST_CHARACTERS:
            return False
        if not secret.slow:
            return secret.matches(attempt)
        tag = hmac.digest(self._key, attempt.encode(errors="replace"), "sha256")
        if hmac.compare_digest(self._right.get(secret, b""), tag):
            return True
        right = await asyncio.to_thread(secret.matches, attempt)
        if right:
            if len(self._right) >= _REMEMBERED:
                self._right.clear()
            self._right[secret] = tag
        return right

    def open(
        self, user: User, app: ConnectedApp | None = None, scopes: Iterable[str] = SCOPES, *, grant: bytes = b""
    ) -> Session:
        """Open a session for a user, through an app with these scopes, as part of a refresh token's grant."""
        text, token = self.issue(
            Kind.SESSION, user, app, self.session_timeout_ms, grant=grant, extra=mask_of_scopes(scopes)
        )
        return _session_of(text, token, user, app)

    def issue(
        self,
        kind: Kind,
        user: User,
        app: ConnectedApp | None,
        lasts_ms: int,
        *,
        grant: bytes = b"",
        extra: bytes = b"",
    ) -> tuple[str, Token]:
        """A token that is valid as long as user and app keep their secrets."""
        client_id = app.client_id if app is not None else ""
        epoch = self._epoch(user, app)
        return self.tokens.make(kind, user.id, client_id, lasts_ms, epoch=epoch, grant=grant, extra=extra)

    def session(self, session_id: str, scopes: frozenset[str] = API_SCOPES) -> Session:
        """The session with this id. Raises InvalidSession if it is forged, expired or revoked, or its user is gone;
        InsufficientScope if it has none of these scopes.

        The result is cached until the session expires, a session is revoked, or the accounts change. The accounts file
        is checked once per turn of the event loop: otherwise each of a thousand requests in one turn would cost a
        system call.
        """
        accounts = self._accounts_of_turn()
        accounts_then, session = self._sessions.get(session_id, (None, None))
        if session is None or accounts_then is not accounts or self.clock_ms() >= session.expires_ms:
            session = self._session(session_id)
            if len(self._sessions) >= _REMEMBERED:
                self._sessions.clear()
            self._sessions[session_id] = (accounts, session)
        if session.scopes.isdisjoint(scopes):
            raise InsufficientScope
        return session

    def _accounts_of_turn(self) -> Accounts:
        if self._looked:
            return self._merged[2]
        with contextlib.suppress(RuntimeError):  # without a running loop there are no turns
            asyncio.get_running_loop().call_soon(self._look_again)
            self._looked = True
        return self.accounts

    def _look_again(self) -> None:
        self._looked = False

    def _session(self, session_id: str) -> Session:
        token = self.tokens.read(Kind.SESSION, session_id)
        holder = self.holder(token) if token is not None else None
        if token is None or holder is None:
            raise InvalidSession
        return _session_of(session_id, token, *holder)

    def user(self, id_: str) -> User | None:
        return self.accounts.with_id(id_)

    def holder(self, token: Token) -> tuple[User, ConnectedApp | None] | None:
        """The user and app of a token; None if either is gone or frozen, the user may no longer use the app, or their
        secrets have changed since.
        """
        accounts = self.accounts
        user, app = accounts.with_id(token.user_id), accounts.by_mark.get(token.client)
        if user is None or not user.active:
            return None
        if app is None and any(token.client):
            return None
        if app is not None and not app.admits(user):
            return None
        return (user, app) if hmac.compare_digest(token.epoch, self._epoch(user, app)) else None

    def _epoch(self, user: User, app: ConnectedApp | None) -> bytes:
        """A user or app that was removed and added again under the same name counts as a different one."""
        facts = [_fingerprint(user.password), str(user.sessions_from_ms).encode()]
        if app is not None:
            facts += [_fingerprint(app.secret), str(app.sessions_from_ms).encode()]
        return self.tokens.epoch(*facts)

    def revoke(self, text: str) -> None:
        """Revoke a session, or a refresh token with its sessions. Raises InvalidSession if it is neither."""
        self._sessions.clear()
        if (token := self.tokens.read(Kind.SESSION, text)) is not None:
            self.tokens.revoke(text, token)
        elif (token := self.tokens.read(Kind.REFRESH, text)) is not None:
            self.revoke_grant(token)
        else:
            raise InvalidSession

    def revoke_grant(self, token: Token) -> None:
        """Revoke all sessions and tokens from one login of a user to an app."""
        self._sessions.clear()
        self.tokens.revoke_grant(token)


def _session_of(text: str, token: Token, user: User, app: ConnectedApp | None) -> Session:
    client_id = app.client_id if app is not None else ""
    return Session(text, user, client_id, token.issued_ms, token.expires_ms, frozenset(scopes_of_mask(token.extra)))


def _fingerprint(secret: Secret | None) -> bytes:
    return secret.fingerprint if secret is not None else b""


def _configured(config: EventsConfig) -> Accounts:
    """The administrator and the connected app from the configuration keys. An empty name leaves either out."""
    users, apps = [], []
    if config.user:
        token = config.security_token.reveal()
        users.append(
            User(
                config.user,
                PlainSecret(config.password.reveal()),
                PlainSecret(token) if token else None,
                create=("*",),
                read=("*",),
                permissions=frozenset(Permission),
            )
        )
    if config.client_id:
        apps.append(
            ConnectedApp(
                config.client_id,
                PlainSecret(config.client_secret.reveal()),
                Path(config.client_certificate) if config.client_certificate else None,
                run_as=config.user,
                callback_urls=tuple(config.callback_urls),
            )
        )
    return Accounts(users, apps)
