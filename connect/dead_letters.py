"""The dead letter queue of a sink: the records it could not handle, as they were, with headers that say why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, Protocol

from connect.api import ConnectError, DataError, Record, RecordBatch
from connect.connector_config import SinkConfig
from connect.error_policy import ErrorPolicy, Failure
from tidegate.kit.errors import TidegateError

__all__ = ["DeadLetters", "LetterSender", "Reporter"]

_PREFIX: Final = "__connect.errors."


class LetterSender(Protocol):
    """What takes the records to their topic (``connect.senders.DeadLetterSender``)."""

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        timestamp_ms: int | None,
    ) -> Future[Any]:
        """Send one on its way; the future is done with the log's answer."""
        ...

    def settle(self, sent: Future[Any]) -> None:
        """Wait for such an answer; raises what it says."""
        ...


class DeadLetters:
    """Sends what ``errors.tolerance=all`` leaves out to the topic that the configuration names."""

    def __init__(
        self, config: SinkConfig, task: int, original: Callable[[Failure], RecordBatch | None], sender: LetterSender
    ) -> None:
        self._config, self._task, self._original, self._sender = config, task, original, sender
        self._sent: list[Future[Any]] = []
        self.requests = 0

    def take(self, failure: Failure) -> None:
        """Send one record on its way; ``settle`` waits for it."""
        raw = self._original(failure)
        if raw is None:
            raise ConnectError(f"a record left out is no longer at hand for the dead letter queue: {failure.place}")
        key = None if raw.keys is None else raw.keys[0].as_py()
        headers = [(h["key"], h["value"]) for h in (raw.headers[0].as_py() if raw.headers is not None else None) or ()]
        if self._config.dead_letter_headers:
            headers += self._context(failure, raw)
        stamp = None if raw.timestamps_ms is None else raw.timestamps_ms[0].as_py()
        self.requests += 1
        self._sent.append(self._sender.send(self._config.dead_letter_topic, key, raw.values[0].as_py(), headers, stamp))

    def _context(self, failure: Failure, raw: RecordBatch) -> list[tuple[str, bytes | None]]:
        assert raw.origin is not None and raw.offsets is not None
        error = failure.error
        facts = {
            "topic": raw.origin.topic,
            "partition": raw.origin.partition,
            "offset": raw.offsets[0].as_py(),
            "connector.name": self._config.name,
            "task.id": self._task,
            "stage": failure.stage,
            "class.name": failure.component,
            "exception.class.name": f"{type(error).__module__}.{type(error).__name__}",
            "exception.message": str(error),
            "exception.stacktrace": _causes(error),
        }
        return [(_PREFIX + name, str(value).encode()) for name, value in facts.items()]

    def settle(self) -> None:
        """Wait until the log has all of them: before the offsets that pass them are committed. Raises ConnectError."""
        while self._sent:
            try:
                self._sender.settle(self._sent[0])
                self._sent.pop(0)
            except Exception as error:
                if isinstance(error, TidegateError) and error.retriable:
                    raise
                topic = self._config.dead_letter_topic
                raise ConnectError(f"the dead letter queue {topic} did not take a record: {error}") from error


def _causes(error: BaseException) -> str:
    lines: list[str] = []
    current: BaseException | None = error
    while current is not None and len(lines) < 10:
        lines.append(f"{type(current).__name__}: {current}")
        current = current.__cause__
    return "\nCaused by: ".join(lines)


class Reporter:
    """The ErrantRecordReporter of a task: single records that its ``put`` could not handle."""

    def __init__(self, policy: ErrorPolicy) -> None:
        self._policy = policy

    def report(self, record: Record, error: Exception) -> None:
        if record.offset is None or record.origin is None:
            raise DataError("only records that were given to put can be reported: this one has no origin and offset")
        batch = RecordBatch.from_records([record])
        self._policy.tolerate(Failure("TASK_PUT", type(error).__name__, error, batch))
