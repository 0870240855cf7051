"""The platform's certificate authority: created on first use, it signs the certificate of the TLS listeners."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tidegate.kit.files import folder_lock, write_whole
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

__all__ = ["CA_FILE", "TlsFiles", "certificates"]

logger = get_logger(__name__)

CA_FILE: Final = "ca.pem"
_RENEW_BEFORE: Final = dt.timedelta(days=30)
_CA_YEARS: Final = 10
_SERVER_DAYS: Final = 365


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of a server: its certificate chain and its key."""

    certificate: Path
    private_key: Path


def certificates(directory: Path, hosts: Iterable[str]) -> TlsFiles:
    """The server's certificate and key in ``directory``, for localhost and ``hosts``. Clients trust ``ca.pem`` there.

    Nothing changes while the certificate names all hosts and is valid for another month; otherwise the same CA signs a
    new one. Files that do not match, for example after a kill between two writes, are recreated.
    """
    names = sorted({"localhost", "127.0.0.1", "::1", *(host for host in hosts if host not in ("0.0.0.0", "::"))})
    files = TlsFiles(directory / "server.pem", directory / "server.key")
    if not _serves(files, directory, names):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with folder_lock(directory):  # two servers that start at once would mix their files
            if not _serves(files, directory, names):
                authority, key = _authority(directory)
                _make_server(files, names, authority, key)
    return files


def _serves(files: TlsFiles, directory: Path, host_names: list[str]) -> bool:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        present = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        authority = x509.load_pem_x509_certificate((directory / CA_FILE).read_bytes())
        names = present.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        key = load_pem_private_key(files.private_key.read_bytes(), password=None)
    except (FileNotFoundError, ValueError, TypeError, x509.ExtensionNotFound):
        return False
    present_names = {str(name.value) for name in names}
    fresh = present.not_valid_after_utc - _now() > _RENEW_BEFORE
    is_ours = present.issuer == authority.subject and key.public_key() == present.public_key()
    return fresh and is_ours and present_names.issuperset(host_names)


def _authority(directory: Path) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key_file, certificate_file = directory / "ca.key", directory / CA_FILE
    try:
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        fits = isinstance(key, ec.EllipticCurvePrivateKey) and key.public_key() == certificate.public_key()
        if fits and certificate.not_valid_after_utc - _now() > _RENEW_BEFORE:
            assert isinstance(key, ec.EllipticCurvePrivateKey)
            return certificate, key
    except FileNotFoundError:
        pass
    except (ValueError, TypeError) as error:
        logger.warning(
            "the certificate authority cannot be read; making another", folder=str(directory), error=str(error)
        )
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"Tidegate CA {os.urandom(4).hex()}")])
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    certificate = (
        _builder(name, name, key, dt.timedelta(days=365 * _CA_YEARS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write_key(key_file, key)
    write_whole(certificate_file, certificate.public_bytes(serialization.Encoding.PEM), mode=0o644)
    return certificate, key


def _make_server(
    files: TlsFiles, hosts: list[str], authority: x509.Certificate, authority_key: EllipticCurvePrivateKey
) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        _builder(name, authority.subject, key, dt.timedelta(days=_SERVER_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    _write_key(files.private_key, key)
    chain = certificate.public_bytes(serialization.Encoding.PEM) + authority.public_bytes(serialization.Encoding.PEM)
    write_whole(files.certificate, chain, mode=0o644)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, lasts: dt.timedelta
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - dt.timedelta(hours=1))
        .not_valid_after(_now() + lasts)
    )


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(path: Path, key: EllipticCurvePrivateKey) -> None:
    from cryptography.hazmat.primitives import serialization

    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_whole(path, text, mode=0o600)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
