"""TLS as in Java: one class of ``ssl.*`` keys, and the server and client contexts built from them."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tidegate.kit.config import Password, config, key, one_of
from tidegate.kit.errors import ConfigError, Problem
from tidegate.kit.file_access import require_file
from tidegate.kit.keystores import KeyStore, KeyStoreError, read_store, secret_file
from tidegate.kit.logs import get_logger

__all__ = ["TlsKeys", "client_context", "follow_file", "follow_identity", "load_identity", "server_context"]

logger = get_logger(__name__)

_LOOK_S: Final = 1.0
"""The interval for checking a key store for changes."""

_VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_SUITES_OF_1_3: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_STORE_TYPE: Final = one_of("JKS", "PKCS12", "PEM", ignore_case=True)


@config
class TlsKeys:
    """Key stores, trust stores, versions and suites, under Kafka's names."""

    ssl_keystore_location: str | None = key(
        "ssl.keystore.location",
        default=None,
        importance="high",
        doc="The file with one's own certificate chain and private key.",
    )
    ssl_keystore_type: str = key(
        "ssl.keystore.type",
        default="JKS",
        check=_STORE_TYPE,
        doc="The form of the key store. Under JKS a PKCS12 file is read too, as Java does.",
    )
    ssl_keystore_password: Password | None = key(
        "ssl.keystore.password", default=None, importance="high", doc="The password of the key store; none for PEM."
    )
    ssl_key_password: Password | None = key(
        "ssl.key.password",
        default=None,
        importance="high",
        doc="What the private key is locked with, where that is not the key store's password.",
    )
    ssl_keystore_key: Password | None = key(
        "ssl.keystore.key", default=None, importance="high", doc="The private key itself, as PKCS#8 PEM text."
    )
    ssl_keystore_certificate_chain: Password | None = key(
        "ssl.keystore.certificate.chain", default=None, importance="high", doc="The certificate chain, as PEM text."
    )
    ssl_truststore_location: str | None = key(
        "ssl.truststore.location",
        default=None,
        importance="high",
        doc="The file of certificate authorities that are trusted; the system's without it.",
    )
    ssl_truststore_type: str = key(
        "ssl.truststore.type",
        default="JKS",
        check=_STORE_TYPE,
        doc="The form of the trust store.",
    )
    ssl_truststore_password: Password | None = key(
        "ssl.truststore.password", default=None, importance="high", doc="The password of the trust store."
    )
    ssl_truststore_certificates: Password | None = key(
        "ssl.truststore.certificates", default=None, importance="high", doc="The authorities themselves, as PEM text."
    )
    ssl_enabled_protocols: list[str] = key(
        "ssl.enabled.protocols", default=["TLSv1.2", "TLSv1.3"], doc="The versions of TLS that are spoken."
    )
    ssl_cipher_suites: list[str] = key(
        "ssl.cipher.suites",
        default=[],
        doc="The cipher suites that are offered, by their IANA names; those of TLS 1.3 are taken all or none.",
    )


def server_context(settings: TlsKeys, client_auth: str = "none") -> ssl.SSLContext:
    """A server's context; ``client_auth`` is none, requested or required. Raises ConfigError that names the key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_COMPRESSION | getattr(ssl, "OP_NO_RENEGOTIATION", 0)
    _set_versions(context, settings)
    load_identity(context, settings)
    context.verify_mode = _CLIENT_AUTH[client_auth.lower()]
    if context.verify_mode is not ssl.CERT_NONE:
        _load_trust(context, settings, ssl.Purpose.CLIENT_AUTH)
    return context


def client_context(settings: TlsKeys, *, check_host: bool = True) -> ssl.SSLContext:
    """A client's context, with a client certificate if a key store is set. Raises ConfigError that names the key.

    Without ``check_host`` any trusted certificate is accepted for any host, as in Java with an empty
    ``ssl.endpoint.identification.algorithm``.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = check_host
    _set_versions(context, settings)
    _load_trust(context, settings, ssl.Purpose.SERVER_AUTH)
    if settings.ssl_keystore_location is not None or settings.ssl_keystore_key is not None:
        load_identity(context, settings)
    return context


def _set_versions(context: ssl.SSLContext, settings: TlsKeys) -> None:
    names = settings.ssl_enabled_protocols
    unknown = [name for name in names if name not in _VERSIONS]
    if unknown or not names:
        raise _wrong("ssl.enabled.protocols", f"{', '.join(unknown) or 'nothing'}: one of {', '.join(_VERSIONS)}")
    versions = sorted(_VERSIONS[name] for name in names)
    suites = settings.ssl_cipher_suites
    old = [suite for suite in suites if suite not in _SUITES_OF_1_3]
    if suites and len(old) == len(suites):
        versions = [tls_version for tls_version in versions if tls_version < ssl.TLSVersion.TLSv1_3]
    elif suites and not old:
        versions = [tls_version for tls_version in versions if tls_version == ssl.TLSVersion.TLSv1_3]
    if not versions:
        raise _wrong("ssl.cipher.suites", "none of them belongs to a version of ssl.enabled.protocols")
    try:
        if old:
            context.set_ciphers(":".join(map(_openssl_name, old)))
        context.minimum_version, context.maximum_version = versions[0], versions[-1]
    except ssl.SSLError as error:
        raise _wrong("ssl.cipher.suites", f"none of {', '.join(old)} can be had here: {error}") from error
    except ValueError as error:
        raise _wrong("ssl.enabled.protocols", f"not with this OpenSSL: {error}") from error


