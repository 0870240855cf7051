"""Accounts: users with their rights, connected apps, and the file that lists them.

    {"users": [{"name": "shop@example.com", "password": "scrypt:...", "securityToken": "sha256:...", "active": true,
                "create": ["Order_*__e"], "read": ["*"], "permissions": ["ViewSetup"]}],
     "connectedApps": [{"clientId": "warehouse", "clientSecret": "scrypt:...", "certificate": "warehouse.pem",
                        "runAs": "shop@example.com", "users": ["*"], "callbackUrls": ["http://localhost:1717/done"]}]}

``tidegate events users`` writes the file; a running service reloads it when it changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeVar

from events.access.certificates import public_key
from events.access.errors import CannotCreate, CannotRead, InsufficientAccess
from events.access.ids import user_id
from events.access.scopes import SCOPES
from events.access.tokens import client_mark
from tidegate.kit.errors import UsageError
from tidegate.kit.secrets import Secret, read_secret

__all__ = ["Accounts", "ConnectedApp", "Permission", "User", "read_accounts"]

T = TypeVar("T")


class Permission(Enum):
    """A user's permissions besides rights on events, with the names of Salesforce's user permissions."""

    VIEW_SETUP = "ViewSetup"
    """See triggers, flows and limits."""
    CUSTOMIZE = "CustomizeApplication"
    """Define events, channels and subscriptions, command triggers; includes ViewSetup."""


@dataclass(frozen=True, slots=True)
class User:
    """A user that can log in. Rights are case-insensitive patterns of API names (``*`` and ``?``)."""

    name: str
    password: Secret | None
    security_token: Secret | None = None
    create: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    permissions: frozenset[Permission] = frozenset()
    active: bool = True
    sessions_from_ms: int = 0
    """When it last changed, which ended all sessions and tokens."""
    define: tuple[str, ...] = ()
    """Events and channels that the user may define without the permission CustomizeApplication, which covers all."""
    id: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", user_id(self.name))

    def may_create(self, name: str) -> bool:
        """Whether the user may publish an event."""
        return _fits(name, self.create)

    def may_read(self, name: str) -> bool:
        """Whether the user may subscribe to an event or a channel."""
        return _fits(name, self.read)

    def may_see(self, name: str) -> bool:
        """Whether an event is described to the user."""
        return self.may_read(name) or self.may_create(name) or self.may_define(name)

    def may_define(self, name: str) -> bool:
        """Whether the user may define or change an event, a channel or a managed subscription."""
        return self.may(Permission.CUSTOMIZE) or _fits(name, self.define)

    def may(self, permission: Permission) -> bool:
        return permission in self.permissions or Permission.CUSTOMIZE in self.permissions

    def require_create(self, name: str, label: str) -> None:
        """Raises CannotCreate."""
        if not self.may_create(name):
            raise CannotCreate(name, label)

    def require_read(self, name: str) -> None:
        """Raises CannotRead."""
        if not self.may_read(name):
            raise CannotRead(name)

    def require_define(self, name: str) -> None:
        """Raises InsufficientAccess."""
        if not self.may_define(name):
            raise InsufficientAccess(f"{Permission.CUSTOMIZE.value}, or the right to define {name[:100]}")

    def require_define_some(self) -> None:
        """Before the name to define is known. Raises InsufficientAccess."""
        if not self.define:
            self.require(Permission.CUSTOMIZE)

    def require(self, permission: Permission) -> None:
        """Raises InsufficientAccess."""
        if not self.may(permission):
            raise InsufficientAccess(permission.value)


@dataclass(frozen=True, slots=True)
class ConnectedApp:
    """A program that logs in for users."""

    client_id: str
    secret: Secret | None = None
    certificate: Path | None = None
    """A PEM file with the certificate, or the public key, that verifies its JWTs."""
    run_as: str = ""
    """The user for whom it acts with its own credentials; empty if that is not allowed."""
    users: tuple[str, ...] = ("*",)
    """Patterns of the names of users who may use it."""
    callback_urls: tuple[str, ...] = ()
    scopes: tuple[str, ...] = SCOPES
    sessions_from_ms: int = 0
    """When it last changed, which ended all sessions and tokens."""

    def admits(self, user: User) -> bool:
        return _fits(user.name, self.users)


class Accounts:
    """All users and apps. Names of users are case-insensitive."""

    __slots__ = ("_by_id", "_by_name", "apps", "by_mark")

    def __init__(self, users: Iterable[User] = (), apps: Iterable[ConnectedApp] = ()) -> None:
        self._by_name = {user.name.lower(): user for user in users}
        self._by_id = {user.id[:15]: user for user in self._by_name.values()}
        self.apps: Mapping[str, ConnectedApp] = {app.client_id: app for app in apps}
        self.by_mark = {client_mark(app.client_id): app for app in self.apps.values()}
        """Apps by their mark in tokens."""

    @property
    def users(self) -> Iterable[User]:
        return self._by_name.values()

    def named(self, name: str) -> User | None:
        return self._by_name.get(name.lower())

    def with_id(self, id_: str) -> User | None:
        return self._by_id.get(id_[:15])

    def over(self, others: Accounts) -> Accounts:
        """Both sets of accounts. For a duplicate name this one's account wins."""
        users = {user.name.lower(): user for user in (*others.users, *self.users)}
        return Accounts(users.values(), {**others.apps, **self.apps}.values())


