"""Java key stores and trust stores: PEM, PKCS12 and JKS."""

from __future__ import annotations

import hashlib
import hmac
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

__all__ = ["KeyStore", "KeyStoreError", "read_store", "secret_file"]

_JKS_MAGIC: Final = 0xFEEDFEED
_JKS_SALT: Final = b"Mighty Aphrodite"
_JKS_PROTECTION: Final = "1.3.6.1.4.1.42.2.17.1.1"
_KEY: Final = 1
_TRUSTED: Final = 2


class KeyStoreError(ValueError):
    """A store can't be read; the text is the reason, without the file's name."""


class KeyStore(NamedTuple):
    """The content of a store, as PEM. ``key`` is decrypted; None if the store has none."""

    key: bytes | None
    chain: bytes
    """The key's certificate chain, its own certificate first."""
    trusted: bytes
    """The trusted certificates."""


def read_store(path: Path, kind: str, password: str | None, key_password: str | None) -> KeyStore:
    """Read a JKS or PKCS12 store. Raises KeyStoreError, OSError.

    As in Java, a JKS store may have either format, which the file tells.
    """
    from cryptography.exceptions import UnsupportedAlgorithm

    data = path.read_bytes()
    try:
        if kind.upper() == "JKS" and data[:4] == _JKS_MAGIC.to_bytes(4, "big"):
            return _read_jks(data, password, key_password if key_password is not None else password)
        return _read_pkcs12(data, password)
    except KeyStoreError:
        raise
    except (ValueError, TypeError, IndexError, UnsupportedAlgorithm) as error:  # of certificates and keys in it
        raise KeyStoreError(f"it is damaged, or holds what cannot be read: {error}") from error


@contextmanager
def secret_file(content: bytes) -> Iterator[Path]:
    """OpenSSL reads keys from files only: a private file that exists as long as the context."""
    descriptor, name = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield Path(name)
    finally:
        Path(name).unlink()


def _read_pkcs12(data: bytes, password: str | None) -> KeyStore:
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        store = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError as error:
        raise KeyStoreError(f"it is no PKCS12 store, or has another password: {error}") from error
    others = [other.certificate for other in store.additional_certs]
    if store.key is None or store.cert is None:
        first = [store.cert.certificate] if store.cert is not None else []
        return KeyStore(None, b"", _pem([*first, *others]))
    chain = _chain(store.cert.certificate, others)
    return KeyStore(_key_pem(store.key), _pem(chain), _pem([other for other in others if other not in chain]))


def _chain(leaf: Certificate, others: list[Certificate]) -> list[Certificate]:
    """The leaf and its issuers, in order, because a PKCS12 store has no order."""
    made = [leaf]
    while made[-1].issuer != made[-1].subject:
        above = next(
            (candidate for candidate in others if candidate.subject == made[-1].issuer and candidate not in made), None
        )
        if above is None:
            break
        made.append(above)
    return made


def _read_jks(data: bytes, password: str | None, key_password: str | None) -> KeyStore:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    content, digest = data[:-20], data[-20:]
    if password is not None:
        right = hashlib.sha1(_utf16(password) + _JKS_SALT + content).digest()  # noqa: S324 - the format's own
        if not hmac.compare_digest(right, digest):
            raise KeyStoreError("it has another password, or is damaged")
    reader = _Reader(content)
    _magic, version, count = reader.integer(), reader.integer(), reader.integer()
    if version not in (1, 2):
        raise KeyStoreError(f"it is a JKS store of version {version}; 1 and 2 are known")
    key: bytes | None = None
    chain: list[Certificate] = []
    trusted: list[Certificate] = []
    for _ in range(count):
        tag = reader.integer()
        reader.text()
        reader.take(8)
        if tag == _TRUSTED:
            trusted.append(x509.load_der_x509_certificate(reader.certificate(version)))
        elif tag == _KEY:
            locked = reader.take(reader.integer())
            certificates = [
                x509.load_der_x509_certificate(reader.certificate(version)) for _ in range(reader.integer())
            ]
            if key is None:
                if key_password is None:
                    raise KeyStoreError("the private key needs ssl.keystore.password or ssl.key.password")
                key = _key_pem(load_der_private_key(_unlocked(locked, key_password), None))
                chain = certificates
        else:
            raise KeyStoreError(f"it has an entry of type {tag}; 1 and 2 are known")
    return KeyStore(key, _pem(chain), _pem(trusted))


def _unlocked(data: bytes, password: str) -> bytes:
    """Sun's protection of private keys: a key stream of chained SHA-1 digests."""
    fields = _der_content(data)
    algorithm = _der_content(_der_content(fields))
    if algorithm != _oid_bytes(_JKS_PROTECTION):
        raise KeyStoreError("its private key is locked in a way that JKS stores do not have")
    after = len(fields) - len(_der_rest(fields))
    cipher = _der_content(fields[after:])
    salt, body, check = cipher[:20], cipher[20:-20], cipher[-20:]
    secret = _utf16(password)
    plain, block = bytearray(), salt
    for at in range(0, len(body), 20):
        block = hashlib.sha1(secret + block).digest()  # noqa: S324 - the format's own
        plain += bytes(a ^ b for a, b in zip(body[at : at + 20], block, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), check):  # noqa: S324 - the format's own
        raise KeyStoreError("its private key has another password: set ssl.key.password")
    return bytes(plain)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._data):
            raise KeyStoreError("it ends early")
        self._at += size
        return self._data[self._at - size : self._at]

    def integer(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=False)

    def text(self) -> bytes:
        return self.take(int.from_bytes(self.take(2), "big"))

    def certificate(self, version: int) -> bytes:
        if version == 2 and self.text() != b"X.509":
            raise KeyStoreError("it holds a certificate that is not X.509")
        return self.take(self.integer())


def _der_extent(data: bytes) -> tuple[int, int]:
    first = data[1]
    count = first & 0x7F if first >= 0x80 else 0
    return 2 + count, int.from_bytes(data[2 : 2 + count], "big") if count else first


def _der_content(data: bytes) -> bytes:
    header, size = _der_extent(data)
    return data[header : header + size]


def _der_rest(data: bytes) -> bytes:
    header, size = _der_extent(data)
    return data[header + size :]


def _oid_bytes(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    made = bytearray([40 * first + second])
    for number in rest:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        made += bytes(reversed(groups))
    return bytes(made)


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")


def _pem(certificates: list[Certificate]) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def _key_pem(key: object) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # type: ignore[attr-defined, no-any-return]
