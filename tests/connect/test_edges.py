"""Edge cases of tasks and connectors, over a worker: stopped in the middle of a call, failing, not returning."""

from __future__ import annotations

import threading
import uuid

import psutil
import pytest
import requests

from tests.servers.process import answer_when, wait_until
from tests.support.troubled import calls_in, offsets_in
from tests.support.worker import ConnectWorker

PROOF = pytest.mark.proof
LONG = (pytest.mark.proof, pytest.mark.long)
NUMBERS, SOURCE, SINK = "org.toys.NumbersConnector", "org.toys.TroubledSource", "org.toys.TroubledSink"


def worker_of(broker, folder, **settings):
    config = {
        "task.host.processes": "1",
        "scheduled.rebalance.max.delay.ms": "500",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    made = ConnectWorker(folder, broker.bootstrap_servers, config, name=f"w{uuid.uuid4().hex[:8]}")
    made.start()
    return made


@pytest.fixture(scope="module")
def worker(tidegate_broker, tmp_path_factory):
    made = worker_of(tidegate_broker, tmp_path_factory.mktemp("edges"), task_shutdown_graceful_timeout_ms="4000")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def hasty(tidegate_broker, tmp_path_factory):
    """A worker whose tasks have little time to stop."""
    made = worker_of(tidegate_broker, tmp_path_factory.mktemp("hasty"), task_shutdown_graceful_timeout_ms="500")
    yield made
    made.stop()


@pytest.fixture
def name():
    return f"t-{uuid.uuid4().hex[:8]}"


def shown(worker, name, task=None):
    """The connector's part of its status, or a task's; nothing while there is none."""
    answer = requests.get(f"{worker.url}/connectors/{name}/status", timeout=60)
    if not answer.ok:
        return {}
    status = answer.json()
    return status["connector"] if task is None else next((t for t in status["tasks"] if t["id"] == task), {})


# A sink that is stopped in the middle of a slow put


@pytest.mark.parametrize(
    ("order", "slow_ms"),
    [
        ("stop", 2000),
        pytest.param("stop", 600_000, marks=LONG),
        ("restart", 2000),
        pytest.param("restart", 600_000, marks=LONG),
        ("delete", 2000),
        pytest.param("delete", 600_000, marks=LONG),
    ],
)
def test_an_order_in_the_middle_of_a_slow_put_loses_nothing(worker, tmp_path, name, order, slow_ms):
    """With a put that returns within the task's time, and with one that never does."""
    out, calls, gate = tmp_path / "out", tmp_path / "calls", tmp_path / "gate"
    worker.fill(name, 100)
    config = {"topics": name, "file": str(out), "calls": str(calls), "slow_ms": str(slow_ms), "until": str(gate)}
    sink = f"{name}-rows"
    worker.create(sink, connector_class=SINK, **config)
    worker.wait_for(sink, connector="RUNNING", task0="RUNNING")
    wait_until(lambda: "open" in calls_in(calls), "the sink at work")
    match order:
        case "stop":
            worker.ask("PUT", f"/connectors/{sink}/stop", expect=204)
        case "restart":
            worker.ask("POST", f"/connectors/{sink}/tasks/0/restart", expect=204)
        case "delete":
            worker.ask("DELETE", f"/connectors/{sink}", expect=204)
            gate.touch()
            worker.create(sink, connector_class=SINK, **config)
    done = worker.committed(sink).get(name, 0) if order != "delete" else 0
    assert set(range(done)) <= set(offsets_in(out)), "committed, and not written"
    gate.touch()
    if order != "delete":
        worker.ask("PUT", f"/connectors/{sink}/resume", expect=202)
    wait_until(lambda: worker.committed(sink) == {name: 100}, "all committed")
    assert set(offsets_in(out)) == set(range(100))


def test_a_put_that_returns_after_the_task_was_cancelled_commits_nothing(hasty, tmp_path, name):
    out, calls = tmp_path / "out", tmp_path / "calls"
    hasty.fill(name, 50)
    config = {"topics": name, "file": str(out), "calls": str(calls), "slow_ms": "1000"}
    hasty.create(f"{name}-rows", connector_class=SINK, **config)
    wait_until(lambda: "open" in calls_in(calls), "the sink at work")
    hasty.ask("PUT", f"/connectors/{name}-rows/stop", expect=204)
    assert "flush" not in calls_in(calls) and offsets_in(out) == []
    assert hasty.committed(f"{name}-rows").get(name, 0) == 0


# Exceptions of plugins


@pytest.mark.parametrize("what", ["exit", "panic", "interrupt", "generator", "error"])
@pytest.mark.parametrize("where", ["task.start", "poll"])
def test_whatever_a_task_raises_it_has_failed_and_says_why(worker, tmp_path, name, where, what):
    calls = tmp_path / "calls"
    worker.create(name, connector_class=SOURCE, topic=name, trouble=f"{where}:{what}", calls=str(calls))
    failed = answer_when(lambda status: status.get("state") == "FAILED", lambda: shown(worker, name, 0), "the failure")
    classes = {"exit": "SystemExit", "panic": "PanicException", "interrupt": "KeyboardInterrupt"}
    classes |= {"generator": "GeneratorExit", "error": "ConnectError"}
    assert failed["trace"].startswith(f"{classes[what]}: ")
    assert calls_in(calls).count("task.stop") == 1 and calls_in(calls)[-1] == "task.stop"
    worker.ask("DELETE", f"/connectors/{name}", expect=204)


def test_a_sink_whose_start_fails_is_stopped_and_its_error_is_the_one_that_is_shown(worker, tmp_path, name):
    calls = tmp_path / "calls"
    worker.create(name, connector_class=SINK, topics=name, trouble="task.start:error", calls=str(calls))
    failed = answer_when(lambda status: status.get("state") == "FAILED", lambda: shown(worker, name, 0), "the failure")
    assert failed["trace"].splitlines() == ["ConnectError: it cannot go on"]
    assert calls_in(calls)[-2:] == ["task.start", "task.stop"]


@pytest.mark.parametrize("where", ["task.start", "open"])
def test_a_start_or_open_that_may_succeed_later_is_repeated(worker, tmp_path, name, where):
    calls, gate, out = tmp_path / "calls", tmp_path / "gate", tmp_path / "out"
    worker.fill(name, 20)
    sink = f"{name}-rows"
    config = {"calls": str(calls), "until": str(gate), "file": str(out), "trouble": f"{where}:away"}
    worker.create(sink, connector_class=SINK, topics=name, **config)
    wait_until(lambda: calls_in(calls).count(where) >= 2, "a second try")
    if where == "task.start":
        state = answer_when(lambda status: "trace" in status, lambda: shown(worker, sink, 0), "what hinders it")
        assert state["state"] == "RESTARTING"
        assert state["trace"].endswith("RetriableConnectError: the other side is away")
    gate.touch()
    wait_until(lambda: worker.committed(sink) == {name: 20}, "all committed")
    worker.wait_for(sink, connector="RUNNING", task0="RUNNING")
    assert "trace" not in shown(worker, sink, 0)
    worker.ask("DELETE", f"/connectors/{sink}", expect=204)
    assert calls_in(calls).count("task.stop") == 1


# Connectors that do not return


@pytest.mark.parametrize(
    "where", [pytest.param("start", marks=LONG), pytest.param("plan", marks=LONG), pytest.param("stop", marks=PROOF)]
)
def test_a_connector_that_does_not_return_holds_nobody_up(worker, tmp_path, name, where):
    gate, calls, other = tmp_path / "gate", tmp_path / "calls", f"{name}-other"
    worker.create(other, connector_class=NUMBERS, topic=other, total="1000000", pause_ms="5")
    worker.wait_for(other, connector="RUNNING", task0="RUNNING")
    worker.create(name, connector_class=SOURCE, topic=name, trouble=f"{where}:block", until=str(gate), calls=str(calls))
    wait_until(lambda: {"start", "plan"} & set(calls_in(calls)), "the connector begun")
    if where != "stop":
        # its status says so, and the worker's health
        told = answer_when(lambda status: "trace" in status, lambda: shown(worker, name), "what hinders it")
        assert told["state"] == ("RESTARTING" if where == "start" else "RUNNING")
        call = {"start": "start", "plan": "task_properties"}[where]
        assert told["trace"].startswith(f"{call} has not returned for ") and "troubled.py" in told["trace"]
        health = requests.get(f"{worker.url}/health", timeout=60)
        assert (
            health.status_code == 200 and f"Connector {name} waits: {call} has not returned" in health.json()["message"]
        )
    # others are created, changed and restarted, and a worker joins
    third = f"{name}-third"
    worker.create(third, connector_class=NUMBERS, topic=third, total="10")
    worker.wait_for(third, connector="RUNNING", task0="RUNNING")
    second = ConnectWorker(
        tmp_path / "second", worker.properties["bootstrap.servers"], {"scheduled.rebalance.max.delay.ms": "500"},
        name=worker.properties["group.id"],
    )  # fmt: skip
    second.start()
    try:
        fourth = f"{name}-fourth"
        second.create(fourth, connector_class=NUMBERS, topic=fourth, total="10")
        worker.wait_for(fourth, connector="RUNNING", task0="RUNNING")
    finally:
        second.stop()
    for connector in (name, third, fourth):
        worker.ask("DELETE", f"/connectors/{connector}", expect=204)
    worker.wait_for(other, connector="RUNNING", task0="RUNNING")
    gate.touch()
    worker.ask("DELETE", f"/connectors/{other}", expect=204)


@PROOF
def test_a_check_that_does_not_return_is_a_problem_and_holds_nobody_up(worker, tmp_path, name):
    gate = tmp_path / "gate"
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(
            requests.post(
                f"{worker.url}/connectors",
                json={
                    "name": name,
                    "config": {"connector.class": SOURCE, "trouble": "check:block", "until": str(gate)},
                },
                timeout=120,
            )
        )
    )
    asking.start()
    worker.create(f"{name}-other", connector_class=NUMBERS, topic=name, total="10")
    worker.wait_for(f"{name}-other", connector="RUNNING", task0="RUNNING")
    asking.join(120)
    assert [answer.status_code for answer in answers] == [400] and "no answer within" in answers[0].text
    gate.touch()


