"""Dead letters tried before they are sent back: the connector's worker says what it would do with them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tidegate.clients.worker import path_of
from tidegate.dead_letters.letter_queue import Letter
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from tidegate.clients.rest import Rest

__all__ = ["MOST_TRIED", "MOST_TRIED_BYTES", "Failed", "Outgoing", "Trial", "try_letters"]

MOST_TRIED: Final = 100
"""The most letters that a worker tries in one call."""
MOST_TRIED_BYTES: Final = 8_000_000
"""The most bytes of their keys, values and headers."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A letter, and the record that sending it back would write: the arguments of ``BatchProducer.enqueue``."""

    letter: Letter
    record: Mapping[str, Any]

    @property
    def size(self) -> int:
        """In bytes."""
        parts = (self.record["key"], self.record["value"], *(data for _, data in self.record["headers"]))
        return sum(len(part) for part in parts if part is not None)

    def to_json(self) -> dict[str, Any]:
        """For the worker. Partition and offset are the letter's, by which its answer names records."""
        partition, offset = self.letter.where
        return {
            "topic": self.record["topic"],
            "partition": partition,
            "offset": offset,
            "timestamp": max(self.letter.record.timestamp_ms, 0),
            "key": _text(self.record["key"]),
            "value": _text(self.record["value"]),
            "headers": [{"key": name, "value": _text(data)} for name, data in self.record["headers"]],
        }


@dataclass(frozen=True, slots=True)
class Failed:
    """A letter that would come back, or that would fail the task: the stage that fails, and its error."""

    where: str
    stage: str
    error: str


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome for ``count`` letters. Each is named ``partition:offset``, as in the queue.

    ``dropped`` are letters that a transform leaves out without an error. ``records`` are the others as the sink's task
    would get them: ``letter``, ``topic``, ``key`` and ``value``. ``actions`` are lines of the sink.
    """

    count: int
    failed: Sequence[Failed]
    dropped: Sequence[str]
    records: Sequence[Mapping[str, Any]]
    actions: Sequence[str]


def try_letters(worker: Rest, connector: str, outgoing: Sequence[Outgoing]) -> Trial:
    """Have the worker take the letters through the connector's converters, transforms and the preview of its sink.

    Nothing is written. ``outgoing`` is ``Plan.first``. Raises UsageError where it has none, for the first letter alone is
    larger than ``MOST_TRIED_BYTES``, NotThere for a worker that has no previews (Kafka Connect's own), and TidegateError with
    the worker's words: of a job, which reads the log by itself, or of a sink whose table is missing.
    """
    if not outgoing:
        raise UsageError(f"the first letter has more than the {MOST_TRIED_BYTES:,} bytes that are tried at once")
    body = {"records": [each.to_json() for each in outgoing]}
    told = worker.call("POST", "/tidegate/v1" + path_of(connector, "/preview"), body)
    failed = [Failed(_where(each), each["stage"], each["error"]) for each in told["left_out"]]
    records = [
        {"letter": _where(each), "topic": each["topic"], "key": each["key"], "value": each["value"]}
        for each in told["records"]
    ]
    seen = {each.where for each in failed} | {each["letter"] for each in records}
    names = ["{}:{}".format(*each.letter.where) for each in outgoing]
    return Trial(len(names), failed, [name for name in names if name not in seen], records, told["actions"])


def _where(told: Mapping[str, Any]) -> str:
    return f"{told.get('partition')}:{told.get('offset')}"


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
