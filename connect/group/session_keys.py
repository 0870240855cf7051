"""Signatures of requests between workers (KIP-507).

The leader creates a key and writes it to the config topic; so anyone who may read that topic can command workers. A
request has the base64 HMAC of its body in ``X-Connect-Authorization``, and the algorithm in another header.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Final

from connect.errors import BadRequest, Forbidden, StartingUp
from connect.stores.configs import SessionKey

__all__ = ["ALGORITHM_HEADER", "SIGNATURE_HEADER", "new_key", "require_signature", "signed"]

SIGNATURE_HEADER: Final = "X-Connect-Authorization"
ALGORITHM_HEADER: Final = "X-Connect-Request-Signature-Algorithm"

_BLOCK_BITS: Final = {"HmacMD5": 512, "HmacSHA1": 512}
"""The default sizes of Java's KeyGenerator; for the SHA-2 family that of the digest."""


def new_key(algorithm: str, bits: int | None, now_ms: int) -> SessionKey:
    size = bits or _BLOCK_BITS.get(algorithm) or int(algorithm.removeprefix("HmacSHA"))
    return SessionKey(secrets.token_bytes((size + 7) // 8), algorithm, now_ms)


def same_kind(key: SessionKey, algorithm: str, bits: int | None) -> bool:
    """Whether a key matches these settings."""
    other = new_key(algorithm, bits, 0)
    return key.algorithm == algorithm and len(key.secret) == len(other.secret)


def signed(body: bytes, key: SessionKey, algorithm: str) -> dict[str, str]:
    """The headers that sign a body."""
    signature = base64.b64encode(_signature(body, key, algorithm)).decode()
    return {SIGNATURE_HEADER: signature, ALGORITHM_HEADER: algorithm}


def require_signature(headers: Mapping[str, str], body: bytes, key: SessionKey | None, accepted: Sequence[str]) -> None:
    """Raises Kafka Connect's error if a request is not signed with the key that all workers share."""
    algorithm, sent_signature = headers.get(ALGORITHM_HEADER), headers.get(SIGNATURE_HEADER)
    if algorithm is None or sent_signature is None:
        raise BadRequest("Internal request missing required signature")
    if algorithm not in accepted:
        raise BadRequest(
            f"This worker does not support the '{algorithm}' key signing algorithm used by other workers. This worker is "
            f"currently configured to use: [{', '.join(accepted)}]. Check that all workers' configuration files permit the "
            "same set of signature algorithms, and correct any misconfigured worker and restart it."
        )
    try:
        signature = base64.b64decode(sent_signature, validate=True)
    except binascii.Error as error:
        raise BadRequest(f"the signature of an internal request is not base64: {error}") from error
    if key is None:
        raise StartingUp(
            "This worker is still starting up and has not been able to read a session key from the config topic yet"
        )
    if not hmac.compare_digest(signature, _signature(body, key, algorithm)):
        raise Forbidden("Internal request contained invalid signature.")


def _signature(body: bytes, key: SessionKey, algorithm: str) -> bytes:
    return hmac.digest(key.secret, body, algorithm.removeprefix("Hmac").lower())
