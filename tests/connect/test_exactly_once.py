"""Exactly-once sources: every record is committed once, together with its offset, whichever process is killed."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from concurrent.futures import Future

import psutil
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from broker.client import ClientConfig
from broker.client.blocking import Admin, BatchConsumer
from connect.api import ConnectError, RecordBatch, Schema, SchemaType
from connect.config.connector import SourceConfig
from connect.task.control import TaskControl
from connect.task.exactly_once import (
    BoundaryRequests,
    ConnectorBoundary,
    IntervalBoundary,
    PollBoundary,
    preflight_problems,
    transactional_ids,
)
from connect.task.sources.deliveries import ExactlyOnce
from connect.task.sources.offsets import OffsetKeys
from tests.servers.process import wait_until
from tests.support.toys import NumbersConfig, NumbersConnector
from tests.support.worker import ConnectWorker
from tidegate.kit.config import parse

NUMBERS = "org.toys.NumbersConnector"


def batch(n: int) -> RecordBatch:
    rows, offset = pa.array([b"x"]), {"n": n}
    return RecordBatch("t", rows, Schema(SchemaType.BYTES), source_partition={"p": 1}, source_offset=offset)


class Log:
    """Transactions, remembered as what was done to them."""

    def __init__(self):
        self.done, self.is_open = [], False

    def send(self):
        self.is_open = True
        return [Future()]

    def commit(self, offsets):
        self.done.append({key.decode(): value for key, value in offsets.items()})
        self.is_open = False

    def abort(self):
        self.done.append("aborted")
        self.is_open = False


@pytest.fixture
def log():
    return Log()


def delivery(log, boundary):
    committed = []
    return ExactlyOnce(OffsetKeys("c", {}), log, boundary, committed.extend, TaskControl()), committed


def position(n):
    return {'["c",{"p":1}]': {"n": n}}


def test_each_poll_is_a_transaction(log):
    delivering, committed = delivery(log, PollBoundary())
    delivering.begin()
    delivering.polled()
    assert log.done == []
    for n in (1, 2):
        delivering.sent(batch(n), log.send())
    delivering.polled()
    delivering.finish()
    assert log.done == [position(2)] and committed == [({"p": 1}, {"n": 2})]
    assert delivering.attributes()["transaction-size-max"] == 2 * len(batch(1))


def test_an_interval_holds_several_polls(log):
    now = [0.0]
    delivering, _ = delivery(log, IntervalBoundary(5000, lambda: now[0]))
    delivering.begin()
    for n, at in enumerate((1, 4.9, 5, 6)):
        now[0] = at
        delivering.sent(batch(n), log.send())
        delivering.polled()
    assert log.done == [position(2)]
    delivering.finish()
    assert log.done == [position(2), position(3)]


def test_a_source_ends_its_transactions_itself(log):
    requests = BoundaryRequests()
    delivering, _ = delivery(log, ConnectorBoundary(requests))
    first, second, third = batch(1), batch(2), batch(3)
    requests.commit(first)
    requests.abort(third)
    with pytest.raises(ConnectError, match="not both"):
        requests.commit(third)
    for record in (first, second, third):
        delivering.sent(record, log.send())
    delivering.polled()
    assert log.done == [position(1), "aborted", position(3)]
    delivering.sent(batch(4), log.send())
    delivering.finish()
    assert log.done[3:] == [], "what no one asked to commit is not"
    requests.commit()
    delivering.polled()
    assert log.done[3:] == [position(4)]


def test_a_torn_batch_takes_its_transaction_along(log):
    delivering, _ = delivery(log, PollBoundary())
    delivering.sent(batch(1), log.send())
    delivering.torn()
    delivering.finish()
    assert log.done == ["aborted"]


@pytest.mark.parametrize(
    ("properties", "overrides", "enabled", "said"),
    [
        ({}, {}, False, []),
        ({"exactly.once.support": "required"}, {}, False, ["exactly-once source support enabled"]),
        ({"exactly.once.support": "REQUIRED"}, {}, True, []),
        ({"exactly.once.support": "required"}, {"hang": "true"}, True, ["does not support exactly-once semantics"]),
        ({"transaction.boundary": "connector"}, {}, True, []),
        ({"transaction.boundary": "connector"}, {"own.commits": "false"}, True, ["connector-defined transaction"]),
    ],
)
def test_unsupported_exactly_once_settings_are_refused_by_validation(properties, overrides, enabled, said):
    source = parse(SourceConfig, {"name": "n", "connector.class": NUMBERS, **properties})
    config = parse(NumbersConfig, {"topic": "t", **overrides})
    messages = [problem.message for problem in preflight_problems(NumbersConnector, source, config, enabled=enabled)]
    assert len(messages) == len(said) and all(text in message for text, message in zip(said, messages, strict=True))


def test_a_connector_that_does_not_say_is_refused_where_it_is_required():
    class Silent(NumbersConnector):
        @classmethod
        def exactly_once(cls, config):
            return None

    source = parse(SourceConfig, {"name": "n", "connector.class": NUMBERS, "exactly.once.support": "required"})
    (problem,) = preflight_problems(Silent, source, parse(NumbersConfig, {"topic": "t"}), enabled=True)
    assert "preflight validation" in problem.message


@pytest.fixture(scope="module")
def worker(tidegate_broker, tmp_path_factory):
    made = ConnectWorker(
        tmp_path_factory.mktemp("eos"),
        tidegate_broker.bootstrap_servers,
        {"exactly.once.source.support": "enabled", "task.host.processes": "1"},
        name=f"w{uuid.uuid4().hex[:8]}",
    )
    made.start()
    yield made
    made.stop()


def committed_records(worker, topic, whole):
    """The records committed to a topic, in order: until ``whole`` is true, and those that follow soon after."""
    config = ClientConfig(worker.properties["bootstrap.servers"], {"isolation.level": "read_committed"})
    with Admin(config) as admin, BatchConsumer(config) as consumer:
        partitions = [(topic, p.partition) for p in admin.describe_topics([topic])[topic].partitions]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        records = []

        def fetch():
            records.extend(record for part in consumer.fetch(max_wait_ms=200) for record in part.records())

        wait_until(lambda: fetch() or whole(records), f"all records of {topic}")
        fetch()
    return records


def numbers_in(worker, topic, count):
    numbers_found = committed_records(worker, topic, lambda records: len(records) >= count)
    return [json.loads(record.value)["n"] for record in numbers_found]


def offset_of(worker, name):
    offsets = worker.ask("GET", f"/connectors/{name}/offsets")["offsets"]
    return offsets[0]["offset"]["n"] if offsets else 0


def test_numbers_come_once_though_the_host_is_killed(worker):
    """Workers, leaders and brokers are killed in tests/proofs/test_connect_kills.py."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    config = {"topic": name, "total": "800", "batch": "10", "pause_ms": "5", "exactly_once_support": "required"}
    worker.create(name, connector_class=NUMBERS, **config)
    wait_until(lambda: offset_of(worker, name) > 200, "the source in mid-work")
    for host in psutil.Process(worker.process.pid).children():
        host.kill()
    wait_until(lambda: offset_of(worker, name) == 800, "the source at its end")
    assert Counter(numbers_in(worker, name, 800)) == Counter(range(800))


