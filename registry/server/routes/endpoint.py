"""What an endpoint is declared as: from this come routing, the reading of queries and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from registry.server.routes.query import Query

if TYPE_CHECKING:
    from registry.server.routes.call import Call

__all__ = ["Endpoint", "WithStatus"]


class WithStatus(NamedTuple):
    """An answer that is no error of the API and has a status other than its endpoint's."""

    status: int
    value: Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation of the REST face.

    ``path`` holds ``{subject}``, ``{version}``, ``{id}``, ``{guid}`` or ``{context}`` as whole segments. ``body`` and ``answer``
    name the JSON object of the request and of a good answer, in Confluent's words (``list[...]`` for lists of them).
    ``cached`` marks what is asked often: its good answers are kept until the state changes. ``status`` is that of good answers.
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
        """Confluent's name of the operation, OpenAPI's operationId: ``get_schema_by_version`` is ``getSchemaByVersion``."""
        first, *rest = self.handler.__name__.split("_")
        return first + "".join(word.capitalize() for word in rest)

    @property
    def doc(self) -> str:
        return (self.handler.__doc__ or "").strip()
