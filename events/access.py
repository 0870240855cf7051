"""Who may come in: the development user, the OAuth client, and sessions that are signed rather than stored.

A session id is the organization's id, ``!`` and a signed text, as Salesforce's looks, so it stays valid when the
service restarts. Only revoked sessions are written down, until they would have expired anyway.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from events.config import EventsConfig
from events.errors import InvalidClient, InvalidLogin, InvalidSession

__all__ = ["Access", "Session", "long_id"]

_SUFFIX: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"


def long_id(short: str) -> str:
    """The 18-character form of a 15-character id: three letters say which of its letters are capitals."""
    if len(short) == 18:
        return short
    groups = (short[:5], short[5:10], short[10:15])
    return short + "".join(_SUFFIX[sum(1 << i for i, c in enumerate(group) if "A" <= c <= "Z")] for group in groups)


@dataclass(frozen=True, slots=True)
class Session:
    """A login: whose, and until when (milliseconds since 1970)."""

    id: str
    user_id: str
    user_name: str
    expires_ms: int


class Access:
    """The one user, the one OAuth client and their sessions."""

    def __init__(self, config: EventsConfig, clock_ms: Callable[[], int]) -> None:
        self._config, self._clock_ms = config, clock_ms
        self.org_id = long_id(config.org_id)
        number = int.from_bytes(hashlib.sha256(config.user.lower().encode()).digest()[:5])
        self.user_id = long_id(f"005TG{number % 10**10:010d}")
        self._directory = config.data_path
        self._key = _own_key(self._directory / "session.key")
        self._revoked_file = self._directory / "revoked-sessions.json"
        self._revoked = self._load_revoked()

    @property
    def user_name(self) -> str:
        return self._config.user

    @property
    def session_timeout_ms(self) -> int:
        return self._config.session_timeout_ms

    def login(self, user: str, password: str) -> Session:
        """A new session; the security token may follow the password. Raises InvalidLogin."""
        right, token = self._config.password.reveal(), self._config.security_token.reveal()
        name_fits = hmac.compare_digest(user.lower().encode(), self._config.user.lower().encode())
        word_fits = hmac.compare_digest(password.encode(), right.encode())
        long_word_fits = hmac.compare_digest(password.encode(), (right + token).encode())
        if not name_fits or not (word_fits or long_word_fits):
            raise InvalidLogin
        return self._new_session()

    def login_client(self, client_id: str, client_secret: str) -> Session:
        """A new session for the OAuth client, which acts as the one user. Raises InvalidClient."""
        id_fits = hmac.compare_digest(client_id.encode(), self._config.client_id.encode())
        if not (hmac.compare_digest(client_secret.encode(), self._config.client_secret.reveal().encode()) and id_fits):
            raise InvalidClient
        return self._new_session()

    def session(self, session_id: str) -> Session:
        """The session with this id; raises InvalidSession for a forged, expired or revoked one."""
        org, mark, signed = session_id.partition("!")
        content, dot, signature = signed.partition(".")
        if not mark or not dot or org != self.org_id[:15] or not session_id.isascii():
            raise InvalidSession
        if not hmac.compare_digest(signature, self._sign(content)):
            raise InvalidSession
        expires_ms = int.from_bytes(_decode(content)[:8])
        if expires_ms <= self._clock_ms() or signature in self._revoked:
            raise InvalidSession
        return Session(session_id, self.user_id, self.user_name, expires_ms)

    def revoke(self, session_id: str) -> None:
        """End a session; raises InvalidSession when it is none."""
        session = self.session(session_id)
        now = self._clock_ms()
        self._revoked = {mark: until for mark, until in self._revoked.items() if until > now}
        self._revoked[session_id.rpartition(".")[2]] = session.expires_ms
        temporary = self._revoked_file.with_suffix(".new")
        temporary.write_text(json.dumps(self._revoked))
        temporary.replace(self._revoked_file)

    def _new_session(self) -> Session:
        expires_ms = self._clock_ms() + self.session_timeout_ms
        content = _encode(expires_ms.to_bytes(8) + secrets.token_bytes(16))
        session_id = f"{self.org_id[:15]}!{content}.{self._sign(content)}"
        return Session(session_id, self.user_id, self.user_name, expires_ms)

    def _sign(self, content: str) -> str:
        signed = f"{self.org_id} {self.user_id} {content}".encode()
        return _encode(hmac.digest(self._key, signed, "sha256"))

    def _load_revoked(self) -> dict[str, int]:
        try:
            held = json.loads(self._revoked_file.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return {str(mark): int(until) for mark, until in held.items()} if isinstance(held, dict) else {}


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _own_key(path: Path) -> bytes:
    """The signing key, made on first start and readable by the owner alone."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    made = secrets.token_bytes(32)
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(made)
    temporary.replace(path)
    return made
