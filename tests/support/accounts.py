"""Users and connected apps for tests of their rights."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tidegate.kit.secrets import hashed_secret, hashed_token

__all__ = ["ACCOUNTS", "SECRET", "TOKEN", "JwtApp"]

SECRET: Final = "gehe1m"
"""The password of every user and the secret of every app."""
TOKEN: Final = "T" * 24

_HASH: Final = hashed_secret(SECRET)

ACCOUNTS: Final[dict[str, Any]] = {
    "users": [
        {"name": "reader@shop", "password": _HASH, "read": ["Order_*__e"]},
        {"name": "writer@shop", "password": _HASH, "create": ["order_shipped__e"]},
        {"name": "nobody@shop", "password": _HASH},
        {"name": "careful@shop", "password": _HASH, "securityToken": hashed_token(TOKEN), "read": ["*"]},
        {"name": "frozen@shop", "password": _HASH, "active": False},
        {"name": "builder@shop", "password": _HASH, "permissions": ["CustomizeApplication"]},
    ],
    "connectedApps": [
        {"clientId": "writers", "clientSecret": _HASH, "runAs": "writer@shop", "users": ["writer@*"]},
        {"clientId": "page", "callbackUrls": ["http://localhost:1717/done?a=b"]},
    ],
}


class JwtApp:
    """The key pair of a connected app."""

    def __init__(self, folder: Path) -> None:
        self.key = key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "app")])
        now = dt.datetime.now(dt.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        self.certificate = folder / "app.pem"
        self.certificate.write_bytes(certificate.public_bytes(pem))
        self.public_key = folder / "app.pub"
        self.public_key.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
        form = serialization.PrivateFormat.PKCS8
        self.private_key = key.private_bytes(pem, form, serialization.NoEncryption()).decode()
        self.private_key_file = folder / "app.key"
        self.private_key_file.write_text(self.private_key)

    def sign(self, claims: dict[str, Any]) -> str:
        """A JWT with these claims, also with ones that PyJWT would not sign."""
        return jwt.api_jws.encode(json.dumps(claims).encode(), self.key, "RS256")
