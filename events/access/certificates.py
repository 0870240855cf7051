"""The public key of a connected app, which verifies its JWTs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

__all__ = ["public_key"]


def public_key(path: Path) -> RSAPublicKey:
    """The RSA key of a PEM file with a certificate or a public key. Raises ValueError that names the file."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read the certificate {path}: {error.strerror}") from error
    try:
        if b"BEGIN CERTIFICATE" in data:
            key: object = x509.load_pem_x509_certificate(data).public_key()
        else:
            key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{path} is neither a certificate nor a public key in PEM form") from error
    if not isinstance(key, RSAPublicKey):
        raise ValueError(f"the key of {path} is not an RSA key; JWTs are signed with RS256")  # noqa: TRY004 - the file's fault
    return key
