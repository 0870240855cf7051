"""A dead letter queue whose log is away: no letter is lost, and the task goes on when the log is back."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pyarrow as pa
import pytest

from connect.api import ConnectError, RecordBatch, Schema, SchemaType
from connect.config.connector import SinkConfig
from connect.data.batch import Origin
from connect.task.error_policy import Failure
from connect.task.sinks.dead_letters import DeadLetters
from tidegate.kit.config import parse
from tidegate.kit.errors import RetriableError, UsageError


class Sender:
    """Each letter ends as the next of ``ends`` says: with an error, or None for well."""

    def __init__(self, *ends: Exception | None) -> None:
        self._ends = list(ends)
        self.values: list[bytes | None] = []

    def send(self, topic: str, key: bytes | None, value: bytes | None, headers: Any, stamp: int | None) -> Future[Any]:
        self.values.append(value)
        future: Future[Any] = Future()
        error = self._ends.pop(0)
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
        return future

    def wait_until_written(self, sent: Future[Any]) -> None:
        sent.result(0)


def letters(sender: Sender) -> DeadLetters:
    properties = {"name": "sink", "connector.class": "X", "topics": "t", "errors.deadletterqueue.topic.name": "dead"}
    offsets = pa.array([3], pa.int64())
    batch = RecordBatch("t", pa.array([b"bad"]), Schema(SchemaType.BYTES), offsets=offsets, origin=Origin("t", 0))
    made = DeadLetters(parse(SinkConfig, properties), 0, lambda failure: batch, sender)
    made.take(Failure("VALUE_CONVERTER", "Converter", ValueError("no"), batch))
    return made


def test_a_letter_that_the_producer_gave_up_is_sent_once_more() -> None:
    sender = Sender(RetriableError("not acknowledged within 120 s"), None)
    queue = letters(sender)
    with pytest.raises(RetriableError):
        queue.wait_until_written()
    queue.wait_until_written()
    assert sender.values == [b"bad", b"bad"]
    queue.wait_until_written()
    assert len(sender.values) == 2


def test_a_letter_that_the_log_refuses_fails_the_task() -> None:
    queue = letters(Sender(UsageError("too large")))
    with pytest.raises(ConnectError, match="the dead letter queue dead did not take a record: too large"):
        queue.wait_until_written()
    assert queue.attributes()["deadletterqueue-produce-failures"] == 1
