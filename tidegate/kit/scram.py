"""The stored form of a password for SCRAM (RFC 5802): it verifies a client's proof, but can't be used to log in."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Final, NamedTuple

__all__ = ["MIN_ITERATIONS", "ScramCredential", "from_salted", "make_credential"]

MIN_ITERATIONS: Final = 4096


class ScramCredential(NamedTuple):
    """A credential. Its digest (hashlib's name) is stored separately."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def to_text(self) -> str:
        """One line of text for a file."""
        parts = (base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key))
        return ":".join((str(self.iterations), *parts))

    @classmethod
    def from_text(cls, text: str) -> ScramCredential:
        """Raises ValueError for text that ``to_text`` did not produce."""
        try:
            iterations, *parts = text.split(":")
            salt, stored_key, server_key = (base64.b64decode(part, validate=True) for part in parts)
        except (ValueError, binascii.Error) as error:
            raise ValueError("it is no SCRAM credential: a command that sets passwords makes it") from error
        return cls(salt, stored_key, server_key, int(iterations))


def make_credential(
    digest: str, password: str, *, salt: bytes | None = None, iterations: int = MIN_ITERATIONS
) -> ScramCredential:
    """The credential of a password with a digest, ``sha256`` or ``sha512``.

    Takes milliseconds, which is the purpose of iterations.
    """
    salt = secrets.token_bytes(24) if salt is None else salt
    return from_salted(digest, hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations), salt, iterations)


def from_salted(digest: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """The credential of a password that its client has salted."""
    client_key = hmac.digest(salted, b"Client Key", digest)
    return ScramCredential(
        salt,
        hashlib.new(digest, client_key).digest(),
        hmac.digest(salted, b"Server Key", digest),
        iterations,
    )
