"""Answers that take several steps, each of which may have to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from broker.api.connection import ConnectionRefusal
from broker.api.parts import Common
from broker.api.routes import Answer, Context, Outcome, Pending
from tidegate.kit.logs import get_logger

__all__ = ["Later"]

logger = get_logger(__name__)


class Later:
    """An answer that ``decide`` completes.

    Without ``answers`` (acks=0) nothing is sent, and an error closes the connection.
    """

    def __init__(self, context: Context[Common], *, answers: bool = True) -> None:
        self._connection = context.connection
        self._answers = answers
        self.future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        """Cancelled when the connection closes."""

    @property
    def outcome(self) -> Pending | None:
        """For the handler to return."""
        return Pending(self.future, lambda answer: answer) if self._answers else None

    def decide(self, make: Callable[[], Outcome]) -> None:
        """Answer with the outcome of ``make`` as soon as it is no longer pending, or with the error that ``make``
        raises.
        """
        try:
            outcome = make()
        except Exception as error:  # noqa: BLE001 - raised in a callback nobody would see it
            self._fail(error)
            return
        if not isinstance(outcome, Pending):
            self._succeed(outcome)
            return
        pending = outcome

        def done(future: Any) -> None:
            if self.future.done():
                return
            try:
                self._succeed(pending.make(future.result()))
            except asyncio.CancelledError:
                self.future.cancel()
            except Exception as error:  # noqa: BLE001 - as above
                self._fail(error)

        if pending.future.done():
            done(pending.future)
        else:
            pending.future.add_done_callback(done)

    def _succeed(self, answer: Answer | None) -> None:
        if not self.future.done() and answer is not None:
            self.future.set_result(answer)

    def _fail(self, error: Exception) -> None:
        if self._answers:
            if not self.future.done():
                self.future.set_exception(error)
            return
        if not isinstance(error, ConnectionRefusal):
            logger.error("a handler failed", exc_info=error)
        if self._connection is not None:
            self._connection.close(str(error))
