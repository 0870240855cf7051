"""Stored forms of passwords and tokens: clear text in configurations, hashes in files."""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import hmac
import secrets
import string
from dataclasses import dataclass
from typing import Final, Protocol

__all__ = [
    "TOKEN_LENGTH",
    "PlainSecret",
    "Secret",
    "hashed_secret",
    "hashed_token",
    "new_token",
    "nobody",
    "read_secret",
]

TOKEN_LENGTH: Final = 24
"""The length of a security token, as in Salesforce."""

_COST, _BLOCK, _LANES = 16384, 8, 1  # 16 MiB and about 50 ms, as OWASP recommends for interactive logins
_MOST_MEMORY: Final = 64 * 1024 * 1024


class Secret(Protocol):
    """A secret that can be compared with an attempt."""

    @property
    def slow(self) -> bool:
        """Whether ``matches`` is so slow that a thread should run it."""
        ...

    def cut_off(self, text: str) -> str | None:
        """The text without this secret at its end; None if it does not end with it. Only if it is not ``slow``."""
        ...

    @property
    def fingerprint(self) -> bytes:
        """Differs between secrets, and between two hashes of one password. It is as secret as the secret itself."""
        ...

    def matches(self, secret: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class PlainSecret:
    text: str
    slow = False

    def cut_off(self, text: str) -> str | None:
        end = max(0, len(text) - len(self.text))
        return text[:end] if self.matches(text[end:]) else None

    @property
    def fingerprint(self) -> bytes:
        return _bytes(self.text)

    def matches(self, secret: str) -> bool:
        return hmac.compare_digest(_bytes(self.text), _bytes(secret))

    def __repr__(self) -> str:
        return "PlainSecret([hidden])"


@dataclass(frozen=True, slots=True)
class _Scrypt:
    """A secret chosen by a person: slow to guess."""

    cost: int
    block: int
    lanes: int
    salt: bytes
    digest: bytes
    slow = True

    def cut_off(self, text: str) -> str | None:
        raise NotImplementedError("what follows a password is kept as a SHA-256 hash")

    @property
    def fingerprint(self) -> bytes:
        return self.salt + self.digest

    def matches(self, secret: str) -> bool:
        made = _scrypt(secret, self.salt, self.cost, self.block, self.lanes, len(self.digest))
        return hmac.compare_digest(self.digest, made)


@dataclass(frozen=True, slots=True)
class _Sha256:
    """A random secret, which can't be guessed."""

    digest: bytes
    slow = False

    def cut_off(self, text: str) -> str | None:
        # Its length is unknown, because another program may have created it. All ends are tried even after a match, for
        # constant time.
        fitting = [end for end in range(len(text) + 1) if self.matches(text[end:])]
        return text[: fitting[0]] if fitting else None

    @property
    def fingerprint(self) -> bytes:
        return self.digest

    def matches(self, secret: str) -> bool:
        return hmac.compare_digest(self.digest, hashlib.sha256(_bytes(secret)).digest())


def hashed_secret(secret: str) -> str:
    """The stored form of a password or a client secret in a file."""
    salt = secrets.token_bytes(16)
    digest = _scrypt(secret, salt, _COST, _BLOCK, _LANES, 32)
    return f"scrypt:{_COST}:{_BLOCK}:{_LANES}:{base64.b64encode(salt).decode()}:{base64.b64encode(digest).decode()}"


@functools.cache
def nobody() -> Secret:
    """A secret that matches nothing: comparing with it takes as long as with a real user's."""
    return read_secret(hashed_secret(secrets.token_urlsafe()))


def new_token() -> str:
    """A security token; files store its ``hashed_token``."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(TOKEN_LENGTH))


def hashed_token(token: str) -> str:
    return f"sha256:{hashlib.sha256(_bytes(token)).hexdigest()}"


def read_secret(kept: str) -> Secret:
    """The secret of a stored form. Raises ValueError for an unknown form."""
    kind, *parts = kept.split(":")
    try:
        if kind == "sha256" and len(parts) == 1:
            digest = bytes.fromhex(parts[0])
            if len(digest) == 32:
                return _Sha256(digest)
        if kind == "scrypt" and len(parts) == 5:
            cost, block, lanes = map(int, parts[:3])
            salt, digest = (base64.b64decode(part, validate=True) for part in parts[3:])
            power_of_two = cost > 1 and cost & (cost - 1) == 0
            if power_of_two and block > 0 and 0 < lanes <= 16 and 128 * cost * block <= _MOST_MEMORY and digest:
                return _Scrypt(cost, block, lanes, salt, digest)
    except (ValueError, binascii.Error):
        pass
    raise ValueError("it is not a hash: a command that sets passwords makes it")


def _scrypt(secret: str, salt: bytes, cost: int, block: int, lanes: int, length: int) -> bytes:
    return hashlib.scrypt(_bytes(secret), salt=salt, n=cost, r=block, p=lanes, maxmem=2 * _MOST_MEMORY, dklen=length)


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")
