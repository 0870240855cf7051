"""The topic for records whose values can't be decoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

from broker.client.blocking import BatchProducer
from broker.client.columns import Columns
from pyspark_tidegate.offsets import OffsetRange, config_of
from pyspark_tidegate.options import Options

__all__ = ["DeadLetters"]

_PREFIX: Final = "__connect.errors."
"""The headers are those of Kafka Connect's dead letters, so the same tools show them."""


class DeadLetters:
    """Writes records as they were read, with headers that say where from and what is wrong."""

    def __init__(self, options: Options, part: OffsetRange) -> None:
        self._topic, self._part = options.dead_letter_topic, part
        self._producer = BatchProducer(config_of(options))

    def __enter__(self) -> Self:
        self._producer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.stop()

    def write(self, columns: Columns, reasons: Sequence[str | None]) -> None:
        """Write the rows that have a reason; returns when they are acknowledged, and raises what the broker refuses."""
        answers = []
        for row, reason in enumerate(reasons):
            if reason is None:
                continue
            earlier = [] if columns.headers is None else columns.headers[row].as_py() or []
            headers = [(header["key"], header["value"]) for header in earlier] + [
                (f"{_PREFIX}topic", self._part.topic.encode()),
                (f"{_PREFIX}partition", str(self._part.partition).encode()),
                (f"{_PREFIX}offset", str(columns.offsets[row].as_py()).encode()),
                (f"{_PREFIX}stage", b"VALUE_CONVERTER"),
                (f"{_PREFIX}exception.message", reason.encode()),
            ]
            key, value = columns.keys[row].as_py(), columns.values[row].as_py()
            timestamp_ms = columns.timestamps_ms[row].as_py()
            answers.append(self._producer.enqueue(self._topic, key, value, headers, timestamp_ms=timestamp_ms))
        for answer in answers:
            answer.result()
