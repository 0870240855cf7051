"""The table of APIs. Each handler is declared with its key and versions; everything else reads this table."""

from __future__ import annotations

import importlib
import typing
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, Protocol, Self, TypeVar

from broker.api.connection import ClientConnection, Promise
from broker.api.parts import Common
from broker.errors import BrokerError
from broker.protocol.api import ApiKey
from broker.security.access import CLUSTER_NAME, OPERATIONS, Operation, Resource, ResourceType, denied
from broker.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from broker.quotas.quotas import Mutations
    from broker.steps import Step, Steps

__all__ = [
    "Answer",
    "AnyRoute",
    "Context",
    "DeferredRoute",
    "Handler",
    "Outcome",
    "Pending",
    "Route",
    "Routes",
    "in_steps",
]


class RequestType(Protocol):
    """A class of requests: generated, or written by hand."""

    FLEXIBLE_SINCE: ClassVar[int]

    @classmethod
    def read(cls, data: memoryview, version: int, at: int) -> Self: ...


class Answer(Protocol):
    """A response that writes itself in parts behind the header in ``out``."""

    def write(self, version: int, out: bytearray) -> list[Any]: ...


P_co = TypeVar("P_co", bound=Common, covariant=True)
"""The parts of the broker that a handler uses (``broker.api.parts``)."""


A = TypeVar("A", bound=Answer)


class Context(NamedTuple, Generic[P_co]):
    """A handler's context: everything but the request itself."""

    broker: P_co
    version: int
    client_id: str
    client_host: str
    listener: str
    """The name of the listener that the request came in through."""
    principal: Principal = ANONYMOUS
    connection: ClientConnection | None = None
    """The request's connection, for state that ends with it; None in tests."""

    def allows(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether the client may perform this operation. Always true without an authorizer."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.allows(
            self.principal, self.client_host, operation, Resource(resource_type, name)
        )

    def allows_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the client may perform this operation on some resource of the type, existing or not."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.allows_any(self.principal, self.client_host, operation, resource_type)

    def operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """The operations that the client may perform on a resource, as the bit field of ``authorized_operations``."""
        possible = OPERATIONS[resource_type]
        if self.broker.authorizer is None:
            return sum(1 << operation for operation in possible)
        return sum(1 << number for number in possible if self.allows(Operation(number), resource_type, name))

    def require(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> None:
        """Raises the resource's AuthorizationFailed if the client may not perform this operation."""
        authorizer = self.broker.authorizer
        if authorizer is None or self.allows(operation, resource_type, name):
            return
        resource = Resource(resource_type, name)
        authorizer.refused(self.principal, self.client_host, operation, resource)
        raise denied(operation, resource, self.principal)

    def mutations(self, *, strict_since: int) -> Mutations:
        """The quota that a request's topic changes count against.

        Over quota, versions from ``strict_since`` on are refused.
        """
        strict = self.version >= strict_since
        return self.broker.quotas.mutations(self.principal, self.client_id, strict=strict)

    def require_topic(self, operation: Operation, topic: str | uuid.UUID) -> None:
        """Like ``require``, for a topic by name or id. An unknown id is never refused here."""
        broker = self.broker
        if broker.authorizer is None:
            return
        name = broker.topics.name_of(topic) if isinstance(topic, uuid.UUID) else topic
        if name is not None:
            self.require(operation, ResourceType.TOPIC, name)


class Pending:
    """An answer that comes later: ``make`` turns what the future gives into the response.

    ``failed`` turns a BrokerError of the future into a response; without it the error is answered like one that a
    handler raises. The connection cancels the future if it closes first.
    """

    __slots__ = ("failed", "future", "make")

    def __init__(
        self,
        future: Promise,
        make: Callable[[Any], Answer],
        failed: Callable[[BrokerError], Answer] | None = None,
    ) -> None:
        self.future = future
        self.make = make
        self.failed = failed


def in_steps(steps: Steps, work: Generator[Step, None, A]) -> A | Pending:
    """The answer that ``work`` returns: at once if it is short, or else while other clients are served in between."""
    done = steps.run(work)
    return done.result() if done.done() else Pending(done, lambda answer: answer)


Outcome = Answer | Pending | None
"""A handler's return value. None sends nothing (Produce with acks=0)."""

Handler = Callable[[Context[Any], Any], Outcome]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class Route:
    """One API: its served and advertised versions, how its request is read, and its handler."""

    key: ApiKey
    versions: range
    advertised: range
    request: type[RequestType]
    failed: Callable[..., Answer] | None
    """The response class, if a BrokerError can be answered in its ``error_code``."""
    handler: Handler

    @property
    def notes(self) -> str:
        """The handler's docstring: what the API does and what its versions added."""
        return (self.handler.__doc__ or "").strip()


class DeferredRoute:
    """An API whose module is imported with its first request. The module defines ``routes``."""

    def __init__(self, key: ApiKey, versions: range, module: str) -> None:
        self.key = key
        self.versions = self.advertised = versions
        self._module = module

    @cached_property
    def _route(self) -> Route:
        routes: Routes = importlib.import_module(self._module).routes
        return next(route for route in routes if route.key == self.key)

    @property
    def request(self) -> type[RequestType]:
        return self._route.request

    @property
    def failed(self) -> Callable[..., Answer] | None:
        return self._route.failed

    @property
    def handler(self) -> Handler:
        return self._route.handler

    @property
    def notes(self) -> str:
        return self._route.notes


AnyRoute = Route | DeferredRoute


class Routes:
    """The handlers of one family."""

    def __init__(self) -> None:
        self._routes: list[Route] = []

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    def handles(self, key: ApiKey, versions: range, *, advertised: range | None = None) -> Callable[[H], H]:
        """Register the decorated function. Its annotations name the request it reads and the response it returns."""

        def register(handler: H) -> H:
            hints = typing.get_type_hints(handler, localns={"Context": Context, "Pending": Pending})
            _, request = list(hints.values())[:2]
            self._routes.append(
                Route(
                    key,
                    versions,
                    advertised or versions,
                    request,
                    _with_error_code(hints["return"]),
                    handler,
                )
            )
            return handler

        return register


_NOT_RESPONSES: Final = (Pending, type(None))


def _with_error_code(annotation: Any) -> Callable[..., Answer] | None:
    members = [a for a in typing.get_args(annotation) or (annotation,) if a not in _NOT_RESPONSES]
    response = members[0]
    return response if "error_code" in response.__slots__ else None
