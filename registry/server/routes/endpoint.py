"""The declaration of an endpoint, from which routing, query parsing and the OpenAPI document are derived."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from registry.server.routes.query import Query

if TYPE_CHECKING:
    from registry.server.routes.call import Call

__all__ = ["Endpoint", "WithStatus"]


class WithStatus(NamedTuple):
    """An answer that is not an error of the API but has another status than its endpoint's."""

    status: int
    value: Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation of the REST API.

    ``path`` has ``{subject}``, ``{version}``, ``{id}``, ``{guid}`` or ``{context}`` as whole segments. ``body`` and
    ``answer`` name the JSON objects of the request and of a good answer, with Confluent's names (``list[...]`` for
    lists). ``cached`` is for frequent requests: their good answers are cached until the state changes. ``status`` is
    that of good answers.
    """

    method: str
    path: str
    handler: Callable[[Call], Any | Awaitable[Any]]
    answer: str
    query: tuple[Query, ...] = ()
    body: str | None = None
    cached: bool = False
    status: int = 200

    @property
    def name(self) -> str:
        """Confluent's name of the operation, OpenAPI's operationId: ``get_schema_by_version`` becomes
        ``getSchemaByVersion``.
        """
        first, *rest = self.handler.__name__.split("_")
        return first + "".join(word.capitalize() for word in rest)

    @property
    def doc(self) -> str:
        return (self.handler.__doc__ or "").strip()
