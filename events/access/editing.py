"""Edits the accounts file.

It is read as a whole, checked as the service would, and replaced atomically; only its owner can read it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from events.access.accounts import read_accounts
from tidegate.kit.errors import UsageError
from tidegate.kit.secrets import hashed_secret, hashed_token, new_token

__all__ = ["AccountsFile"]

_USERS, _APPS = "users", "connectedApps"


class AccountsFile:
    """The accounts file.

    Every change is written before the call returns. If a call raises UsageError, it has changed nothing.
    """

    def __init__(self, path: Path) -> None:
        read_accounts(path)
        self._path = path
        told = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self._contents: dict[str, list[dict[str, Any]]] = {_USERS: [], _APPS: [], **told}

    def users(self) -> list[dict[str, Any]]:
        """The users in the file, without their secrets."""
        return [_shown(user) for user in self._contents[_USERS]]

    def apps(self) -> list[dict[str, Any]]:
        return [_shown(app) for app in self._contents[_APPS]]

    def add_user(self, name: str, password: str, **members: Any) -> None:
        if self._find(_USERS, "name", name) is not None:
            raise UsageError(f"there is a user {name} already; change it")
        _check_password(password)
        self._contents[_USERS].append(
            {"name": name, "password": hashed_secret(password), **members, "sessionsFrom": _now_ms()}
        )
        self._write()

    def change_user(self, name: str, **members: Any) -> None:
        """Set members of a user; members that are None stay unchanged."""
        self._user(name).update({member: value for member, value in members.items() if value is not None})
        self._write()

    def set_password(self, name: str, password: str) -> None:
        """Set a new password. Ends the user's sessions."""
        _check_password(password)
        self._user(name).update(password=hashed_secret(password))
        self._write()

    def make_token(self, name: str) -> str:
        """Create a new security token, which must be appended to the password from now on."""
        token = new_token()
        self._user(name)["securityToken"] = hashed_token(token)
        self._write()
        return token

    def drop_token(self, name: str) -> None:
        self._user(name).pop("securityToken", None)
        self._write()

    def end_sessions(self, name: str) -> None:
        """End all current sessions and refresh tokens of a user."""
        self._user(name)["sessionsFrom"] = _now_ms()
        self._write()

    def remove_user(self, name: str) -> None:
        self._contents[_USERS].remove(self._user(name))
        self._write()

    def add_app(self, client_id: str, secret: str | None, **members: Any) -> None:
        """Add a connected app. An app without a secret is a public client, which can't keep one."""
        if self._find(_APPS, "clientId", client_id) is not None:
            raise UsageError(f"there is a connected app {client_id} already; remove it first")
        app: dict[str, Any] = {"clientId": client_id, "sessionsFrom": _now_ms()}
        if secret is not None:
            _check_password(secret)
            app["clientSecret"] = hashed_secret(secret)
        self._contents[_APPS].append(app | {member: value for member, value in members.items() if value})
        self._write()

    def remove_app(self, client_id: str) -> None:
        app = self._find(_APPS, "clientId", client_id)
        if app is None:
            raise UsageError(f"{self._path} has no connected app {client_id}; it has {self._names(_APPS, 'clientId')}")
        self._contents[_APPS].remove(app)
        self._write()

    def _user(self, name: str) -> dict[str, Any]:
        user = self._find(_USERS, "name", name)
        if user is None:
            raise UsageError(f"{self._path} has no user {name}; it has {self._names(_USERS, 'name')}")
        return user

    def _find(self, kind: str, member: str, name: str) -> dict[str, Any] | None:
        same = str.lower if kind == _USERS else str
        return next((entry for entry in self._contents[kind] if same(entry[member]) == same(name)), None)

    def _names(self, kind: str, member: str) -> str:
        return ", ".join(entry[member] for entry in self._contents[kind]) or "none"

    def _write(self) -> None:
        temporary = self._path.with_name(f".{self._path.name}.new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(json.dumps(self._contents, indent=2, ensure_ascii=False) + "\n")
            read_accounts(temporary)
            temporary.replace(self._path)
        except OSError as error:
            raise UsageError(f"cannot write {self._path}: {error.strerror}") from error
        except UsageError as error:
            raise UsageError(str(error).removeprefix(f"{temporary}: ")) from error
        finally:
            temporary.unlink(missing_ok=True)


def _shown(account: dict[str, Sequence[Any]]) -> dict[str, Any]:
    hidden = {"password", "securityToken", "clientSecret"}
    return {member: "[hidden]" if member in hidden else value for member, value in account.items()}


def _check_password(password: str) -> None:
    if not password:
        raise UsageError("the password is empty; give one")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
