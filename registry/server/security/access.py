"""Which right each request needs, by Karapace's names of resources: ``Subject:<name>`` and ``Config:``."""

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
"""Where the View of a request stands in its scope; absent where everyone may do everything."""

_GLOBAL: Final = "Config:"
_FOR_ALL: Final = frozenset({"", "health", "schemas", "v1", "metrics", "openapi.json"})
"""First parts of paths that every user may ask for; lists among them hold what the user may read."""
_WITH_SUBJECT: Final = {"subjects": 1, "config": 1, "mode": 1, "compatibility": 2}
"""First parts of paths that name a subject, and where."""


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
    """Decides what users may do."""

    def allows(self, user: str, operation: Operation, resource: str) -> bool: ...


class RightsSource(Protocol):
    """Where the rights are that hold now."""

    @property
    def rights(self) -> Permissions: ...


class View:
    """What the user of a request may know of. Called with a subject, it says whether the user may read it."""

    __slots__ = ("_operation", "_rights", "_user")

    def __init__(self, rights: Permissions, user: str, operation: Operation) -> None:
        self._rights, self._user, self._operation = rights, user, operation

    def __call__(self, subject: str) -> bool:
        return self._rights.allows(self._user, "Read", f"Subject:{subject}")

    def require(self, subject: str, operation: Operation | None = None) -> None:
        """Hold a subject that the path does not name (behind an alias, referred to) to the same right. Raises Denied."""
        required = _Requirement(operation or self._operation, f"Subject:{subject}")
        if not self._rights.allows(self._user, *required):
            raise Denied(*required)


class Access:
    """A guard that holds each request of a user to the file, as far as its path tells; the rest is left to ``View``."""

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
    """The path in its parts, each decoded by itself: a subject may hold an encoded slash."""
    raw = scope.get("raw_path") or scope["path"].encode()
    path = raw.decode("latin-1").partition("?")[0]
    return [unquote(part) for part in path.strip("/").split("/")]


def _requirement(method: str, parts: list[str]) -> _Requirement | None:
    """The right a request needs; None where every user may ask."""
    context = "."
    if parts[0] == "contexts":
        if len(parts) <= 2:
            return None if method in ("GET", "HEAD") else _Requirement("Write", _GLOBAL)
        context, parts = parts[1].strip(":"), parts[2:]
    reads = method in ("GET", "HEAD", "OPTIONS")
    index = _WITH_SUBJECT.get(parts[0])
    if index is not None and len(parts) > index:
        # Looking a schema up is a POST that changes nothing, and so is asking whether it would be compatible.
        looks = method == "POST" and (parts[0] == "compatibility" or len(parts) == 2)
        subject = _qualified(context, parts[index])
        # A context without a subject (":.:", ":.dev:") stands for the settings of all its subjects.
        resource = _GLOBAL if is_context(subject) else f"Subject:{subject}"
        return _Requirement("Read" if reads or looks else "Write", resource)
    if parts[0] in _FOR_ALL or (parts[0] == "subjects" and reads):
        return None
    return _Requirement("Read" if reads else "Write", _GLOBAL)


def _qualified(context: str, subject: str) -> str:
    """The one spelling of a subject, whichever way its context is given."""
    if subject.startswith(":."):
        return normalize(subject)
    return normalize(f":{context if context.startswith('.') else '.' + context}:{subject}")
