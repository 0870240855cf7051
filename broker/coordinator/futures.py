"""Coordinator answers that wait for the log, and the errors that clients get when the log refuses a write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from broker.errors import (
    BrokerError,
    CoordinatorNotAvailable,
    InvalidReplicationFactor,
    KafkaStorageError,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    RecordListTooLarge,
    RequestTimedOut,
    UnknownServerError,
    UnknownTopicOrPartition,
)

__all__ = ["accepted", "answer_when", "fail", "succeed", "when_done"]

_ANSWERS: Final[Sequence[tuple[type[BrokerError], type[BrokerError]]]] = (
    (UnknownTopicOrPartition, CoordinatorNotAvailable),
    (NotEnoughReplicas, CoordinatorNotAvailable),
    (InvalidReplicationFactor, CoordinatorNotAvailable),
    (RequestTimedOut, CoordinatorNotAvailable),
    (NotLeaderOrFollower, NotCoordinator),
    (KafkaStorageError, NotCoordinator),
    (MessageTooLarge, UnknownServerError),
    (RecordListTooLarge, UnknownServerError),
)
"""Translates errors of a log write for clients of the coordinator, to whom errors of Produce mean other things."""


def _answer(error: BaseException) -> BrokerError:
    for cause, answer in _ANSWERS:
        if isinstance(error, cause):
            return answer(str(error))
    return error if isinstance(error, BrokerError) else UnknownServerError(f"The coordinator's log: {error}")


T = TypeVar("T")


def succeed(future: asyncio.Future[T], value: T) -> None:
    """Resolve a request's future, unless it was cancelled because its connection is gone."""
    if not future.done():
        future.set_result(value)


def fail(future: asyncio.Future[Any], error: BrokerError) -> None:
    """Fail a request's future like ``succeed``.

    The error counts as retrieved: if the client is gone, it will ask again.
    """
    if not future.done():
        future.set_exception(error)
        future.exception()


def when_done(future: asyncio.Future[None], callback: Callable[[BrokerError | None], None]) -> None:
    """Call back with the error or None.

    If the future is done, call at once, so that no other request comes in between.
    """

    def call(done: asyncio.Future[None]) -> None:
        if done.cancelled():
            callback(NotCoordinator("The broker stopped before the record was on disk."))
        else:
            error = done.exception()
            callback(None if error is None else _answer(error))

    if future.done():
        call(future)
    else:
        future.add_done_callback(call)


def answer_when(written: asyncio.Future[None], future: asyncio.Future[T], answer: T) -> None:
    """Complete a request with ``answer`` once its change is durable, or with the error that prevented it."""
    when_done(written, lambda error: succeed(future, answer) if error is None else fail(future, error))


def accepted(written: asyncio.Future[None]) -> bool:
    """Whether the log accepted a write, durable yet or not. Memory then follows, whatever happens next."""
    return not written.done() or (not written.cancelled() and written.exception() is None)