def test_a_task_that_is_fenced_and_still_to_run_goes_on(worker):
    """As one whose worker was cut off, while another had its tasks, which it then got back."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    worker.create(name, connector_class=NUMBERS, topic=name, total="600", batch="10", pause_ms="20")
    (producer_id,) = transactional_ids(worker.properties["group.id"], name, 1)
    for before in (100, 300):
        wait_until(lambda before=before: offset_of(worker, name) > before, "the source in mid-work")
        bootstrap = worker.properties["bootstrap.servers"]
        Producer({"bootstrap.servers": bootstrap, "transactional.id": producer_id}).init_transactions(30)
    wait_until(lambda: offset_of(worker, name) == 600, "the source at its end")
    assert numbers_in(worker, name, 600) == list(range(600))
    assert worker.ask("GET", f"/connectors/{name}/status")["tasks"][0]["state"] == "RUNNING"


def test_a_source_drops_what_it_aborts_and_goes_on_behind_it(worker):
    name = f"t-{uuid.uuid4().hex[:8]}"
    worker.create(name, connector_class=NUMBERS, topic=name, total="90", batch="10", transaction_boundary="connector",
                  commit_every="10")  # fmt: skip
    wait_until(lambda: offset_of(worker, name) == 90, "the source at its end")
    kept = [n for n in range(90) if n // 10 % 3 != 2]
    assert numbers_in(worker, name, len(kept)) == kept


def test_offsets_in_a_topic_of_the_connector_are_gone_on_from(worker):
    name = f"t-{uuid.uuid4().hex[:8]}"
    config = {
        "connector_class": NUMBERS,
        "topic": name,
        "total": "50",
        "batch": "10",
        "offsets_storage_topic": f"{name}-o",
    }
    worker.create(name, **config)
    wait_until(lambda: offset_of(worker, name) == 50, "the copy of the positions in the worker's topic")
    at_end = lambda records: records and json.loads(records[-1].value) == {"n": 50}  # noqa: E731
    offsets = committed_records(worker, f"{name}-o", at_end)
    assert {record.key for record in offsets} == {json.dumps([name, {"numbers": name}], separators=(",", ":")).encode()}
    stored = worker.ask("GET", f"/connectors/{name}/config")
    worker.ask("PUT", f"/connectors/{name}/config", {**stored, "total": "80"}, expect=200)
    wait_until(lambda: offset_of(worker, name) == 80, "what came after")
    assert numbers_in(worker, name, 80) == list(range(80))


def test_names_of_producers_are_the_original_s():
    assert transactional_ids("g", "c", 2) == ["g-c-0", "g-c-1"]


def test_a_transaction_left_open_in_the_offsets_topic_is_ended_by_the_next_task(worker):
    """And not waited for until it expires, which is a minute later."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    worker.create(name, connector_class=NUMBERS, topic=name, total="20", batch="10")
    wait_until(lambda: offset_of(worker, name) == 20, "the source at its end")
    worker.ask("PUT", f"/connectors/{name}/stop")
    worker.wait_for(name, connector="STOPPED")
    stored = worker.ask("GET", f"/connectors/{name}/config")
    (producer_id,) = transactional_ids(worker.properties["group.id"], name, 1)
    forerunner = Producer(
        {
            "bootstrap.servers": worker.properties["bootstrap.servers"],
            "transactional.id": producer_id,
            "transaction.timeout.ms": 600_000,
        }
    )
    forerunner.init_transactions(30)
    forerunner.begin_transaction()
    refused = []
    for partition in range(3):
        forerunner.produce(
            worker.properties["offset.storage.topic"],
            b"{}",
            b"written before it died",
            partition,
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
    assert forerunner.flush(30) == 0 and refused == []
    worker.ask("PUT", f"/connectors/{name}/config", {**stored, "total": "40"}, expect=200)
    worker.ask("PUT", f"/connectors/{name}/resume")
    assert numbers_in(worker, name, 40) == list(range(40))
    assert offset_of(worker, name) == 40
