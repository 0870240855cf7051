"""The dead letter queue of a sink: the records it could not handle, as they were, with headers that say why."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

from connect.api import ConnectError, DataError, Record, RecordBatch, RetriableConnectError
from connect.config.connector import SinkConfig
from connect.task.error_policy import ErrorPolicy, Failure
from tidegate.kit.errors import TidegateError
from tidegate.kit.scrubbing import scrubbed

__all__ = ["DeadLetters", "LetterSender", "Reporter"]

_PREFIX: Final = "__connect.errors."
_SINK_TASK: Final = "org.apache.kafka.connect.sink.SinkTask"


_Letter: TypeAlias = tuple[str, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]], int | None]
"""The arguments of ``LetterSender.send``."""


class LetterSender(Protocol):
    """Sends the records to their topic (``connect.task.sinks.dead_letter_sender.DeadLetterSender``)."""

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

    def wait_until_written(self, sent: Future[Any]) -> None:
        """Wait for such an answer; raises what it says."""
        ...


class DeadLetters:
    """Sends what ``errors.tolerance=all`` leaves out to the topic that the configuration names."""

    def __init__(
        self,
        config: SinkConfig,
        task: int,
        original: Callable[[Failure], RecordBatch | None],
        sender: LetterSender,
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``original`` gives the record of a failure as it lay in the log; ``names`` are the full names of components, by
        their short ones."""
        self._names = names
        self._config, self._task, self._original, self._sender = config, task, original, sender
        self._sent: list[tuple[_Letter, Future[Any]]] = []
        self.requests = self.failures = 0

    def take(self, failure: Failure) -> None:
        """Send one record on its way; ``settle`` waits for it."""
        raw = self._original(failure)
        if raw is None:
            raise ConnectError(f"a record left out is no longer at hand for the dead letter queue: {failure.position}")
        key = None if raw.keys is None else raw.keys[0].as_py()
        headers = [(h["key"], h["value"]) for h in (raw.headers[0].as_py() if raw.headers is not None else None) or ()]
        if self._config.dead_letter_headers:
            headers += self._context(failure, raw)
        stamp = None if raw.timestamps_ms is None else raw.timestamps_ms[0].as_py()
        self.requests += 1
        letter = self._config.dead_letter_topic, key, raw.values[0].as_py(), headers, stamp
        self._sent.append((letter, self._sender.send(*letter)))

    def _context(self, failure: Failure, raw: RecordBatch) -> list[tuple[str, bytes | None]]:
        assert raw.origin is not None and raw.offsets is not None
        error = failure.error
        present = {header["key"] for header in (raw.headers[0].as_py() if raw.headers is not None else None) or ()}
        facts = {
            "topic": raw.origin.topic,
            "partition": raw.origin.partition,
            "offset": raw.offsets[0].as_py(),
            "connector.name": self._config.name,
            "task.id": self._task,
            "stage": failure.stage,
            "class.name": self._names.get(failure.component, failure.component),
            "exception.class.name": _class_name(error),
            "exception.message": scrubbed(str(error)),
            "exception.stacktrace": scrubbed("".join(traceback.format_exception(error))),
        }
        # As the original: a header that the record has already is left as it is.
        return [(key, str(value).encode()) for name, value in facts.items() if (key := _PREFIX + name) not in present]

    def attributes(self) -> dict[str, float]:
        """Its part of ``task-error-metrics``."""
        return {
            "deadletterqueue-produce-requests": self.requests,
            "deadletterqueue-produce-failures": self.failures,
        }

    def wait_until_written(self) -> None:
        """Wait until the log has all of them: before the offsets that pass them are committed.

        Raises ConnectError, and a retriable error while the log is away. Wait again after that: a record that the producer
        has given up is sent once more.
        """
        while self._sent:
            letter, sent = self._sent[0]
            try:
                self._sender.wait_until_written(sent)
                self._sent.pop(0)
            except Exception as error:
                if isinstance(error, TidegateError) and error.retriable:
                    if sent.done():
                        self._sent[0] = letter, self._sender.send(*letter)
                    raise
                self.failures += 1
                topic = self._config.dead_letter_topic
                raise ConnectError(f"the dead letter queue {topic} did not take a record: {error}") from error


_JAVA_NAMES: Final = {
    DataError: "org.apache.kafka.connect.errors.DataException",
    RetriableConnectError: "org.apache.kafka.connect.errors.RetriableException",
    ConnectError: "org.apache.kafka.connect.errors.ConnectException",
}


def _class_name(error: BaseException) -> str:
    """The original's name of an error, for those who sort dead letters by it; Python's where it has none."""
    return _JAVA_NAMES.get(type(error), f"{type(error).__module__}.{type(error).__name__}")


class Reporter:
    """The ErrantRecordReporter of a task: single records that its ``put`` could not handle."""

    def __init__(self, policy: ErrorPolicy) -> None:
        self._policy = policy

    def report(self, record: Record, error: Exception) -> None:
        if record.offset is None or record.origin is None:
            raise DataError("only records that were given to put can be reported: this one has no origin and offset")
        batch = RecordBatch.from_records([record])
        self._policy.tolerate(Failure("TASK_PUT", _SINK_TASK, error, batch))
