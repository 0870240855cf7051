"""TimestampRouter: changes the topic by the time of the record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from connect.api import DataError, Problem, RecordBatch, Transformation, config, key
from connect.data.java.date_format import date_format

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TimestampRouter", "TimestampRouterConfig", "routed"]

_GRAINS: Final = (("S", 1), ("s", 1000), ("m", 60_000), ("HkKh", 3_600_000))


@config
class TimestampRouterConfig:
    """Keys of TimestampRouter."""

    topic_format: str = key(
        "topic.format",
        default="${topic}-${timestamp}",
        importance="high",
        doc="The new topic; ${topic} stands for the old one and ${timestamp} for the record's time.",
    )
    timestamp_format: str = key(
        "timestamp.format",
        default="yyyyMMdd",
        importance="high",
        doc="How the time is written: a pattern of Java's SimpleDateFormat, in UTC.",
    )

    def problems(self) -> Iterable[Problem]:
        try:
            date_format(self.timestamp_format)
        except ValueError as error:
            yield Problem(
                "timestamp.format", f"Invalid value {self.timestamp_format} for configuration timestamp.format: {error}"
            )


class TimestampRouter(Transformation):
    """A record without a timestamp is an error."""

    config_class = TimestampRouterConfig
    config: TimestampRouterConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        times = batch.timestamps_ms
        if times is None or times.null_count:
            rows = [] if times is None else [row for row, null in enumerate(times.is_null().to_pylist()) if null]
            raise DataError(f"Timestamp missing on record: of topic {batch.topic}", rows=rows)
        template = self.config.topic_format.replace("${topic}", batch.topic)
        texts = _formatted(self.config.timestamp_format, times)
        return routed(batch, [template.replace("${timestamp}", text) for text in texts.to_pylist()])


def _formatted(pattern: str, times: pa.Array) -> pa.Array:
    """The texts of times; each distinct one is written once."""
    import pyarrow.compute as pc

    letters = {part.letter for part in date_format(pattern).parts}
    grain = next(
        (ms for grained, ms in _GRAINS if letters & set(grained)), 86_400_000 if "a" not in letters else 3_600_000
    )
    whole = pc.subtract(times, pc.if_else(pc.less(times, 0), grain - 1, 0))
    coarse = pc.multiply(pc.divide(whole, grain), grain).dictionary_encode()
    return date_format(pattern).format_column(coarse.dictionary).take(coarse.indices)


def routed(batch: RecordBatch, topics: Sequence[str]) -> list[RecordBatch]:
    """The rows in order; each run of one topic becomes a batch for it."""
    made: list[RecordBatch] = []
    start = 0
    for row in range(1, len(topics) + 1):
        if row == len(topics) or topics[row] != topics[start]:
            part = batch if start == 0 and row == len(topics) else batch.slice(start, row - start)
            made.append(part.replace(topic=topics[start]))
            start = row
    return made
