"""Answers of a coordinator that wait for its log, and what a client is told when the log refuses."""

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
"""What a client of the coordinator is told when the log refuses: errors of Produce mean other things to it."""


def _answer(error: BaseException) -> BrokerError:
    for cause, answer in _ANSWERS:
        if isinstance(error, cause):
            return answer(str(error))
    return error if isinstance(error, BrokerError) else UnknownServerError(f"The coordinator's log: {error}")


T = TypeVar("T")


def succeed(future: asyncio.Future[T], value: T) -> None:
    """Resolve a request's future, unless nobody waits any more (the connection is gone and it was cancelled)."""
    if not future.done():
        future.set_result(value)


def fail(future: asyncio.Future[Any], error: BrokerError) -> None:
    """As ``succeed``; and an error that nobody fetches is no news: the client has gone, and will ask again."""
    if not future.done():
        future.set_exception(error)
        future.exception()


def when_done(future: asyncio.Future[None], callback: Callable[[BrokerError | None], None]) -> None:
    """Call back with the failure or None: at once if the future is done, so that no other request comes in between."""

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
    """Give a request its answer once what it changed is durable, or else what kept it from being so."""
    when_done(written, lambda error: succeed(future, answer) if error is None else fail(future, error))


def accepted(written: asyncio.Future[None]) -> bool:
    """Whether the log took a write, be it durable yet or not: then memory follows, whatever comes next."""
    return not written.done() or (not written.cancelled() and written.exception() is None)
