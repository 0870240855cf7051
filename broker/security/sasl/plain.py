"""PLAIN (RFC 4616): a user and a password in clear text."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from broker.security.principal import Principal
from broker.security.sasl.mechanism import Identity, Rejected
from tidegate.kit.jaas import LoginModule

__all__ = ["Plain", "users_of"]

_USER: Final = "user_"
_TOKENS: Final = 3


def users_of(module: LoginModule) -> dict[str, bytes]:
    """Passwords by user, from the options ``user_NAME="PASSWORD"``."""
    return {
        name.removeprefix(_USER): password.encode()
        for name, password in module.options.items()
        if name.startswith(_USER)
    }


class Plain:
    def __init__(self, users: Mapping[str, bytes]) -> None:
        self._users = users
        self.identity: Identity | None = None

    def evaluate(self, response: bytes) -> bytes:
        tokens = response.decode(errors="replace").split("\0")
        if len(tokens) != _TOKENS:
            raise Rejected(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(tokens), _TOKENS + 1)}")
        authorization_id, user, password = tokens
        if not user:
            raise Rejected("Authentication failed: username not specified")
        if not password:
            raise Rejected("Authentication failed: password not specified")
        right = self._users.get(user)
        secret = password.encode()
        if not hmac.compare_digest(right if right is not None else b"\xff" + secret, secret):
            raise Rejected("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != user:
            raise Rejected(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.identity = Identity(Principal("User", user))
        return b""
