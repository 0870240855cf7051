"""The guarantees of every sink when it is stopped, killed and cut off."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Literal

import pytest

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin, BatchProducer
from connect.api import ConverterContext, JobTask, Record, RecordBatch, SinkConnector
from connect.converters.json import JsonConfig, JsonConverter
from connect.testing.sinks import ROW
from connect.testing.trial import FaultSuite, Trial
from connect.testing.worker import eventually
from tidegate.kit.config import parse

__all__ = ["SinkFaultSuite"]

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_PARTITIONS: Final = 2
_WAVE: Final = 40
"""Rows per wave, half of them in each partition."""
_SLOW_S: Final = 1.5
_CANCELLED_S: Final = 6.0
"""Longer than the worker waits."""


class SinkFaultSuite(FaultSuite):
    """Set ``connector_class``, the fixtures ``bootstrap_servers`` and ``properties``, and ``read_back``; ``parties`` if
    it uses servers. Each test has a different ``topic``.

    ``exactly_once`` means that a row delivered twice is stored once. For a job (``JobTask``), ``run`` is tested instead
    of ``put`` and ``pre_commit``.
    """

    connector_class: ClassVar[type[SinkConnector[Any]]]
    exactly_once: ClassVar[bool] = False
    topic: str

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        """An id of each row that arrived: the ``n`` passed to ``record``. Called while the sink works."""
        raise NotImplementedError

    def record(self, n: int) -> Record:
        """Row number ``n``."""
        return Record(self.topic, {"id": n, "name": f"name {n}", "amount": n / 2}, ROW)

    @property
    def _delivering(self) -> str:
        """The call that receives rows."""
        return "run" if self._is_job else "put"

    @property
    def _committing(self) -> str:
        """The call before positions are committed."""
        return "run" if self._is_job else "pre_commit"

    @property
    def _is_job(self) -> bool:
        return issubclass(self.connector_class.task_class, JobTask)

    @pytest.fixture(autouse=True)
    def _topic(self, bootstrap_servers: str) -> None:
        self.topic = f"suite{time.time_ns()}"
        self._kafka = ClientConfig(bootstrap_servers)
        self._written = 0
        with Admin(self._kafka) as admin:
            admin.create_topics([NewTopic(self.topic, _PARTITIONS)])

    def run_config(self, properties: Mapping[str, str]) -> dict[str, str]:
        converters = {f"{side}.converter": _JSON for side in ("key", "value")}
        with_schemas = {f"{side}.converter.schemas.enable": "true" for side in ("key", "value")}
        return {"topics": self.topic, **converters, **with_schemas, **properties}

    def test_stopped_in_the_middle_of_put(self, trial: Trial, properties: Mapping[str, str]) -> None:
        self._stopped_within(self._delivering, "stop", trial, properties)

    def test_cancelled_in_the_middle_of_put(self, trial: Trial, properties: Mapping[str, str]) -> None:
        self._stopped_within(self._delivering, "stop", trial, properties, _CANCELLED_S)

    def test_paused_in_the_middle_of_put(self, trial: Trial, properties: Mapping[str, str]) -> None:
        self._stopped_within(self._delivering, "pause", trial, properties)

    def test_stopped_in_the_middle_of_a_commit(self, trial: Trial, properties: Mapping[str, str]) -> None:
        self._stopped_within(self._committing, "stop", trial, properties)

    def test_killed_in_the_middle_of_put_and_of_a_commit(self, trial: Trial, properties: Mapping[str, str]) -> None:
        trial.create(self.run_config(properties))
        self._deliver(trial, properties)
        kills = [*((self._delivering, part) for part in (0.2, 0.6, 0.95)), (self._committing, 0.5)]
        for call, part in kills if self._is_job else [*kills, ("close", 0.5)]:
            trial.kill_within(call, part)
            self._write()
            if call == "close":
                trial.order("pause")
                trial.order("stop")
                trial.ended("STOPPED")
                trial.conductor.forget()
                trial.order("resume")
            else:
                eventually(trial.conductor.settled, bool, f"a kill in {call}")
            self._all_arrive(trial, properties)
        self._once(properties)

    def test_cut_off_between_any_two_calls_and_in_the_middle_of_each(
        self, trial: Trial, properties: Mapping[str, str]
    ) -> None:
        trial.create(self.run_config(properties))
        self._deliver(trial, properties)
        for cut in (trial.cut, trial.cut_next):
            trial.conductor.before_each_call(cut)
            for _ in range(3):
                self._write()
                time.sleep(0.3)
            trial.conductor.before_each_call(None)
        self._all_arrive(trial, properties)
        for part in (0.1, 0.5, 0.8):
            for call in (self._delivering, self._committing):
                trial.conductor.within(call, trial.cut, part=part)
            self._deliver(trial, properties)
        self._once(properties)

    def test_stopped_while_its_servers_are_away(self, trial: Trial, properties: Mapping[str, str]) -> None:
        trial.create(self.run_config(properties))
        self._deliver(trial, properties)
        for party in trial.parties:
            party.cut(refuse=True)
        calls = trial.conductor.begun(self._delivering)
        self._write()
        # It need not end: a connector may retry as long as its own keys say.
        eventually(
            lambda: trial.conductor.begun(self._delivering), lambda count: count > calls, "a call with no server"
        )
        trial.order("stop")
        trial.ended("STOPPED")
        self._after_the_servers_came_back(trial, properties)

    def test_stopped_when_its_servers_went_away_during_put(self, trial: Trial, properties: Mapping[str, str]) -> None:
        trial.create(self.run_config(properties))
        self._deliver(trial, properties)
        for part in (0.1, 0.9):
            hold = trial.hold(self._delivering, part)
            self._write()
            eventually(hold.reached.is_set, bool, "a call that waits")
            for party in trial.parties:
                party.cut(refuse=True)
            trial.order_during("stop", hold, _SLOW_S)
            trial.ended("STOPPED")
            self._after_the_servers_came_back(trial, properties)

    def _after_the_servers_came_back(self, trial: Trial, properties: Mapping[str, str]) -> None:
        for party in trial.parties:
            party.mend()
        self._committed_has_arrived(trial, properties)
        trial.order("resume")
        self._all_arrive(trial, properties)
        self._once(properties)

    def test_partitions_revoked_during_put(self, trial: Trial, properties: Mapping[str, str]) -> None:
        config = self.run_config(properties)
        trial.create(config)
        self._deliver(trial, properties)
        for tasks in ("2", "1"):
            hold = trial.hold(self._delivering)
            self._write()
            eventually(hold.reached.is_set, bool, "a call that waits")
            trial.reconfigure({**config, "tasks.max": tasks})
            time.sleep(_SLOW_S)
            hold.release()
            self._deliver(trial, properties)
        self._once(properties)

    def test_a_record_that_is_none_goes_to_the_dead_letters_and_takes_no_other_with_it(
        self, trial: Trial, properties: Mapping[str, str]
    ) -> None:
        letters = f"{self.topic}-letters"
        tolerant = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": letters}
        config = self.run_config(properties) | {"errors.deadletterqueue.topic.replication.factor": "1"}
        self._write(poison=True)
        trial.begin(config)
        trial.failed()
        self._committed_has_arrived(trial, properties)
        if self._is_job:
            return  # a job reads the log itself: there are no dead letters
        trial.reconfigure({**config, **tolerant})
        eventually(lambda: trial.worker.status(trial.name)[1], lambda tasks: set(tasks) == {"RUNNING"}, "it to run")
        self._all_arrive(trial, properties)
        self._once(properties)

    def test_nothing_is_left_behind(self, trial: Trial, properties: Mapping[str, str]) -> None:
        trial.create(self.run_config(properties))
        self._deliver(trial, properties)
        self.cycles_leave_nothing(trial)
        self._deliver(trial, properties)

    def _stopped_within(
        self,
        call: str,
        order: Literal["stop", "pause"],
        trial: Trial,
        properties: Mapping[str, str],
        seconds: float = _SLOW_S,
    ) -> None:
        """The order is given during the call, which continues for ``seconds``."""
        trial.create(self.run_config(properties))
        self._deliver(trial, properties)
        hold = trial.hold(call)
        self._write()
        trial.order_during(order, hold, seconds)
        trial.ended("STOPPED" if order == "stop" else "PAUSED")
        self._committed_has_arrived(trial, properties)
        trial.order("resume")
        self._deliver(trial, properties)
        self._once(properties)

    def _deliver(self, trial: Trial, properties: Mapping[str, str]) -> None:
        self._write()
        self._all_arrive(trial, properties)

    def _write(self, *, poison: bool = False) -> None:
        """Write a wave of rows into the topic. Without poison, row n is at offset n

        2 of partition n % 2.
        """
        first, self._written = self._written, self._written + _WAVE
        with BatchProducer(self._kafka) as producer:
            waiting = []
            for partition in range(_PARTITIONS):
                rows = [replace(self.record(n), topic=self.topic) for n in range(first + partition, self._written, 2)]
                batch = RecordBatch.from_records(rows)
                values = _bytes(self.topic, batch.value_schema, batch.values, is_key=False)
                keys: list[bytes | None] = [None] * len(rows)
                if batch.keys is not None:
                    keys = _bytes(self.topic, batch.key_schema, batch.keys, is_key=True)
                pairs = list(zip(keys, values, strict=True))
                if poison:
                    pairs.insert(len(pairs) // 2, (None, b"no JSON"))
                waiting += [producer.enqueue(self.topic, k, v, partition=partition) for k, v in pairs]
            for acknowledged in waiting:
                acknowledged.result(60)

    def _all_arrive(self, trial: Trial, properties: Mapping[str, str]) -> None:
        expected = set(range(self._written))

        def missing() -> list[int]:
            trial.alive()
            return sorted(expected - set(self.read_back(properties)))

        # The deadline is for the next row, not for all: a job that restarts Spark may take minutes on a busy machine.
        left = missing()
        while left:
            left = eventually(missing, partial(_is_longer, left), f"the next of {self._written} rows")

    def _committed_has_arrived(self, trial: Trial, properties: Mapping[str, str]) -> None:
        listed = trial.worker.ask("GET", f"/connectors/{trial.name}/offsets")["offsets"]
        committed = {each["partition"]["kafka_partition"]: each["offset"]["kafka_offset"] for each in listed}
        safe = {n for n in range(self._written) if n // _PARTITIONS < committed.get(n % _PARTITIONS, 0)}
        lost = sorted(safe - set(self.read_back(properties)))
        assert not lost, f"committed {committed}, and these rows are not there: {lost}"

    def _once(self, properties: Mapping[str, str]) -> None:
        if self.exactly_once:
            arrived = self.read_back(properties)
            twice = sorted({n for n in arrived if arrived.count(n) > 1})
            assert not twice, f"these rows are there more than once: {twice}"


def _is_longer(before: list[int], rows: list[int]) -> bool:
    return len(before) > len(rows)


def _bytes(topic: str, schema: Any, values: Any, *, is_key: bool) -> list[bytes | None]:
    converter = JsonConverter(parse(JsonConfig, {"schemas.enable": "true"}), ConverterContext(is_key=is_key))
    return list(converter.from_connect(topic, schema, values).to_pylist())
