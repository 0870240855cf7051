"""A worker or a task host is killed at work: what runs again continues at the committed offsets."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections import Counter
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.toys import rows_of
from tests.support.worker import ConnectWorker

pytestmark = pytest.mark.proof

NUMBERS, ROWS, RANGES = "org.toys.NumbersConnector", "org.toys.RowsConnector", "org.toys.RangesConnector"


@pytest.fixture
def worker(tidegate_broker, tmp_path):
    made = ConnectWorker(tmp_path / "worker", tidegate_broker.bootstrap_servers, name=f"w{uuid.uuid4().hex[:8]}")
    made.start()
    yield made
    made.stop()


def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def numbers(file: Path) -> list[int]:
    return [row["value"]["n"] for row in rows_of(file)]


def job_runs(file: Path) -> list[tuple[str, list[object]]]:
    """The id and the range (partition, start, stop) of each run, in order; each of one partition."""
    rows = rows_of(file)
    return [(run_id, range_) for *range_, run_id in rows]


def hosts(worker: ConnectWorker) -> list[psutil.Process]:
    return psutil.Process(worker.process.pid).children()


def committed(worker: ConnectWorker, name: str) -> int:
    offsets = worker.ask("GET", f"/connectors/{name}/offsets")["offsets"]
    return offsets[0]["offset"].get("n", offsets[0]["offset"].get("kafka_offset", 0)) if offsets else 0


def start_work(worker: ConnectWorker, name: str, out: Path, gate: Path) -> None:
    """Numbers go from a source to a sink; the source is in mid-work, and will not end before ``gate`` is there."""
    work = {"total": "2000", "batch": "10", "pause_ms": "5", "rest_at": "1500", "rest_until": str(gate)}
    worker.create(f"{name}-numbers", connector_class=NUMBERS, topic=name, **work)
    worker.create(f"{name}-rows", connector_class=ROWS, topics=name, file=str(out))
    wait_until(lambda: committed(worker, f"{name}-numbers") > 100, "the source in mid-work")


def wait_for_end_of_work(worker: ConnectWorker, name: str, out: Path) -> None:
    wait_until(lambda: committed(worker, f"{name}-numbers") == 2000, "the source at its end")
    wait_until(lambda: set(numbers(out)) == set(range(2000)), "all rows in the sink")
    worker.wait_for(f"{name}-numbers", connector="RUNNING", task0="RUNNING")
    worker.wait_for(f"{name}-rows", connector="RUNNING", task0="RUNNING")


def test_a_worker_killed_in_mid_work_loses_nothing(worker, tmp_path):
    name, out, gate = topic(), tmp_path / "out", tmp_path / "gate"
    start_work(worker, name, out, gate)
    children = hosts(worker)
    worker.kill()
    gate.touch()
    psutil.wait_procs(children, timeout=60)
    assert not any(child.is_running() for child in children), "task hosts outlived their worker"
    worker.start()
    wait_for_end_of_work(worker, name, out)


def test_a_worker_killed_at_rest_repeats_nothing(worker, tmp_path):
    name, out = topic(), tmp_path / "out"
    worker.create(f"{name}-numbers", connector_class=NUMBERS, topic=name, total="500", batch="50")
    worker.create(f"{name}-rows", connector_class=ROWS, topics=name, file=str(out))
    wait_until(lambda: committed(worker, f"{name}-numbers") == 500, "source committed")
    wait_until(lambda: committed(worker, f"{name}-rows") == 500, "sink committed")
    worker.kill()
    worker.start()
    worker.wait_for(f"{name}-numbers", connector="RUNNING", task0="RUNNING")
    worker.wait_for(f"{name}-rows", connector="RUNNING", task0="RUNNING")
    config = worker.ask("GET", f"/connectors/{name}-numbers/config")
    worker.ask("PUT", f"/connectors/{name}-numbers/config", {**config, "total": "600"}, expect=200)
    wait_until(lambda: committed(worker, f"{name}-rows") == 600, "what came after")
    assert Counter(numbers(out)) == Counter(range(600))


def test_a_task_host_killed_is_noticed_and_replaced(worker, tmp_path):
    name, out, gate = topic(), tmp_path / "out", tmp_path / "gate"
    start_work(worker, name, out, gate)
    before = {child.pid for child in hosts(worker)}
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    gate.touch()
    wait_for_end_of_work(worker, name, out)
    assert not before & {child.pid for child in hosts(worker)}


def test_a_worker_that_stops_commits_what_it_sent(worker, tmp_path):
    name = topic()
    settings = {"offset.flush.interval.ms": "600000"}
    worker.stop()
    patient = ConnectWorker(tmp_path / "patient", worker.properties["bootstrap.servers"], settings, name=topic())
    patient.start()
    try:
        patient.create(f"{name}-numbers", connector_class=NUMBERS, topic=name, total="100", batch="10")
        progress = f"/tidegate/v1/connectors/{name}-numbers/progress"
        wait_until(lambda: [t["done"] for t in patient.ask("GET", progress)["tasks"]] == [100], "all rows sent")
        assert committed(patient, f"{name}-numbers") == 0
        patient.stop()
        patient.start()
        wait_until(lambda: committed(patient, f"{name}-numbers") == 100, "what was sent before")
    finally:
        patient.stop()


def test_a_job_reads_up_to_the_oldest_open_transaction_where_its_consumer_would(worker, tmp_path):
    name = topic()
    producer = Producer({"bootstrap.servers": worker.properties["bootstrap.servers"], "transactional.id": name})
    producer.init_transactions()

    def begin(*values):
        producer.begin_transaction()
        for value in values:
            producer.produce(name, value)
        assert producer.flush(60) == 0

    def ranges():
        lines = (tmp_path / "out").read_text().splitlines() if (tmp_path / "out").exists() else []
        return [json.loads(line)[1:3] for line in lines]

    begin("a", "b")
    producer.commit_transaction()
    begin("c")
    worker.create(
        f"{name}-job", connector_class=RANGES, topics=name, file=str(tmp_path / "out"), job_interval_ms="100",
        consumer_override_isolation_level="read_committed",
    )  # fmt: skip
    wait_until(ranges, "the first run")
    producer.abort_transaction()
    wait_until(lambda: len(ranges()) > 1, "the run after the transaction")
    assert ranges() == [[0, 3], [3, 5]]


def test_a_task_that_fails_says_why_and_can_be_restarted(worker):
    name = topic()
    worker.create(f"{name}-numbers", connector_class=NUMBERS, topic=name, total="100", batch="10", die_at="50")
    worker.wait_for(f"{name}-numbers", connector="RUNNING", task0="FAILED")
    status = worker.ask("GET", f"/connectors/{name}-numbers/status")["tasks"][0]
    assert status["trace"] == "ConnectError: cannot go past 50"
    wait_until(lambda: committed(worker, f"{name}-numbers") == 50, "what came before")
    config = worker.ask("GET", f"/connectors/{name}-numbers/config")
    config.pop("die.at")
    worker.ask("PUT", f"/connectors/{name}-numbers/config", config, expect=200)
    wait_until(lambda: committed(worker, f"{name}-numbers") == 100, "the rest")
    worker.wait_for(f"{name}-numbers", connector="RUNNING", task0="RUNNING")


def test_a_task_that_does_not_stop_takes_its_host_but_not_the_others(tidegate_broker, tmp_path):
    settings = {"task.shutdown.graceful.timeout.ms": "1000", "task.host.processes": "1"}
    worker = ConnectWorker(tmp_path / "w", tidegate_broker.bootstrap_servers, settings, name=topic())
    worker.start()
    try:
        name = topic()
        worker.create(f"{name}-stuck", connector_class=NUMBERS, topic=name, hang="true")
        worker.create(f"{name}-numbers", connector_class=NUMBERS, topic=name, total="1000000", batch="10", pause_ms="5")
        worker.wait_for(f"{name}-stuck", connector="RUNNING", task0="RUNNING")
        wait_until(lambda: committed(worker, f"{name}-numbers") > 50, "the other task at work")
        (before,) = hosts(worker)
        worker.ask("DELETE", f"/connectors/{name}-stuck", expect=204)
        wait_until(lambda: not before.is_running() or before.status() == psutil.STATUS_ZOMBIE, "the host gone")
        offset = committed(worker, f"{name}-numbers")
        wait_until(lambda: committed(worker, f"{name}-numbers") > offset + 50, "the other task going on")
        worker.wait_for(f"{name}-numbers", connector="RUNNING", task0="RUNNING")
    finally:
        worker.stop()


def test_a_task_may_have_a_process_of_its_own(worker):
    name = topic()
    worker.create(f"{name}-alone", connector_class=NUMBERS, topic=name, task_isolation="process")
    worker.create(f"{name}-shared", connector_class=NUMBERS, topic=name)
    worker.wait_for(f"{name}-alone", connector="RUNNING", task0="RUNNING")
    worker.wait_for(f"{name}-shared", connector="RUNNING", task0="RUNNING")
    count = len(hosts(worker))
    worker.ask("DELETE", f"/connectors/{name}-alone", expect=204)
    wait_until(lambda: len(hosts(worker)) == count - 1, "its process gone")


def test_jobs_get_ranges_that_join(worker, tmp_path):
    name, out = topic(), tmp_path / "ranges"
    worker.create(f"{name}-numbers", connector_class=NUMBERS, topic=name, total="250", batch="50")
    wait_until(lambda: committed(worker, f"{name}-numbers") == 250, "rows in the topic")
    limits = {"job.interval.ms": "50", "job.max.records": "100"}
    config = {"connector.class": RANGES, "topics": name, "file": str(out), **limits}
    worker.ask("POST", "/connectors", {"name": f"{name}-ranges", "config": config}, expect=201)
    wait_until(lambda: committed(worker, f"{name}-ranges") == 250, "all of it done")
    assert [range_ for _, range_ in job_runs(out)] == [
        [f"{name}-0", 0, 100], [f"{name}-0", 100, 200], [f"{name}-0", 200, 250]
    ]  # fmt: skip
    worker.kill()
    worker.start()
    source = worker.ask("GET", f"/connectors/{name}-numbers/config")
    worker.ask("PUT", f"/connectors/{name}-numbers/config", {**source, "total": "260"}, expect=200)
    wait_until(lambda: committed(worker, f"{name}-ranges") == 260, "the rest")
    assert job_runs(out)[-1][1] == [f"{name}-0", 250, 260]


def test_a_job_killed_in_mid_run_repeats_it_as_it_was(worker, tmp_path):
    """Though records have come meanwhile, some of them to a topic that had none: the id says what it replaces."""
    name, out, gate = topic(), tmp_path / "ranges", tmp_path / "gate"
    worker.fill(f"{name}-a", 50)
    job = {"connector.class": RANGES, "topics": f"{name}-a,{name}-b", "file": str(out), "fail.until": str(gate)}
    worker.ask("POST", "/connectors", {"name": name, "config": {**job, "job.interval.ms": "50"}}, expect=201)
    wait_until(out.exists, "the run under way")
    wait_until(lambda: job_runs(out), "the run under way")
    worker.kill()
    worker.start()
    worker.fill(f"{name}-b", 10)
    wait_until(lambda: len(job_runs(out)) >= 2, "the run under way again")
    gate.touch()
    wait_until(lambda: worker.committed(name) == {f"{name}-a": 50, f"{name}-b": 10}, "all of it done")
    (first, *repeated), last = [run for run in job_runs(out) if "-a-" in run[1][0]], job_runs(out)[-1]
    assert repeated == [first] * len(repeated) and first[1] == [f"{name}-a-0", 0, 50]
    assert last[0] != first[0] and last[1] == [f"{name}-b-0", 0, 10]


def test_put_is_repeated_with_the_same_rows_until_it_succeeds(worker, tmp_path):
    name, out, gate = topic(), tmp_path / "out", tmp_path / "gate"
    worker.create(f"{name}-numbers", connector_class=NUMBERS, topic=name, total="100", batch="10")
    worker.create(f"{name}-rows", connector_class=ROWS, topics=name, file=str(out), fail_until=str(gate))
    worker.wait_for(f"{name}-rows", connector="RUNNING", task0="RUNNING")
    wait_until(lambda: committed(worker, f"{name}-numbers") == 100, "source committed")
    assert committed(worker, f"{name}-rows") == 0
    gate.touch()
    wait_until(lambda: committed(worker, f"{name}-rows") == 100, "sink committed")
    assert sorted(numbers(out)) == list(range(100))


def test_no_connector_is_imported_where_the_herder_runs(worker):
    name = topic()
    worker.create(f"{name}-numbers", connector_class=NUMBERS, topic=name)
    worker.wait_for(f"{name}-numbers", connector="RUNNING", task0="RUNNING")
    assert not _maps_arrow(psutil.Process(worker.process.pid))
    assert any(_maps_arrow(child) for child in hosts(worker))


def _maps_arrow(process: psutil.Process) -> bool:
    return any("libarrow" in Path(region.path).name for region in process.memory_maps())


def test_a_broker_that_is_killed_and_comes_back_is_waited_for(tmp_path):
    broker = TidegateBroker(tmp_path / "broker")
    broker.start()
    worker = ConnectWorker(tmp_path / "worker", broker.bootstrap_servers)
    worker.start()
    try:
        name, out, gate = topic(), tmp_path / "out", tmp_path / "gate"
        start_work(worker, name, out, gate)
        broker.kill()
        gate.touch()
        broker.start()
        wait_for_end_of_work(worker, name, out)
    finally:
        worker.stop()
        broker.stop()


def test_secrets_stay_placeholders_in_what_is_stored_and_shown(tidegate_broker, tmp_path):
    (tmp_path / "secrets").write_text(f"topic=secret-{topic()}\ntotal=x\n")
    settings = {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    worker = ConnectWorker(tmp_path / "w", tidegate_broker.bootstrap_servers, settings, name=topic())
    worker.start()
    try:
        name, secret = topic(), f"${{file:{tmp_path}/secrets:topic}}"
        worker.create(name, connector_class=NUMBERS, topic=secret, total="50")
        wait_until(lambda: committed(worker, name) == 50, "the source at work")
        partition = worker.ask("GET", f"/connectors/{name}/offsets")["offsets"][0]["partition"]["numbers"]
        assert partition.startswith("secret-")
        assert worker.ask("GET", f"/connectors/{name}")["config"]["topic"] == secret
        assert worker.ask("GET", f"/connectors/{name}/tasks")[0]["config"]["topic"] == secret
        wrong = {"connector.class": NUMBERS, "topic": secret, "total": f"${{file:{tmp_path}/secrets:total}}"}
        shown = json.dumps(worker.ask("PUT", "/connector-plugins/Numbers/config/validate", wrong))
        assert "secret-" not in shown and "Invalid value ${file" in shown
    finally:
        worker.stop()
