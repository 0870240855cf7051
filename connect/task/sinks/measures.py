"""The statistics of a sink task: records read and put, offsets committed, and its lag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from connect.api import TopicPartition
from tidegate.kit.windowed import Windowed

if TYPE_CHECKING:
    from broker.client import FetchedBatches

__all__ = ["SinkMeasures"]


class SinkMeasures:
    """``sink-task-metrics``. Told by the task's thread, once per batch; asked by another."""

    def __init__(self) -> None:
        self._read = self._sent = self._commits = self._skips = 0
        self._reads, self._sends, self._put_ms, self._actives = Windowed(), Windowed(), Windowed(), Windowed()
        self._completed, self._skipped = Windowed(), Windowed()
        self._ends: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._safe: dict[TopicPartition, int] = {}

    def fetched(self, parts: Sequence[FetchedBatches], records: int) -> None:
        """A fetch has brought ``records`` for the task, and news of where the log ends."""
        for part in parts:
            partition = TopicPartition(part.topic, part.partition)
            self._ends[partition] = part.high_watermark
            self._positions.setdefault(partition, part.offset)
            self._safe.setdefault(partition, part.offset)
        if records:
            self._read += records
            self._reads.record(records)

    def put(self, records: int, took_ms: float) -> None:
        self._sent += records
        self._sends.record(records)
        self._put_ms.record(took_ms)

    def delivered(self, positions: Mapping[TopicPartition, int]) -> None:
        if positions:
            self._positions.update(positions)
            self._actives.record(self._active)

    def rewound(self, partition: TopicPartition, offset: int) -> None:
        self._positions[partition] = offset
        self._safe[partition] = min(offset, self._safe.get(partition, offset))

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._safe.update(offsets)
        self._commits += 1
        self._completed.record(1)
        self._actives.record(self._active)

    def skipped(self) -> None:
        """Offsets that the group's coordinator did not take."""
        self._skips += 1
        self._skipped.record(1)

    def forget(self, partition: TopicPartition) -> None:
        for positions in (self._ends, self._positions, self._safe):
            positions.pop(partition, None)

    @property
    def _active(self) -> int:
        """Records given to the task whose offsets are not committed yet."""
        safe = dict(self._safe)
        return sum(max(0, position - safe.get(at, position)) for at, position in dict(self._positions).items())

    def lags(self) -> list[tuple[str, int, int]]:
        """Topic, partition, and how many offsets there are between the task and the end as the last fetch saw it."""
        positions = dict(self._positions)
        return [(*at, max(0, end - positions.get(at, end))) for at, end in sorted(dict(self._ends).items())]

    def attributes(self) -> dict[str, float]:
        return {
            "sink-record-read-total": self._read,
            "sink-record-read-rate": self._reads.rate,
            "sink-record-send-total": self._sent,
            "sink-record-send-rate": self._sends.rate,
            "sink-record-active-count": self._active,
            "sink-record-active-count-max": self._actives.most,
            "sink-record-active-count-avg": self._actives.average,
            "sink-record-lag-max": max((lag for _, _, lag in self.lags()), default=0),
            "offset-commit-seq-no": self._commits,
            "offset-commit-completion-total": self._commits,
            "offset-commit-completion-rate": self._completed.rate,
            "offset-commit-skip-total": self._skips,
            "offset-commit-skip-rate": self._skipped.rate,
            "put-batch-max-time-ms": self._put_ms.most,
            "put-batch-avg-time-ms": self._put_ms.average,
        }
