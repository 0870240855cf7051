"""Tokens are signed rather than stored, so that they survive restarts; only revocations are stored.

Three kinds have the same content: sessions (Salesforce's ``ORG!...``), refresh tokens (``5Aep...``) and authorization
codes (``aPrx...``). The signature covers the kind, so that none can be used as another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import struct
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from tidegate.kit.errors import UsageError
from tidegate.kit.files import folder_lock, write_whole

__all__ = ["FOREVER_MS", "Kind", "Token", "Tokens", "client_mark"]

T = TypeVar("T")

FOREVER_MS: Final = (1 << 63) - 1

_CONTENT: Final = struct.Struct(">qq10s15s6s12s")
_GRANT_BYTES: Final = 10
_CLIENT_BYTES: Final = 6
_EPOCH_BYTES: Final = 12
_MOST_READ: Final = 10_000
_KEY_FILE: Final = "session.key"


class Kind(Enum):
    SESSION = "session"
    REFRESH = "refresh"
    CODE = "code"


class Token(NamedTuple):
    """The content of a token. An authorization code, its refresh tokens and their sessions share a ``grant``."""

    user_id: str
    """15 characters."""
    client: bytes
    """``client_mark`` of the token's app."""
    issued_ms: int
    expires_ms: int
    grant: bytes
    epoch: bytes
    """``Tokens.epoch`` of the user and the app when it was issued."""
    extra: bytes = b""


def client_mark(client_id: str) -> bytes:
    """The mark of a connected app in a token; zeros for none."""
    return hashlib.sha256(client_id.encode()).digest()[:_CLIENT_BYTES] if client_id else bytes(_CLIENT_BYTES)


