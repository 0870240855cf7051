"""The right that each request needs, by Karapace's resource names: ``Subject:<name>`` and ``Config:``."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import Scope

from registry.errors import RegistryError
from registry.model.subjects import is_context, normalize
from registry.server.security.authfile import Operation
from tidegate.kit.http_security import user_of

__all__ = ["VIEW", "Access", "Denied", "View"]

VIEW: Final = "registry.view"
"""The scope key of a request's View; absent if every client may do everything."""

_GLOBAL: Final = "Config:"
_FOR_ALL: Final = frozenset({"", "health", "schemas", "v1", "metrics", "openapi.json"})
"""First path segments open to every user; lists contain only what the user may read."""
_WITH_SUBJECT: Final = {"subjects": 1, "config": 1, "mode": 1, "compatibility": 2}
"""First path segments of paths that name a subject, and the subject's position."""


class Denied(RegistryError):
    """Confluent's code for a user without the right."""

    http_status = 403
    error_code = 40301

    def __init__(self, operation: Operation, resource: str) -> None:
        super().__init__(f"User is denied operation {operation} on {resource}")


class _Requirement(NamedTuple):
    operation: Operation
    resource: str


class Permissions(Protocol):
    """Decides users' permissions."""

    def allows(self, user: str, operation: Operation, resource: str) -> bool: ...


class RightsSource(Protocol):
    """The source of the current rights."""

    @property
    def rights(self) -> Permissions: ...


class View:
    """The subjects that a request's user may see. Called with a subject, it returns whether the user may read it."""

    __slots__ = ("_operation", "_rights", "_user")

    def __init__(self, rights: Permissions, user: str, operation: Operation) -> None:
        self._rights, self._user, self._operation = rights, user, operation

    def __call__(self, subject: str) -> bool:
        return self._rights.allows(self._user, "Read", f"Subject:{subject}")

    def require(self, subject: str, operation: Operation | None = None) -> None:
        """Require the same right for a subject that the path does not name (behind an alias, referenced).

        Raises Denied.
        """
        required = _Requirement(operation or self._operation, f"Subject:{subject}")
        if not self._rights.allows(self._user, *required):
            raise Denied(*required)


class Access:
    """A guard that checks each request against the file, as far as the path tells; ``View`` checks the rest."""

    def __init__(self, source: RightsSource) -> None:
        self._source = source

    async def __call__(self, request: Request) -> None:
        user = user_of(request)
        if user is None:
            return  # a path that needs no user
        rights = self._source.rights
        required = _requirement(request.method, _parts(request.scope))
        if required is not None and not rights.allows(user, *required):
            raise Denied(*required)
        request.scope[VIEW] = View(rights, user, required.operation if required is not None else "Read")


def _parts(scope: Scope) -> list[str]:
    """The path segments, decoded separately, because a subject may contain an encoded slash."""
    raw = scope.get("raw_path") or scope["path"].encode()
    path = raw.decode("latin-1").partition("?")[0]
    return [unquote(part) for part in path.strip("/").split("/")]


def _requirement(method: str, parts: list[str]) -> _Requirement | None:
    """The right that a request needs; None if it is open to every user."""
    context = "."
    if parts[0] == "contexts":
        if len(parts) <= 2:
            return None if method in ("GET", "HEAD") else _Requirement("Write", _GLOBAL)
        context, parts = parts[1].strip(":"), parts[2:]
    reads = method in ("GET", "HEAD", "OPTIONS")
    index = _WITH_SUBJECT.get(parts[0])
    if index is not None and len(parts) > index:
        # Looking a schema up and checking its compatibility are POSTs that change nothing.
        looks = method == "POST" and (parts[0] == "compatibility" or len(parts) == 2)
        subject = _qualified(context, parts[index])
        # A context without a subject (":.:", ":.dev:") means the settings of all its subjects.
        resource = _GLOBAL if is_context(subject) else f"Subject:{subject}"
        return _Requirement("Read" if reads or looks else "Write", resource)
    if parts[0] in _FOR_ALL or (parts[0] in ("subjects", "associations") and reads):
        return None
    return _Requirement("Read" if reads else "Write", _GLOBAL)


def _qualified(context: str, subject: str) -> str:
    """The normal form of a subject, however its context was sent."""
    if subject.startswith(":."):
        return normalize(subject)
    return normalize(f":{context if context.startswith('.') else '.' + context}:{subject}")