def test_a_connector_that_may_start_later_is_started_later(worker, tmp_path, name):
    gate, calls = tmp_path / "gate", tmp_path / "calls"
    worker.create(name, connector_class=SOURCE, topic=name, trouble="start:away", until=str(gate), calls=str(calls))
    told = answer_when(lambda status: "trace" in status, lambda: shown(worker, name), "what hinders it")
    assert told["state"] == "RESTARTING" and told["trace"].endswith("the other side is away")
    gate.touch()
    worker.wait_for(name, connector="RUNNING", task0="RUNNING")
    worker.ask("DELETE", f"/connectors/{name}", expect=204)
    assert calls_in(calls).count("stop") == 1


@pytest.mark.parametrize("what", ["exit", "panic", "error"])
@pytest.mark.parametrize("where", ["start", "plan"])
def test_whatever_a_connector_raises_it_has_failed_and_says_why(worker, name, where, what):
    worker.create(name, connector_class=SOURCE, topic=name, trouble=f"{where}:{what}")
    failed = answer_when(lambda status: status.get("state") == "FAILED", lambda: shown(worker, name), "the failure")
    said = {"exit": "SystemExit: a library", "panic": "PanicException: a compiled", "error": "it cannot go on"}
    assert failed["trace"].startswith(said[what])
    worker.ask("DELETE", f"/connectors/{name}", expect=204)


