"""Tasks that hang or fail, and hosts that hang or use too much memory, are detected, shown with a trace, and restarted
where configured.
"""

from __future__ import annotations

import os
import signal
import uuid

import psutil
import pytest

from connect.config.connector import CommonConfig
from connect.worker.host.restarts import Restarts
from tests.servers.process import answer_when, wait_until
from tests.support.worker import ConnectWorker
from tidegate.kit.config import parse

NUMBERS = "org.toys.NumbersConnector"
WITHIN = {"connector_class": NUMBERS, "task_hang_timeout_ms": "300"}


@pytest.fixture(scope="module")
def worker(tidegate_broker, tmp_path_factory):
    settings = {
        "task.host.processes": "1",
        "task.host.silence.timeout.ms": "3000",
        "task.host.memory.max.bytes": str(400 * 1024 * 1024),
        "task.shutdown.graceful.timeout.ms": "1500",
    }
    folder = tmp_path_factory.mktemp("hanging")
    made = ConnectWorker(folder, tidegate_broker.bootstrap_servers, settings, name=f"w{uuid.uuid4().hex[:8]}")
    made.start()
    yield made
    made.stop()


def hosts(worker):
    return {child.pid for child in psutil.Process(worker.process.pid).children()}


def task(worker, name):
    return (worker.ask("GET", f"/connectors/{name}/status").get("tasks") or [{}])[0]


def named(worker, **config):
    name = f"t-{uuid.uuid4().hex[:8]}"
    worker.create(name, topic=name, **config)
    return name


def test_a_call_that_hangs_is_shown_with_its_trace_until_it_returns(worker, tmp_path):
    gate = tmp_path / "gate"
    name = named(worker, **WITHIN, hang_until=str(gate))
    shown = answer_when(lambda status: "trace" in status, lambda: task(worker, name), "the hang seen")
    assert shown["state"] == "RUNNING"
    assert shown["trace"].startswith("poll has not returned for ") and "toys.py" in shown["trace"]
    gate.touch()
    running = lambda status: status.get("state") == "RUNNING" and "trace" not in status  # noqa: E731
    answer_when(running, lambda: task(worker, name), "the hang over")
    worker.ask("DELETE", f"/connectors/{name}", expect=204)


@pytest.mark.proof
def test_a_host_with_a_hanging_task_is_replaced_where_that_is_asked_for(worker, tmp_path):
    gate = tmp_path / "gate"
    other = named(worker, connector_class=NUMBERS, total="1000000", pause_ms="5")
    worker.wait_for(other, connector="RUNNING", task0="RUNNING")
    before = hosts(worker)
    name = named(worker, **WITHIN, hang_until=str(gate), task_hang_action="restart")
    wait_until(lambda: not before & hosts(worker), "the host replaced")
    gate.touch()
    worker.wait_for(name, connector="RUNNING", task0="RUNNING")
    worker.wait_for(other, connector="RUNNING", task0="RUNNING")
    for connector in (name, other):
        worker.ask("DELETE", f"/connectors/{connector}", expect=204)


@pytest.mark.proof
def test_a_host_that_does_not_answer_is_replaced(worker):
    name = named(worker, connector_class=NUMBERS)
    worker.wait_for(name, connector="RUNNING", task0="RUNNING")
    (before,) = hosts(worker)
    os.kill(before, signal.SIGSTOP)
    wait_until(lambda: before not in hosts(worker), "the host replaced")
    worker.wait_for(name, connector="RUNNING", task0="RUNNING")
    worker.ask("DELETE", f"/connectors/{name}", expect=204)


@pytest.mark.proof
def test_a_host_that_takes_too_much_memory_is_replaced(worker):
    other = named(worker, connector_class=NUMBERS)
    worker.wait_for(other, connector="RUNNING", task0="RUNNING")
    before = hosts(worker)
    name = named(worker, connector_class=NUMBERS, leak_bytes=str(450 * 1024 * 1024))
    wait_until(lambda: not before & hosts(worker), "the host replaced")
    worker.ask("DELETE", f"/connectors/{name}", expect=204)
    worker.wait_for(other, connector="RUNNING", task0="RUNNING")


def test_a_task_that_fails_is_started_again_as_often_as_asked_for(worker, tmp_path):
    gate = tmp_path / "gate"
    config = {"connector_class": NUMBERS, "total": "100", "batch": "10", "die_at": "50", "die_until": str(gate)}
    name = named(worker, **config, task_restart_max="-1", task_restart_backoff_ms="50")
    failure = answer_when(lambda status: status.get("state") == "FAILED", lambda: task(worker, name), "a failure")
    assert failure["trace"] == "ConnectError: cannot go past 50"
    gate.touch()
    offsets = f"/connectors/{name}/offsets"
    wait_until(lambda: [o["offset"] for o in worker.ask("GET", offsets)["offsets"]] == [{"n": 100}], "its end")
    worker.wait_for(name, connector="RUNNING", task0="RUNNING")


def test_restarts_take_longer_and_longer_and_end():
    keys = {"task.restart.max": "3", "task.restart.backoff.ms": "1000", "task.restart.backoff.max.ms": "3000"}
    now = [0.0]
    restarts = Restarts(parse(CommonConfig, {"name": "n", "connector.class": "c", **keys}), lambda: now[0])
    delays = []
    for _ in range(4):
        delays.append(restarts.after_failure())
        restarts.started()
        now[0] += 1
    assert delays == [1.0, 2.0, 3.0, None]
    now[0] += 3
    assert restarts.after_failure() == 1.0, "after a good run it counts anew"
    plain = Restarts(parse(CommonConfig, {"name": "n", "connector.class": "c"}), lambda: 0.0)
    assert plain.after_failure() is None, "as Kafka Connect, unless asked for"
