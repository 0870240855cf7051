"""The private key that signs the assertion of the JWT bearer flow: from a PEM file or a Java key store."""

from __future__ import annotations

import base64
import binascii
import tempfile
from pathlib import Path

from connect.api import ConnectError
from connectors.salesforce.config import SalesforceConfig
from tidegate.kit.keystores import KeyStoreError, read_store

__all__ = ["signing_key"]


def signing_key(config: SalesforceConfig) -> bytes:
    """The key as PEM; raises ConnectError that names the configuration key at fault."""
    if config.jwt_private_key:
        try:
            return Path(config.jwt_private_key).read_bytes()
        except OSError as error:
            raise ConnectError(
                f"cannot read salesforce.jwt.privatekey.path {config.jwt_private_key}: {error.strerror}"
            ) from error
    if config.jwt_keystore:
        return _of_store(config, Path(config.jwt_keystore), f"salesforce.jwt.keystore.path {config.jwt_keystore}")
    name = "salesforce.jwt.keystore.file"
    try:
        content = base64.b64decode(config.jwt_keystore_content.reveal().partition(";base64,")[2], validate=True)
    except binascii.Error as error:
        raise ConnectError(f"cannot read {name}: what follows base64, is not Base64: {error}") from error
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return _of_store(config, Path(file.name), name)


def _of_store(config: SalesforceConfig, path: Path, name: str) -> bytes:
    try:
        store = read_store(path, "JKS", config.jwt_keystore_password.reveal() or None, None)
    except OSError as error:
        raise ConnectError(f"cannot read {name}: {error.strerror}") from error
    except KeyStoreError as error:
        raise ConnectError(f"cannot read {name} with salesforce.jwt.keystore.password: {error}") from error
    if store.key is None:
        raise ConnectError(f"{name} has no private key")
    return store.key