def _openssl_name(suite: str) -> str:
    """``TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`` is ``ECDHE-RSA-AES128-GCM-SHA256`` to OpenSSL."""
    exchange, with_, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not with_:
        return suite
    cipher = re.sub(r"^(AES|ARIA|CAMELLIA)_(\d+)", r"\1\2", cipher).replace("_CBC_SHA", "_SHA")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return ("" if exchange == "RSA" else exchange.replace("_", "-") + "-") + cipher.replace("_", "-")


def load_identity(context: ssl.SSLContext, settings: TlsKeys) -> None:
    """Set a context's certificates and private key, replacing existing ones. Raises ConfigError."""
    key_password = _reveal(settings.ssl_key_password)
    if settings.ssl_keystore_key is not None:
        if settings.ssl_keystore_certificate_chain is None:
            raise _wrong("ssl.keystore.certificate.chain", "it goes with ssl.keystore.key")
        text = f"{settings.ssl_keystore_key.reveal()}\n{settings.ssl_keystore_certificate_chain.reveal()}\n"
        with secret_file(text.encode()) as path:
            _load_chain(context, path, key_password, "ssl.keystore.key")
        return
    if settings.ssl_keystore_location is None:
        raise _wrong("ssl.keystore.location", "TLS needs a key store")
    location = Path(settings.ssl_keystore_location)
    if settings.ssl_keystore_type.upper() == "PEM":
        _load_chain(context, location, key_password, "ssl.keystore.location")
        return
    password = _reveal(settings.ssl_keystore_password)
    store = _read("ssl.keystore.location", location, settings.ssl_keystore_type, password, key_password)
    if store.key is None:
        raise _wrong("ssl.keystore.location", f"{location} has no private key")
    with secret_file(store.key + store.chain) as path:
        _load_chain(context, path, None, "ssl.keystore.location")


def _load_chain(context: ssl.SSLContext, path: Path, password: str | None, about: str) -> None:
    require_file(path)  # OpenSSL opens it without asking Python
    try:
        # Without a password OpenSSL would prompt on the terminal.
        context.load_cert_chain(path, password=password or "")
    except ssl.SSLError as error:
        raise _wrong(about, f"no PEM private key with its certificates, or another password: {error}") from error
    except OSError as error:
        raise _wrong(about, f"cannot read {path}: {error.strerror}") from error


def _load_trust(context: ssl.SSLContext, settings: TlsKeys, purpose: ssl.Purpose) -> None:
    if settings.ssl_truststore_certificates is not None:
        trusted, about = settings.ssl_truststore_certificates.reveal(), "ssl.truststore.certificates"
    elif settings.ssl_truststore_location is None:
        context.load_default_certs(purpose)
        return
    else:
        about, location = "ssl.truststore.location", Path(settings.ssl_truststore_location)
        if settings.ssl_truststore_type.upper() == "PEM":
            try:
                trusted = location.read_text()
            except OSError as error:
                raise _wrong(about, f"cannot read {location}: {error.strerror}") from error
            except UnicodeDecodeError as error:
                raise _wrong(about, f"{location} is no PEM file: {error}") from error
        else:
            password = _reveal(settings.ssl_truststore_password)
            store = _read(about, location, settings.ssl_truststore_type, password, password)
            trusted = (store.trusted or store.chain).decode()
    try:
        context.load_verify_locations(cadata=trusted)
    except (ssl.SSLError, ValueError) as error:
        raise _wrong(about, f"{settings.ssl_truststore_location or 'it'} holds no certificates: {error}") from error


def _read(about: str, path: Path, kind: str, password: str | None, key_password: str | None) -> KeyStore:
    try:
        return read_store(path, kind, password, key_password)
    except OSError as error:
        raise _wrong(about, f"cannot read {path}: {error.strerror}") from error
    except KeyStoreError as error:
        raise _wrong(about, f"{path}: {error}") from error


def _reveal(password: Password | None) -> str | None:
    return None if password is None else password.reveal()


def _wrong(key: str, text: str) -> ConfigError:
    return ConfigError([Problem(key, f"Invalid value for configuration {key}: {text}")])


async def follow_identity(context: ssl.SSLContext, keys: TlsKeys) -> None:
    """Reload a key store whenever its file has changed.

    If it can't be read, the old certificate stays. Never returns.
    """
    path = Path(keys.ssl_keystore_location or "")
    await follow_file(path, lambda: load_identity(context, keys))


async def follow_file(path: Path, read: Callable[[], None]) -> None:
    """Call ``read`` whenever a certificate file has changed.

    Its errors are logged, and the old certificate stays. Never returns.
    """
    known = _stamp(path)
    while True:
        await asyncio.sleep(_LOOK_S)
        if (now := _stamp(path)) in (None, known):
            continue
        known = now
        try:
            read()
            logger.info("the certificate was read again", file=str(path))
        except (ConfigError, OSError, ssl.SSLError) as error:
            logger.warning(
                "the changed certificate cannot be used; the old one stays", file=str(path), reason=str(error)
            )


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
