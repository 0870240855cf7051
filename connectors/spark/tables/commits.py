"""The record of a connector in a table's own commit: its last run and the offsets after it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from connectors.spark.job import Input
from tidegate.kit.errors import RetriableError

__all__ = ["Committed", "OvertakenCommit"]


class OvertakenCommit(RetriableError):
    """Another driver of the connector committed a later run to the table meanwhile: this one was given up."""


@dataclass(frozen=True)
class Committed:
    """The newest commit of a connector in a table. ``offsets`` are the next ones to read by topic and partition, and ``topic_ids``
    say which topic of that name they are of: one that was made anew begins at 0 again."""

    run_id: str = ""
    sequence: int = 0
    """Counts the commits of the connector in this table."""
    offsets: dict[str, dict[str, int]] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    maintained: float = 0.0
    """When the table was maintained last, or first written to, in seconds since the epoch; 0: that is not known."""

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Fields that are not known, of a newer version, are passed over."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in known})

    def after(self, run_id: str, inputs: Iterable[Input]) -> Committed:
        """The record to commit with the ranges of the inputs."""
        offsets, topic_ids = dict(self.offsets), dict(self.topic_ids)
        for input_ in inputs:
            there = offsets.get(input_.topic, {}) if topic_ids.get(input_.topic) == input_.topic_id else {}
            stops = {partition: max(stop, there.get(partition, 0)) for partition, stop in input_.stops.items()}
            offsets[input_.topic] = there | stops
            topic_ids[input_.topic] = input_.topic_id
        return Committed(run_id, self.sequence + 1, offsets, topic_ids, self.maintained)

    def without_older(self, input_: Input) -> Input:
        """The input without the offsets that the table has already."""
        if self.topic_ids.get(input_.topic) != input_.topic_id:
            return input_
        there = self.offsets.get(input_.topic, {})
        starts = {
            partition: min(max(start, there.get(partition, 0)), input_.stops[partition])
            for partition, start in input_.starts.items()
        }
        return dataclasses.replace(input_, starts=starts)
