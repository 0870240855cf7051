"""The guarantees of every source when it is stopped, killed and cut off."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

import pytest

from broker.client import ClientConfig, TopicPartition
from broker.client.blocking import Admin, BatchConsumer
from broker.client.errors import UnknownTopicOrPartition
from connect.api import SourceConnector
from connect.testing.trial import FaultSuite, Trial
from connect.testing.worker import eventually

__all__ = ["SourceFaultSuite"]

_SLOW_S: Final = 1.5
_CANCELLED_S: Final = 6.0
"""Longer than the worker waits."""


class SourceFaultSuite(FaultSuite):
    """Set ``connector_class`` and the fixtures ``bootstrap_servers``, ``properties`` (a source with a fixed content,
    read in several polls) and ``expected``; ``parties`` if it uses servers.
    """

    connector_class: ClassVar[type[SourceConnector[Any]]]

    @pytest.fixture
    def expected(self) -> Collection[Any]:
        """The values of ``identity`` for all its rows."""
        raise NotImplementedError

    def identity(self, topic: str, key: Any, value: Any) -> Any:
        """Identifies the row of a record, from its key and value as JsonConverter wrote them without schemas; None for
        no row.
        """
        return value["id"]

    @pytest.fixture(autouse=True)
    def _kafka_of(self, bootstrap_servers: str) -> None:
        self._kafka = ClientConfig(bootstrap_servers)

    @pytest.fixture
    def started(self, trial: Trial) -> Iterator[Trial]:
        """The trial, its topics deleted at the end."""
        yield trial
        topics = self._topics(trial)
        trial.order("stop")
        trial.ended("STOPPED")
        with Admin(self._kafka) as admin:
            admin.delete_topics(topics, missing_ok=True)

    def run_config(self, properties: Mapping[str, str]) -> dict[str, str]:
        return dict(properties)

    def test_stopped_in_the_middle_of_poll(self, started: Trial, properties: Any, expected: Collection[Any]) -> None:
        self._stopped_within("stop", started, properties, expected)

    def test_cancelled_in_the_middle_of_poll(self, started: Trial, properties: Any, expected: Collection[Any]) -> None:
        self._stopped_within("stop", started, properties, expected, _CANCELLED_S)

    def test_paused_in_the_middle_of_poll(self, started: Trial, properties: Any, expected: Collection[Any]) -> None:
        self._stopped_within("pause", started, properties, expected)

    def test_killed_in_the_middle_of_poll(self, started: Trial, properties: Any, expected: Collection[Any]) -> None:
        for part in (0.3, 0.9, 0.6):
            started.kill_within("poll", part)
        started.begin(self.run_config(properties))
        self._all_arrive(started, expected)
        assert started.conductor.done

    def test_cut_off_between_any_two_calls_and_in_the_middle_of_poll(
        self, started: Trial, properties: Any, expected: Collection[Any]
    ) -> None:
        began = time.monotonic()

        def cut() -> Literal["go"]:
            # Not forever: a source may need more than one call to connect.
            passed = time.monotonic() - began
            return "go" if passed > 4 else started.cut_next() if passed > 1.5 else started.cut()

        started.conductor.before_each_call(cut)
        for part in (0.2, 0.5, 0.8):
            started.conductor.within("poll", started.cut_next, part=part)
        started.begin(self.run_config(properties))
        self._all_arrive(started, expected)

    def test_stopped_while_its_servers_are_away(
        self, started: Trial, properties: Any, expected: Collection[Any]
    ) -> None:
        hold = started.hold("poll")
        started.begin(self.run_config(properties))
        eventually(hold.reached.is_set, bool, "a poll that waits")
        for party in started.parties:
            party.cut(refuse=True)
        hold.release()
        started.order("stop")
        started.ended("STOPPED")
        for party in started.parties:
            party.mend()
        started.order("resume")
        self._all_arrive(started, expected)

    @pytest.mark.parametrize("by", ["transform", "log"])
    def test_a_row_that_is_refused_is_read_again(
        self, started: Trial, properties: Any, expected: Collection[Any], tmp_path: Any, by: str
    ) -> None:
        refused = tmp_path / "refused"
        refused.touch()
        transform = {"transforms": "refuse", "transforms.refuse.type": "tidegate.testing.RefuseRow"}
        # The log answers later than the transform: its refusal must come early, so that later rows are acknowledged.
        row = len(expected) * 2 // 3 if by == "transform" else 1
        which = {"row": str(row), "by": by, "while.exists": str(refused)}
        keys = {f"transforms.refuse.{name}": value for name, value in which.items()}
        started.begin({**self.run_config(properties), **transform, **keys})
        started.failed()
        refused.unlink()
        started.restart()
        eventually(lambda: started.worker.status(started.name)[1], lambda tasks: "RUNNING" in tasks, "a task that runs")
        self._all_arrive(started, expected)

    def test_nothing_is_left_behind(self, started: Trial, properties: Any, expected: Collection[Any]) -> None:
        started.create(self.run_config(properties))
        self._all_arrive(started, expected)
        self.cycles_leave_nothing(started)

    def _stopped_within(
        self,
        order: Literal["stop", "pause"],
        trial: Trial,
        properties: Mapping[str, str],
        expected: Collection[Any],
        seconds: float = _SLOW_S,
    ) -> None:
        hold = trial.hold("poll")
        trial.begin(self.run_config(properties))
        trial.order_during(order, hold, seconds)
        trial.ended("STOPPED" if order == "stop" else "PAUSED")
        trial.order("resume")
        self._all_arrive(trial, expected)

    def _all_arrive(self, trial: Trial, expected: Collection[Any]) -> None:
        expected_ = set(expected)

        def missing() -> list[Any]:
            trial.alive()
            return sorted(expected_ - set(self._arrived(trial)))

        eventually(missing, lambda rows: not rows, f"all of {len(expected_)} rows")
        assert set(self._arrived(trial)) <= expected_

    def _topics(self, trial: Trial) -> list[str]:
        return list(trial.worker.ask("GET", f"/connectors/{trial.name}/topics")[trial.name]["topics"])

    def _arrived(self, trial: Trial) -> list[Any]:
        topics = self._topics(trial)
        if not topics:
            return []
        with Admin(self._kafka) as admin:
            try:
                described = admin.describe_topics(topics)
            except UnknownTopicOrPartition:
                return []  # just created, and not yet known to all of Kafka
            partitions = [TopicPartition(name, n) for name, t in described.items() for n in range(len(t.partitions))]
            ends = admin.end_offsets(partitions)
        rows = []
        with BatchConsumer(ClientConfig(self._kafka.bootstrap_servers)) as consumer:
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            while any(consumer.position(partition) < ends[partition] for partition in partitions):
                for part in consumer.fetch(500):
                    rows += [
                        self.identity(record.topic, _decoded(record.key), _decoded(record.value))
                        for record in part.records()
                        if record.value is not None
                    ]
        return [row for row in rows if row is not None]


def _decoded(data: bytes | None) -> Any:
    return None if data is None else json.loads(data)