class Tokens:
    """Creates, reads and revokes tokens of one organization. The key and the revocations are files in ``folder``."""

    def __init__(self, folder: Path, org_id: str, clock_ms: Callable[[], int], longest_ms: int = -1) -> None:
        """``longest_ms`` is the longest validity of sessions and refresh tokens; negative if some never expire.

        Raises UsageError for an unreadable file.
        """
        self._org, self._clock_ms, self._longest_ms = org_id[:15], clock_ms, longest_ms
        self._prefixes = {Kind.SESSION: f"{self._org}!", Kind.REFRESH: "5Aep861", Kind.CODE: "aPrx"}
        self._key = _own_key(folder / _KEY_FILE)
        self._revoked_file = folder / "revoked-sessions.json"
        self._rotated_file = folder / "rotated-tokens.json"
        self._revoked: dict[str, int] = _marks(self._revoked_file, int)
        self._rotated: dict[str, str] = _marks(self._rotated_file, str)
        """The current refresh token of each grant with one-time refresh tokens."""
        self._read: dict[str, tuple[Kind, Token]] = {}
        """Verified tokens, because a subscriber sends the same one with every request."""

    def epoch(self, *facts: bytes) -> bytes:
        """A digest of the secrets that a token depends on: it changes when one of them changes."""
        told = b"".join(len(fact).to_bytes(4) + fact for fact in facts)
        return hmac.digest(self._key, b"epoch" + told, "sha256")[:_EPOCH_BYTES]

    def make(
        self,
        kind: Kind,
        user_id: str,
        client_id: str,
        lasts_ms: int,
        *,
        epoch: bytes,
        grant: bytes = b"",
        extra: bytes = b"",
    ) -> tuple[str, Token]:
        """Create a token with this validity (forever if negative), in a new grant unless ``grant`` is passed."""
        now = self._clock_ms()
        expires_ms = now + lasts_ms if lasts_ms >= 0 else FOREVER_MS
        grant = grant or secrets.token_bytes(_GRANT_BYTES)
        token = Token(user_id[:15], client_mark(client_id), now, expires_ms, grant, epoch, extra)
        packed = _CONTENT.pack(expires_ms, now, grant, token.user_id.encode(), token.client, epoch)
        content = _encode(packed + extra)
        return f"{self._prefixes[kind]}{content}.{self._sign(kind, content)}", token

    def read(self, kind: Kind, text: str) -> Token | None:
        """The content of a token; None if it is forged, expired, revoked or of another kind."""
        remembered = self._read.get(text)
        if remembered is None:
            token = self._verified(kind, text)
            if token is None:
                return None
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            self._read[text] = remembered = (kind, token)
        known_as, token = remembered
        return token if known_as is kind and token.expires_ms > self._clock_ms() else None

    def spent(self, kind: Kind, text: str) -> Token | None:
        """The content of a token that was revoked, used or replaced before its expiry; None for any other."""
        token = self._signed(kind, text)
        if token is None or token.expires_ms <= self._clock_ms() or not self._ended(text, token):
            return None
        return token

    def rotate(self, text: str, token: Token) -> None:
        """Make this the only valid refresh token of its grant."""
        self._read.clear()
        live = {mark: latest for mark, latest in self._rotated.items() if mark not in self._revoked}
        self._rotated = live | {_encode(token.grant): _signature(text)}
        write_whole(self._rotated_file, json.dumps(self._rotated), durable=True)

    def _verified(self, kind: Kind, text: str) -> Token | None:
        token = self._signed(kind, text)
        return None if token is None or self._ended(text, token) else token

    def _ended(self, text: str, token: Token) -> bool:
        """Whether a signed token was revoked (alone or with its grant), or replaced by a later one."""
        signature, grant = _signature(text), _encode(token.grant)
        if signature in self._revoked or grant in self._revoked:
            return True
        return text.startswith(self._prefixes[Kind.REFRESH]) and self._rotated.get(grant, signature) != signature

    def _signed(self, kind: Kind, text: str) -> Token | None:
        """The content of a token that we signed, revoked or not."""
        prefix = self._prefixes[kind]
        content, dot, signature = text[len(prefix) :].partition(".")
        if not text.startswith(prefix) or not dot or not text.isascii():
            return None
        if not hmac.compare_digest(signature, self._sign(kind, content)):
            return None
        try:
            packed = _decode(content)
            expires_ms, issued_ms, grant, user_id, client, epoch = _CONTENT.unpack_from(packed)
            return Token(user_id.decode(), client, issued_ms, expires_ms, grant, epoch, packed[_CONTENT.size :])
        except (struct.error, binascii.Error, UnicodeDecodeError):
            return None  # signed by another version of this service

    def revoke(self, text: str, token: Token) -> None:
        """Revoke one token."""
        self._forget(_signature(text), token.expires_ms)

    def revoke_grant(self, token: Token) -> None:
        """Revoke all tokens and sessions of a grant."""
        until_ms = self._clock_ms() + self._longest_ms if self._longest_ms >= 0 else FOREVER_MS
        self._forget(_encode(token.grant), until_ms)

    def _forget(self, mark: str, until_ms: int) -> None:
        now = self._clock_ms()
        self._read.clear()
        self._revoked = {mark: until for mark, until in self._revoked.items() if until > now} | {mark: until_ms}
        write_whole(self._revoked_file, json.dumps(self._revoked), durable=True)

    def _sign(self, kind: Kind, content: str) -> str:
        return _encode(hmac.digest(self._key, f"{kind.value} {self._org} {content}".encode(), "sha256"))


def _signature(text: str) -> str:
    return text.rpartition(".")[2]


def _marks(path: Path, value: Callable[[Any], T]) -> dict[str, T]:
    try:
        stored = json.loads(path.read_text())
        return {str(mark): value(told) for mark, told in stored.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise UsageError(
            f"cannot read {path}, which says which sessions are ended: {error}. Bring it back from a backup, or remove it "
            f"together with {path.with_name(_KEY_FILE).name}, which ends all sessions"
        ) from error


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _own_key(path: Path) -> bytes:
    """The signing key, created on first start and readable only by the owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with folder_lock(path.parent):  # two servers that start at once must sign with one key
        try:
            return path.read_bytes()
        except FileNotFoundError:
            made = secrets.token_bytes(32)
            write_whole(path, made, mode=0o600)
            return made
