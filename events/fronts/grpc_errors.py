"""Where an error becomes the end of a Pub/Sub call: gRPC status, ``error-code`` trailer, an id to find it by."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, Final, NoReturn, TypeAlias

import grpc
from grpc import aio

from events.access.errors import AccessError
from events.errors import (
    BusUnavailable,
    EventsError,
    InvalidReplayId,
    InvalidSession,
    NotThere,
    SubscriptionElsewhere,
    SubscriptionStopped,
    SubscriptionTakenOver,
    TopicUnfit,
    UnknownEvent,
    UnknownManagedSubscription,
    UnknownSchema,
)
from events.limits.errors import DeliveryLimitExceeded, TooManyClients
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import logger

__all__ = ["CallRefused", "Context", "stream", "unary"]

log = logger(__name__)

Context: TypeAlias = "aio.ServicerContext[Any, Any]"

_PREFIX: Final = "sfdc.platform.eventbus.grpc"

_STATUS: Final[tuple[tuple[type[TidegateError], grpc.StatusCode, str], ...]] = (
    (InvalidSession, grpc.StatusCode.UNAUTHENTICATED, "service.auth.error"),
    (AccessError, grpc.StatusCode.PERMISSION_DENIED, "topic.permission.denied"),
    (DeliveryLimitExceeded, grpc.StatusCode.RESOURCE_EXHAUSTED, "subscription.limit.exceeded"),
    (TooManyClients, grpc.StatusCode.RESOURCE_EXHAUSTED, "concurrent.client.limit.exceeded"),
    (InvalidReplayId, grpc.StatusCode.INVALID_ARGUMENT, "subscription.fetch.replayid.validation.failed"),
    (UnknownEvent, grpc.StatusCode.NOT_FOUND, "topic.not.found"),
    (UnknownSchema, grpc.StatusCode.NOT_FOUND, "schema.not.found"),
    (UnknownManagedSubscription, grpc.StatusCode.NOT_FOUND, "subscription.managed.not.found"),
    (SubscriptionStopped, grpc.StatusCode.FAILED_PRECONDITION, "subscription.managed.stopped"),
    (SubscriptionElsewhere, grpc.StatusCode.UNAVAILABLE, "subscription.managed.elsewhere"),
    (SubscriptionTakenOver, grpc.StatusCode.ABORTED, "subscription.managed.taken.over"),
    (NotThere, grpc.StatusCode.NOT_FOUND, "not.found"),
    (TopicUnfit, grpc.StatusCode.FAILED_PRECONDITION, "topic.unfit"),
    (BusUnavailable, grpc.StatusCode.UNAVAILABLE, "service.unavailable"),
    (EventsError, grpc.StatusCode.INVALID_ARGUMENT, "request.invalid"),
)
"""The gRPC status and the ``error-code`` trailer of an error; the first line that fits counts."""


class CallRefused(EventsError):
    """A request that is refused with one of the ``error-code``s of its own."""

    def __init__(self, trailer: str, message: str) -> None:
        super().__init__(message)
        self.trailer = trailer


async def _abort(context: Context, error: Exception) -> NoReturn:
    """End the call with the error's status, its ``error-code`` in the trailers and an id to find it by."""
    rpc_id = str(uuid.uuid4())
    if isinstance(error, CallRefused):
        status, trailer = grpc.StatusCode.INVALID_ARGUMENT, error.trailer
    elif isinstance(error, TidegateError):
        status, trailer = next(
            ((status, trailer) for kind, status, trailer in _STATUS if isinstance(error, kind)),
            (grpc.StatusCode.INTERNAL, "service.error"),
        )
    else:
        log.error("unforeseen error in a Pub/Sub call", rpc_id=rpc_id, exc_info=error)
        error, status, trailer = (
            EventsError("Internal error; the log has the details"),
            grpc.StatusCode.INTERNAL,
            "service.error",
        )
    said = f"Topic {error.name[:100]} does not exist" if isinstance(error, UnknownEvent) else str(error)
    details = f"{said} rpcId: {rpc_id}"
    await context.abort(status, details, (("error-code", f"{_PREFIX}.{trailer}"), ("rpc-id", rpc_id)))
    raise AssertionError("abort does not return")


def unary(method: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Awaitable[Any]]:
    async def call(request: Any, context: Context) -> Any:
        try:
            return await method(request, context)
        except Exception as error:  # noqa: BLE001 - the edge of the service: everything becomes a status
            await _abort(context, error)

    return call


def stream(
    method: Callable[[AsyncIterator[Any], Context], AsyncGenerator[Any, None]],
) -> Callable[[AsyncIterator[Any], Context], AsyncGenerator[Any, None]]:
    async def call(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[Any, None]:
        try:
            async with contextlib.aclosing(method(requests, context)) as responses:
                async for response in responses:
                    yield response
        except Exception as error:  # noqa: BLE001 - the edge of the service: everything becomes a status
            await _abort(context, error)

    return call