def read_accounts(path: Path) -> Accounts:
    """The accounts of a file; none if it does not exist. Raises UsageError that names the file and the problem."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Accounts()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    try:
        users = _each(told, "users", _user)
        apps = _each(told, "connectedApps", lambda item: _app(item, path.parent))
        _once("users", (user.name.lower() for user in users))
        _once("ids of users", (user.id for user in users))
        _once("connectedApps", (app.client_id for app in apps))
        return Accounts(users, apps)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


def _each(told: Any, name: str, make: Callable[[dict[str, Any]], T]) -> list[T]:
    items = told.get(name, []) if isinstance(told, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"it must be an object whose {name} is a list of objects")
    return [make(item) for item in items]


def _once(what: str, names: Iterable[str]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two of the {what} are {name!r}")
        seen.add(name)


def _user(item: dict[str, Any]) -> User:
    name = _text(item, "name")
    _known(item, f"user {name}", _USER_MEMBERS)
    return User(
        name,
        _secret(item, "password", f"user {name}"),
        _token(item, f"user {name}"),
        create=_texts(item, "create", ()),
        read=_texts(item, "read", ()),
        permissions=frozenset(map(_permission, _texts(item, "permissions", ()))),
        active=_flag(item, "active", default=True),
        sessions_from_ms=_instant(item, "sessionsFrom", f"user {name}"),
    )


def _app(item: dict[str, Any], folder: Path) -> ConnectedApp:
    client_id = _text(item, "clientId")
    _known(item, f"connected app {client_id}", _APP_MEMBERS)
    certificate = folder / _text(item, "certificate") if "certificate" in item else None
    if certificate is not None:
        public_key(certificate)
    scopes = _texts(item, "scopes", SCOPES)
    if wrong := [scope for scope in scopes if scope not in SCOPES]:
        raise ValueError(f"scope {wrong[0]!r} of {client_id} is not known; there are {', '.join(SCOPES)}")
    return ConnectedApp(
        client_id,
        _secret(item, "clientSecret", f"connected app {client_id}"),
        certificate,
        _text(item, "runAs") if "runAs" in item else "",
        _texts(item, "users", ("*",)),
        _texts(item, "callbackUrls", ()),
        scopes,
        _instant(item, "sessionsFrom", f"connected app {client_id}"),
    )


_USER_MEMBERS: Final = frozenset(
    ("name", "password", "securityToken", "create", "read", "permissions", "active", "sessionsFrom")
)
_APP_MEMBERS: Final = frozenset(
    ("clientId", "clientSecret", "certificate", "runAs", "users", "callbackUrls", "scopes", "sessionsFrom")
)


def _known(item: dict[str, Any], whose: str, members: frozenset[str]) -> None:
    """Refuse unknown members: a misspelt ``read`` would silently take a right away."""
    if unknown := sorted(set(item) - members):
        raise ValueError(f"{unknown[0]!r} of {whose} is not known; there are {', '.join(sorted(members))}")


def _permission(name: str) -> Permission:
    try:
        return Permission(name)
    except ValueError:
        raise ValueError(
            f"permission {name!r} is not known; there are {', '.join(permission.value for permission in Permission)}"
        ) from None


def _secret(item: dict[str, Any], name: str, whose: str) -> Secret | None:
    if name not in item:
        return None
    try:
        return read_secret(_text(item, name))
    except ValueError as error:
        raise ValueError(f"{name} of {whose}: {error}") from None


def _token(item: dict[str, Any], whose: str) -> Secret | None:
    token = _secret(item, "securityToken", whose)
    if token is not None and token.slow:
        raise ValueError(f"securityToken of {whose} must be a sha256 hash: `tidegate events users token` makes it")
    return token


def _text(item: dict[str, Any], name: str) -> str:
    value = item.get(name)
    if isinstance(value, str) and value:
        return value
    raise ValueError(f"{name} must be text, not {json.dumps(value)[:100]}")


def _texts(item: dict[str, Any], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = item.get(name, list(default))
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return tuple(value)
    raise ValueError(f"{name} must be a list of texts, not {json.dumps(value)[:100]}")


def _flag(item: dict[str, Any], name: str, *, default: bool) -> bool:
    value = item.get(name, default)
    if isinstance(value, bool):
        return value
    raise ValueError(f"{name} must be true or false, not {json.dumps(value)[:100]}")


def _instant(item: dict[str, Any], name: str, whose: str) -> int:
    value = item.get(name, 0)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{name} of {whose} must be milliseconds since 1970, not {json.dumps(value)[:100]}")


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(pattern == "*" or fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)
