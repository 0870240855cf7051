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
import secrets
import struct
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from tidegate.kit.errors import UsageError
from tidegate.kit.files import write_whole

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
    """What a token says. ``grant`` is shared by a code, the refresh tokens that follow from it, and the sessions they have given."""

    user_id: str
    """Of 15 characters."""
    client: bytes
    """``client_mark`` of the app that it was given to."""
    issued_ms: int
    expires_ms: int
    grant: bytes
    epoch: bytes
    """``Tokens.epoch`` of the user and the app when it was made."""
    extra: bytes = b""


def client_mark(client_id: str) -> bytes:
    """What stands for a connected app in a token; zeros for none."""
    return hashlib.sha256(client_id.encode()).digest()[:_CLIENT_BYTES] if client_id else bytes(_CLIENT_BYTES)


class Tokens:
    """Makes, reads and revokes tokens of one organization. The key and what is revoked are files in ``folder``."""

    def __init__(self, folder: Path, org_id: str, clock_ms: Callable[[], int], longest_ms: int = -1) -> None:
        """``longest_ms``: no session or refresh token lasts longer; negative if some last for good. Raises UsageError for a file
        that cannot be read."""
        self._org, self._clock_ms, self._longest_ms = org_id[:15], clock_ms, longest_ms
        self._prefixes = {Kind.SESSION: f"{self._org}!", Kind.REFRESH: "5Aep861", Kind.CODE: "aPrx"}
        self._key = _own_key(folder / _KEY_FILE)
        self._revoked_file = folder / "revoked-sessions.json"
        self._rotated_file = folder / "rotated-tokens.json"
        self._revoked: dict[str, int] = _marks(self._revoked_file, int)
        self._rotated: dict[str, str] = _marks(self._rotated_file, str)
        """The latest refresh token of each grant whose refresh tokens are good for one use."""
        self._read: dict[str, tuple[Kind, Token]] = {}
        """Tokens that were found good: a subscriber shows its own with every request."""

    def epoch(self, *facts: bytes) -> bytes:
        """What a token carries of the secrets it was given for: with one of them changed, it is another."""
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
        """A token that lasts so long, for good if negative; it belongs to a grant of its own unless one is given."""
        now = self._clock_ms()
        expires_ms = now + lasts_ms if lasts_ms >= 0 else FOREVER_MS
        grant = grant or secrets.token_bytes(_GRANT_BYTES)
        token = Token(user_id[:15], client_mark(client_id), now, expires_ms, grant, epoch, extra)
        packed = _CONTENT.pack(expires_ms, now, grant, token.user_id.encode(), token.client, epoch)
        content = _encode(packed + extra)
        return f"{self._prefixes[kind]}{content}.{self._sign(kind, content)}", token

    def read(self, kind: Kind, text: str) -> Token | None:
        """What a token says; None for one that is forged, expired, revoked or of another kind."""
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
        """What a token said that was revoked, used or replaced before its time was over; None for any other."""
        token = self._signed(kind, text)
        if token is None or token.expires_ms <= self._clock_ms() or not self._ended(text, token):
            return None
        return token

    def rotate(self, text: str, token: Token) -> None:
        """Of the refresh tokens of a grant, this is from now on the only good one."""
        self._read.clear()
        live = {mark: latest for mark, latest in self._rotated.items() if mark not in self._revoked}
        self._rotated = live | {_encode(token.grant): _signature(text)}
        write_whole(self._rotated_file, json.dumps(self._rotated), durable=True)

    def _verified(self, kind: Kind, text: str) -> Token | None:
        token = self._signed(kind, text)
        return None if token is None or self._ended(text, token) else token

    def _ended(self, text: str, token: Token) -> bool:
        """Whether a signed token was revoked, with its grant or alone, or replaced by a later one."""
        signature, grant = _signature(text), _encode(token.grant)
        if signature in self._revoked or grant in self._revoked:
            return True
        return text.startswith(self._prefixes[Kind.REFRESH]) and self._rotated.get(grant, signature) != signature

    def _signed(self, kind: Kind, text: str) -> Token | None:
        """What a token of ours says, ended or not."""
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
        """End one token."""
        self._forget(_signature(text), token.expires_ms)

    def revoke_grant(self, token: Token) -> None:
        """End all tokens and sessions of a grant."""
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
    """The signing key, made on first start and readable by the owner alone."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    made = secrets.token_bytes(32)
    write_whole(path, made, mode=0o600)
    return made
