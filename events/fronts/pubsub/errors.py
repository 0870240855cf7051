"""Ends a Pub/Sub call with an error: gRPC status, ``error-code`` trailer, an id for finding it in the log.

Codes are those of the Pub/Sub API guide, "Handle Errors". Texts are those observed from organizations, otherwise the
guide's.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from grpc import aio

from events.access.errors import AccessError
from events.errors import (
    BusUnavailable,
    EventsError,
    InvalidReplayId,
    InvalidSession,
    NotThere,
    SubscriptionActive,
    SubscriptionDeleted,
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
from tidegate.kit.logs import get_logger

__all__ = ["NOT_AUTHENTICATED", "CallRefused", "Context", "reading", "replay_id_refused", "stream", "unary"]

logger = get_logger(__name__)

M = TypeVar("M", bound=Message)

Context: TypeAlias = "aio.ServicerContext[Any, Any]"

_PREFIX: Final = "sfdc.platform.eventbus.grpc"
NOT_AUTHENTICATED: Final = "An authentication exception occurred. Provide valid authentication via metadata headers."

_STATUS: Final[tuple[tuple[type[TidegateError], grpc.StatusCode, str], ...]] = (
    (InvalidSession, grpc.StatusCode.UNAUTHENTICATED, "service.auth.error"),
    (AccessError, grpc.StatusCode.PERMISSION_DENIED, "publish.topic.cannot.publish"),
    (DeliveryLimitExceeded, grpc.StatusCode.RESOURCE_EXHAUSTED, "subscription.limit.exceeded"),
    (TooManyClients, grpc.StatusCode.RESOURCE_EXHAUSTED, "concurrent.client.limit.exceeded"),
    (InvalidReplayId, grpc.StatusCode.INVALID_ARGUMENT, "subscription.fetch.replayid.corrupted"),
    (UnknownEvent, grpc.StatusCode.NOT_FOUND, "topic.not.found"),
    (UnknownSchema, grpc.StatusCode.NOT_FOUND, "schema.meta.permission"),
    (SubscriptionStopped, grpc.StatusCode.FAILED_PRECONDITION, "managed.subscription.config.stopped"),
    (SubscriptionDeleted, grpc.StatusCode.FAILED_PRECONDITION, "managed.subscription.config.deleted"),
    (SubscriptionElsewhere, grpc.StatusCode.UNAVAILABLE, "managed.subscription.elsewhere"),
    (SubscriptionActive, grpc.StatusCode.ALREADY_EXISTS, "managed.subscription.already.active"),
    (SubscriptionTakenOver, grpc.StatusCode.ABORTED, "managed.subscription.taken.over"),
    (NotThere, grpc.StatusCode.NOT_FOUND, "not.found"),
    (TopicUnfit, grpc.StatusCode.FAILED_PRECONDITION, "topic.unfit"),
    (BusUnavailable, grpc.StatusCode.UNAVAILABLE, "service.unavailable"),
    (EventsError, grpc.StatusCode.INVALID_ARGUMENT, "request.invalid"),
)
"""The gRPC status and the ``error-code`` trailer of an error; the first matching line applies."""


class CallRefused(EventsError):
    """A request that is refused with a specific ``error-code``."""

    def __init__(self, trailer: str, message: str, status: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT) -> None:
        super().__init__(message)
        self.trailer, self.status = trailer, status


def replay_id_refused(about: str) -> CallRefused:
    """The refusal of bytes that are not a replay id, and of an id that is not retained; clients recognise it by its
    words.
    """
    return CallRefused(
        "subscription.fetch.replayid.corrupted",
        "The Replay ID validation failed. Ensure that the replay_id field value in FetchRequest is valid and refers to an "
        f"event that is within the retention window: {about}.",
    )


def _message(context: Context, error: TidegateError) -> str:
    """An error's text in this API."""
    if isinstance(error, InvalidSession):
        return NOT_AUTHENTICATED
    if isinstance(error, InvalidReplayId):
        return replay_id_refused(f"{error.replay_id} is none").message
    if isinstance(error, UnknownEvent):
        org = next((value for key, value in context.invocation_metadata() or () if key == "tenantid"), "")
        topic = error.name if "/" in error.name else f"/event/{error.name}"
        return (
            f"The topic information for org CORE/prod/{org} and topic {topic[:200]} not found. "
            "Ensure the topic name is correct and that the topic exists."
        )
    return str(error)


async def _abort(context: Context, error: Exception) -> NoReturn:
    """End the call with the error's status, its ``error-code`` in the trailers and an id for finding it in the log."""
    rpc_id = str(uuid.uuid4())
    if isinstance(error, CallRefused):
        status, trailer = error.status, error.trailer
    elif isinstance(error, UnknownManagedSubscription):
        status, trailer = grpc.StatusCode.NOT_FOUND, f"managed.subscription.{error.by}.not.found"
    elif isinstance(error, TidegateError):
        status, trailer = next(
            ((status, trailer) for kind, status, trailer in _STATUS if isinstance(error, kind)),
            (grpc.StatusCode.INTERNAL, "service.error"),
        )
    else:
        logger.error("unforeseen error in a Pub/Sub call", rpc_id=rpc_id, exc_info=error)
        error, status, trailer = (
            EventsError("Internal error; the log has the details"),
            grpc.StatusCode.INTERNAL,
            "service.error",
        )
    details = f"{_message(context, error)} rpcId: {rpc_id}"
    await context.abort(status, details, (("error-code", f"{_PREFIX}.{trailer}"), ("rpc-id", rpc_id)))
    raise AssertionError("abort does not return")


class Malformed:
    """A message that can't be parsed as its type."""


def reading(kind: type[M]) -> Callable[[bytes], M | Malformed]:
    """A parser of requests. gRPC itself would log a traceback for each invalid one."""

    def read(data: bytes) -> M | Malformed:
        try:
            return kind.FromString(data)
        except DecodeError:
            return Malformed()

    return read


def _require_readable(request: Any) -> None:
    if isinstance(request, Malformed):
        raise CallRefused("request.invalid", "The request is not a message of its type.")


async def _readable(requests: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    async for request in requests:
        _require_readable(request)
        yield request


def unary(method: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Awaitable[Any]]:
    async def call(request: Any, context: Context) -> Any:
        try:
            _require_readable(request)
            return await method(request, context)
        except Exception as error:  # noqa: BLE001 - the edge of the service: everything becomes a status
            failure = error
        try:
            raise await _aborted(context, failure)
        finally:
            del request, context, failure

    return call


def stream(
    method: Callable[[AsyncIterator[Any], Context], AsyncGenerator[Any, None]],
) -> Callable[[AsyncIterator[Any], Context], AsyncGenerator[Any, None]]:
    async def call(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[Any, None]:
        try:
            async with contextlib.aclosing(method(_readable(requests), context)) as responses:
                async for response in responses:
                    yield response
            return
        except Exception as error:  # noqa: BLE001 - the edge of the service: everything becomes a status
            failure = error
        try:
            raise await _aborted(context, failure)
        finally:
            del requests, context, failure

    return call


async def _aborted(context: Context, error: Exception) -> BaseException:
    """End the call with the error's status. Returns the exception to raise then.

    gRPC keeps that exception with its call. Its traceback must not refer to the call: such a cycle lives until garbage
    collection, together with the headers and the message, and a pass that frees thousands of calls stops the service
    for seconds.
    """
    try:
        await _abort(context, error)
    except aio.AbortError as abort:
        ended: BaseException = abort.with_traceback(None)
        ended.__context__ = None
        return ended
