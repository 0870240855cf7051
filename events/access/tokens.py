"""Tokens: signed rather than stored, so that they hold when the service restarts; only what is revoked is written down.

Three kinds have the same content: sessions (Salesforce's ``ORG!...``), refresh tokens (``5Aep...``) and authorization
codes (``aPrx...``). The kind is part of what is signed, so none passes for another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
import struct
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["FOREVER_MS", "Kind", "Token", "Tokens", "client_mark"]

FOREVER_MS: Final = (1 << 63) - 1

_CONTENT: Final = struct.Struct(">qq10s15s6s")
_GRANT_BYTES: Final = 10
_CLIENT_BYTES: Final = 6
_MOST_READ: Final = 10_000


class Kind(Enum):
    SESSION = "session"
    REFRESH = "refresh"
    CODE = "code"


class Token(NamedTuple):
    """What a token says. ``grant`` is shared by a refresh token and the sessions it has given."""

    user_id: str
    """Of 15 characters."""
    client: bytes
    """``client_mark`` of the app that it was given to."""
    issued_ms: int
    expires_ms: int
    grant: bytes
    extra: bytes = b""


def client_mark(client_id: str) -> bytes:
    """What stands for a connected app in a token; zeros for none."""
    return hashlib.sha256(client_id.encode()).digest()[:_CLIENT_BYTES] if client_id else bytes(_CLIENT_BYTES)


class Tokens:
    """Makes, reads and revokes tokens of one organization. The key and what is revoked are files in ``folder``."""

    def __init__(self, folder: Path, org_id: str, clock_ms: Callable[[], int]) -> None:
        self._org, self._clock_ms = org_id[:15], clock_ms
        self._prefixes = {Kind.SESSION: f"{self._org}!", Kind.REFRESH: "5Aep861", Kind.CODE: "aPrx"}
        self._key = _own_key(folder / "session.key")
        self._revoked_file = folder / "revoked-sessions.json"
        self._revoked = self._load_revoked()
        self._read: dict[str, tuple[Kind, Token]] = {}
        """Tokens that were found good: a subscriber shows its own with every request."""

    def make(
        self, kind: Kind, user_id: str, client_id: str, lasts_ms: int, *, grant: bytes = b"", extra: bytes = b""
    ) -> tuple[str, Token]:
        """A token that lasts so long, for good if negative; it belongs to a grant of its own unless one is given."""
        now = self._clock_ms()
        expires_ms = now + lasts_ms if lasts_ms >= 0 else FOREVER_MS
        grant = grant or secrets.token_bytes(_GRANT_BYTES)
        token = Token(user_id[:15], client_mark(client_id), now, expires_ms, grant, extra)
        packed = _CONTENT.pack(expires_ms, now, grant, token.user_id.encode(), token.client)
        content = _encode(packed + extra)
        return f"{self._prefixes[kind]}{content}.{self._sign(kind, content)}", token

    def read(self, kind: Kind, text: str) -> Token | None:
        """What a token says; None for one that is forged, expired, revoked or of another kind."""
        held = self._read.get(text)
        if held is None:
            token = self._verified(kind, text)
            if token is None:
                return None
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            self._read[text] = held = (kind, token)
        known_as, token = held
        return token if known_as is kind and token.expires_ms > self._clock_ms() else None

    def _verified(self, kind: Kind, text: str) -> Token | None:
        prefix = self._prefixes[kind]
        content, dot, signature = text[len(prefix) :].partition(".")
        if not text.startswith(prefix) or not dot or not text.isascii():
            return None
        if not hmac.compare_digest(signature, self._sign(kind, content)):
            return None
        try:
            packed = _decode(content)
            expires_ms, issued_ms, grant, user_id, client = _CONTENT.unpack_from(packed)
            token = Token(user_id.decode(), client, issued_ms, expires_ms, grant, packed[_CONTENT.size :])
        except (struct.error, binascii.Error, UnicodeDecodeError):
            return None  # signed by another version of this service
        return None if signature in self._revoked or _encode(grant) in self._revoked else token

    def revoke(self, text: str, token: Token) -> None:
        """End one token."""
        self._forget(text.rpartition(".")[2], token.expires_ms)

    def revoke_grant(self, token: Token) -> None:
        """End a refresh token and all sessions that it has given."""
        self._forget(_encode(token.grant), token.expires_ms)

    def _forget(self, mark: str, until_ms: int) -> None:
        now = self._clock_ms()
        self._read.clear()
        self._revoked = {mark: until for mark, until in self._revoked.items() if until > now} | {mark: until_ms}
        temporary = self._revoked_file.with_suffix(".new")
        temporary.write_text(json.dumps(self._revoked))
        temporary.replace(self._revoked_file)

    def _sign(self, kind: Kind, content: str) -> str:
        return _encode(hmac.digest(self._key, f"{kind.value} {self._org} {content}".encode(), "sha256"))

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
