"""Rights of users in the platform's file (``tidegate.kit.users``) at the worker's REST API: by connector, and on the
platform.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from starlette.requests import Request

from connect.errors import Forbidden
from tidegate.kit.http_security import user_of
from tidegate.kit.users import PlatformUser, UsersFile

__all__ = ["RightsGuard", "owner_of", "require_right", "sees"]

_USER: Final = "connect.user"
"""The scope key of the request's user; absent without authentication."""
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_FOR_ALL: Final = frozenset({"", "health", "connector-plugins", "connectors", "lineage"})
"""First path segments that every user may read; lists contain only connectors that the user may see."""


class RightsGuard:
    """A guard after BasicAuth that checks each request against its user's rights, as far as the path tells.

    For names in a body (a new connector) the route calls ``require_right``.
    """

    def __init__(self, file: UsersFile) -> None:
        self._file = file

    async def __call__(self, request: Request) -> None:
        """Raises Forbidden."""
        name = user_of(request)
        if name is None:
            return  # a request of another worker, which is signed
        user = self._file.users.named(name)
        if user is None:
            raise Forbidden(f"User {name} may not do this")
        request.scope[_USER] = user
        parts = _parts(request)
        reads = request.method in _READS
        verb = "read" if reads else "manage"
        if parts[:1] == ["admin"]:
            _require(user, verb, "platform", "*")
        elif parts[0] == "connectors" and len(parts) > 1:
            _require(user, verb, "connector", parts[1])
        elif not reads and not user.may_some("manage", "connector"):
            raise Forbidden(f"User {name} may manage no connector")
        elif reads and parts[0] not in _FOR_ALL:
            _require(user, verb, "platform", "*")


def require_right(request: Request, verb: str, connector: str) -> None:
    """Raises Forbidden if the request's user lacks the right on a connector."""
    user = request.scope.get(_USER)
    if user is not None:
        _require(user, verb, "connector", connector)


def owner_of(request: Request) -> str:
    """To whom a connector belongs whose configuration this request changes: its user; nobody where no user is asked for."""
    user: PlatformUser | None = request.scope.get(_USER)
    return "" if user is None else user.name


def sees(request: Request, connector: str) -> bool:
    """Whether a list for the request's user contains this connector."""
    user: PlatformUser | None = request.scope.get(_USER)
    return user is None or user.may("read", "connector", connector)


def _require(user: PlatformUser, verb: str, kind: str, name: str) -> None:
    if not user.may(verb, kind, name):
        raise Forbidden(f"User {user.name} has no right to {verb} {kind} {name}")


def _parts(request: Request) -> list[str]:
    """The path segments, decoded separately, without the prefix of our own routes."""
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    parts = [unquote(part) for part in raw.decode("latin-1").partition("?")[0].strip("/").split("/")]
    return parts[2:] or [""] if parts[:2] == ["tidegate", "v1"] else parts
