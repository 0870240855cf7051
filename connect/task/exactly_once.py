"""Exactly-once sources (KIP-618): names of producers, where transactions end, and the check before a connector starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from connect.api import ConnectError, RecordBatch, SourceConnector
from tidegate.kit.errors import Problem, TidegateError

if TYPE_CHECKING:
    from connect.config.connector import SourceConfig

__all__ = [
    "BoundaryRequests",
    "ConnectorBoundary",
    "IntervalBoundary",
    "PollBoundary",
    "TransactionBoundary",
    "preflight_problems",
    "transactional_id",
    "transactional_ids",
]

_NO_CHECK: Final = (
    "The connector does not implement the API required for preflight validation of exactly-once source support. Please "
    "consult the documentation for the connector to determine whether it supports exactly-once semantics, and then "
    'consider reconfiguring the connector to use the value "requested" for this property (which will disable this '
    "preflight check and allow the connector to be created)."
)
_NO_SUPPORT: Final = "The connector does not support exactly-once semantics with the provided configuration."
_NOT_ENABLED: Final = "This worker does not have exactly-once source support enabled."
_NO_BOUNDARIES: Final = (
    "The connector does not support connector-defined transaction boundaries with the given configuration. Please "
    "reconfigure it to use a different transaction boundary definition."
)


def transactional_id(group_id: str, connector: str, task: int) -> str:
    """The name under which a task's producer is fenced; as Kafka Connect's, so that workers of both fence one another."""
    return f"{group_id}-{connector}-{task}"


def transactional_ids(group_id: str, connector: str, count: int) -> list[str]:
    """The names of the producers of tasks 0 to ``count`` - 1."""
    return [transactional_id(group_id, connector, task) for task in range(count)]


def preflight_problems(
    connector: type[SourceConnector[Any]], config: SourceConfig, parsed_config: Any, *, enabled: bool
) -> Iterable[Problem]:
    """The problems of a configuration that asks for exactly-once delivery. ``parsed_config`` has the connector's own keys."""
    if config.exactly_once.lower() == "required":
        if not enabled:
            yield Problem("exactly.once.support", _NOT_ENABLED)
        else:
            supported = _asked(
                lambda: connector.exactly_once(parsed_config), "exactly.once.support", "exactly-once semantics"
            )
            if isinstance(supported, Problem):
                yield supported
            elif not supported:
                yield Problem("exactly.once.support", _NO_CHECK if supported is None else _NO_SUPPORT)
    if config.transaction_boundary.lower() == "connector":
        what = "defining its own transaction boundaries"
        able = _asked(lambda: connector.defines_transactions(parsed_config), "transaction.boundary", what)
        if isinstance(able, Problem):
            yield able
        elif not able:
            yield Problem("transaction.boundary", _NO_BOUNDARIES)


def _asked(question: Callable[[], bool | None], key: str, what: str) -> bool | Problem | None:
    try:
        return question()
    except TidegateError as error:
        return Problem(key, str(error))
    except BaseException as error:  # noqa: BLE001 - a connector's own code: whatever it raises is told to its user
        return Problem(
            key, f"An unexpected error occurred: Failed while validating connector support for {what}: {error}"
        )


class TransactionBoundary(Protocol):
    """Says, after a batch or after the batches of a poll, whether the transaction ends there."""

    def begin(self) -> None:
        """The task starts, or goes on after a pause."""
        ...

    def after_batch(self, batch: RecordBatch) -> str | None:
        """ "commit", "abort" or None; ``batch`` is the one that was sent last."""
        ...

    def after_poll(self) -> str | None: ...

    def at_the_end(self) -> str | None:
        """The task stops or pauses."""
        ...


class PollBoundary:
    """``transaction.boundary=poll``: every poll is a transaction."""

    def begin(self) -> None:
        pass

    def after_batch(self, batch: RecordBatch) -> str | None:
        return None

    def after_poll(self) -> str | None:
        return "commit"

    at_the_end = after_poll


class IntervalBoundary(PollBoundary):
    """``transaction.boundary=interval``: a transaction ends with the first poll after the interval."""

    def __init__(self, interval_ms: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s, self._clock = interval_ms / 1000, clock
        self._last = clock()

    def begin(self) -> None:
        self._last = self._clock()

    def after_poll(self) -> str | None:
        if self._clock() < self._last + self._interval_s:
            return None
        self._last = self._clock()
        return "commit"

    def at_the_end(self) -> str | None:
        return "commit"


class BoundaryRequests:
    """The requests of a task through ``context.transaction`` (``connect.api.TransactionContext``), on its own thread."""

    def __init__(self) -> None:
        self._for_poll: str | None = None
        self._after: list[tuple[RecordBatch, str]] = []

    def commit(self, after: RecordBatch | None = None) -> None:
        self._request("commit", after)

    def abort(self, after: RecordBatch | None = None) -> None:
        self._request("abort", after)

    def _request(self, what: str, after: RecordBatch | None) -> None:
        requests = (
            {request for batch, request in self._after if batch is after} if after is not None else {self._for_poll}
        )
        if requests - {None, what}:
            raise ConnectError("a transaction can be committed or aborted after the same batch, not both")
        if after is None:
            self._for_poll = what
        else:
            self._after.append((after, what))

    def take(self, batch: RecordBatch | None = None) -> str | None:
        """The request for the end of this batch, or for the end of a poll; it is forgotten with that."""
        if batch is None:
            taken, self._for_poll = self._for_poll, None
            return taken
        taken = next((request for marked, request in self._after if marked is batch), None)
        self._after = [entry for entry in self._after if entry[0] is not batch]
        return taken


class ConnectorBoundary(PollBoundary):
    """``transaction.boundary=connector``: transactions end where the task says, and nowhere else."""

    def __init__(self, requests: BoundaryRequests) -> None:
        self._requests = requests

    def after_batch(self, batch: RecordBatch) -> str | None:
        return self._requests.take(batch)

    def after_poll(self) -> str | None:
        return self._requests.take()

    at_the_end = after_poll


def boundary_of(config: SourceConfig, requests: BoundaryRequests, flush_interval_ms: int) -> TransactionBoundary:
    """The boundary that a configuration names; ``flush_interval_ms`` is the worker's, for want of an interval."""
    kind = config.transaction_boundary.lower()
    if kind == "interval":
        interval_ms = config.transaction_interval_ms
        return IntervalBoundary(flush_interval_ms if interval_ms is None else interval_ms)
    return ConnectorBoundary(requests) if kind == "connector" else PollBoundary()


def enabled_in(worker: Mapping[str, str]) -> bool:
    """Whether a worker's properties switch exactly-once sources on (``preparing`` does not)."""
    return worker.get("exactly.once.source.support", "disabled").strip().lower() == "enabled"
