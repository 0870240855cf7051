"""The public keys for verifying tokens (JSON Web Key Sets, RFC 7517), fetched and refreshed."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from broker.security.sasl.jwt import InvalidToken, Jwt
from tidegate.kit.logs import get_logger

__all__ = ["Jwks", "keys_of_set"]

logger = get_logger(__name__)

_TIMEOUT_S: Final = 10
_MOST_BYTES: Final = 1 << 20
_MISSING_KEY_PAUSE_S: Final = 60
"""A token with an unknown key triggers a fetch of the set, but not more often than this."""
_CURVES: Final = {"P-256": "SECP256R1", "P-384": "SECP384R1", "P-521": "SECP521R1"}
_HASHES: Final = {"256": "SHA256", "384": "SHA384", "512": "SHA512"}


class _Key(NamedTuple):
    kid: str | None
    alg: str | None
    kind: str
    public: Any


def keys_of_set(text: bytes) -> list[_Key]:
    """The keys of a set that can verify signatures; others are ignored. Raises ValueError."""
    result = json.loads(text)
    entries = result.get("keys") if isinstance(result, dict) else None
    if not isinstance(entries, list):
        raise ValueError('a key set is an object with a list "keys"')  # noqa: TRY004 - it is text that is wrong
    return [made for entry in entries if isinstance(entry, dict) and (made := _key(entry)) is not None]


def _key(entry: Mapping[str, Any]) -> _Key | None:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if entry.get("use", "sig") != "sig":
        return None
    kid, alg, kind = entry.get("kid"), entry.get("alg"), entry.get("kty")
    public: Any
    if kind == "RSA":
        public = rsa.RSAPublicNumbers(_number(entry, "e"), _number(entry, "n")).public_key()
    elif kind == "EC" and entry.get("crv") in _CURVES:
        curve = getattr(ec, _CURVES[entry["crv"]])()
        public = ec.EllipticCurvePublicNumbers(_number(entry, "x"), _number(entry, "y"), curve).public_key()
    else:
        return None
    return _Key(kid if isinstance(kid, str) else None, alg if isinstance(alg, str) else None, kind, public)


def _number(entry: Mapping[str, Any], name: str) -> int:
    text = entry.get(name)
    if not isinstance(text, str):
        raise ValueError(f"a key of the set has no {name}")  # noqa: TRY004 - it is text that is wrong
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


class Jwks:
    """The key set at a URL (``https:``, ``http:`` or ``file:``). ``run`` refreshes it."""

    def __init__(self, url: str, refresh_ms: int, retry_ms: int = 100, retry_max_ms: int = 10_000) -> None:
        self._url = url
        self._refresh_s = refresh_ms / 1000
        self._pause_s = retry_ms / 1000
        """The delay after a failed fetch. It doubles with each further failure, up to the maximum."""
        self._longest_pause_s = max(retry_max_ms, retry_ms) / 1000
        self._keys: list[_Key] = []
        self._refresh_asked = asyncio.Event()
        self._asked_at = -_MISSING_KEY_PAUSE_S * 1.0

    async def load(self) -> None:
        """Fetch the set once. Raises OSError, ValueError."""
        self._keys = keys_of_set(await asyncio.to_thread(_fetch, self._url))

    async def run(self) -> None:
        """Refresh the set at its interval, or when a token names an unknown key."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._refresh_asked.wait(), self._refresh_s)
            self._refresh_asked.clear()
            pause = self._pause_s
            while True:
                try:
                    await self.load()
                    break
                except (OSError, ValueError) as error:
                    logger.warning("keys of tokens cannot be fetched", url=self._url, error=str(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, self._longest_pause_s)

    def want(self) -> None:
        """Make ``run`` fetch the set now."""
        self._refresh_asked.set()

    def verify(self, jwt: Jwt) -> None:
        kid, alg = jwt.header.get("kid"), jwt.header.get("alg")
        if not isinstance(alg, str) or alg[:2] not in ("RS", "PS", "ES") or alg[2:] not in _HASHES:
            raise InvalidToken(f"the algorithm {alg!r} is not one of RS, PS or ES with 256, 384 or 512")
        kind = "EC" if alg.startswith("ES") else "RSA"
        fit = [
            key for key in self._keys if key.kind == kind and (kid is None or key.kid == kid) and key.alg in (None, alg)
        ]
        if not fit:
            if (now := time.monotonic()) - self._asked_at >= _MISSING_KEY_PAUSE_S:
                self._asked_at = now
                self.want()
            raise InvalidToken(f"no key fits kid {kid!r} and algorithm {alg}")
        if not any(_verifies(key, alg, jwt) for key in fit):
            raise InvalidToken("the signature is not the issuer's")


def _verifies(key: _Key, alg: str, jwt: Jwt) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    digest = getattr(hashes, _HASHES[alg[2:]])()
    try:
        if key.kind == "EC":
            size = (key.public.curve.key_size + 7) // 8
            if len(jwt.signature) != 2 * size:
                return False
            halves = (int.from_bytes(half, "big") for half in (jwt.signature[:size], jwt.signature[size:]))
            key.public.verify(encode_dss_signature(*halves), jwt.signed, ec.ECDSA(digest))
        elif alg.startswith("PS"):
            pad = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
            key.public.verify(jwt.signature, jwt.signed, pad, digest)
        else:
            key.public.verify(jwt.signature, jwt.signed, padding.PKCS1v15(), digest)
    except InvalidSignature:
        return False
    return True


def _fetch(url: str) -> bytes:
    import urllib.request

    if not url.startswith(("https://", "http://", "file:")):
        raise ValueError(f"{url!r} is not a URL of https, http or file")
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - checked above
        text: bytes = answer.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise ValueError(f"the key set is larger than {_MOST_BYTES} bytes")
    return text
