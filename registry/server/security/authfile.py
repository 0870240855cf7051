"""Karapace's authorization file: users with hashed passwords, and their permissions on resources.

    {"users": [{"username": "u", "algorithm": "scrypt", "salt": "s", "password_hash": "base64"}],
     "permissions": [{"username": "u", "operation": "Read", "resource": "Subject:orders-.*"}]}

A resource is a regular expression that must match the beginning of a resource's name. Write includes Read.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import secrets
from pathlib import Path
from typing import Any, Final, NamedTuple

from tidegate.kit.errors import UsageError
from tidegate.kit.passwords import LoggedIn, WatchedFile

__all__ = ["AuthFile", "Operation", "Rights", "password_hash", "read_auth_file"]

Operation = str
"""``Read`` or ``Write``."""

_OPERATIONS: Final = ("Read", "Write")
_ROUNDS: Final = 5000
_DIGESTS: Final = ("sha1", "sha256", "sha512")
_REMEMBERED: Final = 10_000


class _Account(NamedTuple):
    algorithm: str
    salt: str
    password_hash: str


class Rights(NamedTuple):
    """The content of a file: accounts, and per user the allowed (operation, resource) pairs."""

    accounts: dict[str, _Account]
    permissions: dict[str, tuple[tuple[Operation, re.Pattern[str]], ...]]

    def allows(self, user: str, operation: Operation, resource: str) -> bool:
        return any(
            (operation == "Read" or allowed == "Write") and pattern.match(resource)
            for allowed, pattern in self.permissions.get(user, ())
        )


def password_hash(algorithm: str, salt: str, password: str) -> str:
    """The hash that the file has for a password, as ``karapace_mkpasswd`` prints it."""
    secret, grains = password.encode(errors="replace"), salt.encode()
    if algorithm == "scrypt":
        digest = hashlib.scrypt(secret, salt=grains, n=16384, r=8, p=1)
    else:
        digest = hashlib.pbkdf2_hmac(algorithm, secret, grains, _ROUNDS)
    return base64.b64encode(digest).decode()


def read_auth_file(path: Path) -> Rights:
    """Raises UsageError that names the file and the problem."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    try:
        return Rights(dict(map(_account, _items(told, "users"))), _permissions(_items(told, "permissions")))
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


def _items(told: Any, name: str) -> list[dict[str, str]]:
    items = told.get(name) if isinstance(told, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"{name} must be a list of objects")
    return items


def _account(item: dict[str, str]) -> tuple[str, _Account]:
    name = _text(item, "username")
    algorithm = _text(item, "algorithm")
    if algorithm not in (*_DIGESTS, "scrypt"):
        raise ValueError(
            f"the algorithm of {name} is {algorithm!r}: one of {', '.join((*_DIGESTS, 'scrypt'))} is wanted"
        )
    return name, _Account(algorithm, _text(item, "salt"), _text(item, "password_hash"))


def _permissions(items: list[dict[str, str]]) -> dict[str, tuple[tuple[Operation, re.Pattern[str]], ...]]:
    made: dict[str, list[tuple[Operation, re.Pattern[str]]]] = {}
    for item in items:
        name, operation, resource = _text(item, "username"), _text(item, "operation"), _text(item, "resource")
        if operation not in _OPERATIONS:
            raise ValueError(f"an operation of {name} is {operation!r}: Read or Write is wanted")
        try:
            pattern = re.compile(resource)
        except re.error as error:
            raise ValueError(f"a resource of {name} is {resource!r}, no regular expression: {error}") from error
        made.setdefault(name, []).append((operation, pattern))
    return {name: tuple(pairs) for name, pairs in made.items()}


def _text(item: dict[str, str], name: str) -> str:
    value = item.get(name)
    if isinstance(value, str):
        return value
    raise ValueError(f"{name} must be text, not {json.dumps(value)[:100]}")


class AuthFile:
    """The current file. Hashing takes 5 to 60 ms, so it runs in a thread, and correct passwords are cached."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError."""
        self._file = WatchedFile(path, read_auth_file)
        self._key = secrets.token_bytes(32)
        self._right: dict[tuple[str, _Account], bytes] = {}

    @property
    def rights(self) -> Rights:
        return self._file.value

    async def login(self, name: str, password: str) -> LoggedIn | None:
        """``tidegate.kit.http_security.Passwords``; there are no roles in such a file."""
        account = self.rights.accounts.get(name)
        if account is None:
            return None
        tag = hmac.digest(self._key, password.encode(errors="replace"), "sha256")
        cache_key = (name, account)
        if hmac.compare_digest(self._right.get(cache_key, b""), tag):
            return LoggedIn(name)
        made = await asyncio.to_thread(password_hash, account.algorithm, account.salt, password)
        if not hmac.compare_digest(made.encode(), account.password_hash.encode(errors="replace")):
            return None
        if len(self._right) >= _REMEMBERED:
            self._right.clear()
        self._right[cache_key] = tag
        return LoggedIn(name)