# Plans


def test_each_task_gets_its_planned_configuration_and_placeholders_stay(tidegate_broker, tmp_path, name):
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("tables=a,b,c\npassword=pa55word\n")
    provider = {
        "config.providers": "f",
        "config.providers.f.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    made = ConnectWorker(tmp_path / "w", tidegate_broker.bootstrap_servers, provider, name=f"w{name}")
    made.start()
    try:
        behind = f"${{f:{secrets}:"
        config = {
            "connector.class": SOURCE, "tasks.max": "3", "topic": name,
            "file": behind + "tables}", "secret": behind + "password}",
            "plans": '[{"file": "a"}, {"file": "b"}, {"file": "c"}]',
        }  # fmt: skip
        made.ask("POST", "/connectors", {"name": name, "config": config}, expect=201)
        made.wait_for(name, connector="RUNNING", task0="RUNNING", task1="RUNNING", task2="RUNNING")
        planned = [task["config"] for task in made.ask("GET", f"/connectors/{name}/tasks")]
        assert [task["file"] for task in planned] == ["a", "b", "c"]
        assert {task["secret"] for task in planned} == {behind + "password}"}
    finally:
        made.stop()


def test_a_stopped_worker_leaves_no_process(tidegate_broker, tmp_path, name):
    made = worker_of(tidegate_broker, tmp_path / "w", task_shutdown_graceful_timeout_ms="500")
    made.create(name, connector_class=SOURCE, topic=name, trouble="stop:block", until=str(tmp_path / "never"))
    made.wait_for(name, connector="RUNNING", task0="RUNNING")
    hosts = psutil.Process(made.process.pid).children()
    made.stop()
    # One that has ended stays in the list of processes until the machine's init has noticed that it has no parent any more.
    assert psutil.wait_procs(hosts, timeout=5)[1] == []
