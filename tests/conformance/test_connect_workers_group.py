"""Apache Kafka Connect's workers as members of a group of type ``connect`` on our broker."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaConnect
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker


def answer(url: str, body: Any = None) -> Any:
    """The JSON a worker answers; None while it is rebalancing or does not know yet."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        assert error.code in {404, 409}, error.read()
        return None


@pytest.mark.servers
@pytest.mark.proof
def test_two_workers_share_connectors_and_one_takes_over(tmp_path: Path, kafka_tools: Callable[..., str]) -> None:
    broker = TidegateBroker(tmp_path / "broker")
    settings = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500", "scheduled.rebalance.max.delay.ms": "0"}
    workers = [
        or_skip(lambda name=name: KafkaConnect(tmp_path / name, broker.bootstrap_servers, settings))  # type: ignore[misc]
        for name in ("first", "second")
    ]
    broker.start()
    try:
        for worker in workers:
            worker.start()
        for number in range(2):
            source = tmp_path / f"{number}.txt"
            source.write_text("line\n")
            config = {
                "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
                "tasks.max": "1",
                "file": str(source),
                "topic": "lines",
            }
            body = {"name": f"source-{number}", "config": config}
            wait_until(lambda body=body: answer(f"{workers[0].url}/connectors", body), "created")  # type: ignore[misc]

        def running_on() -> set[str]:
            statuses = [answer(f"{workers[0].url}/connectors/source-{n}/status") for n in range(2)]
            tasks = [task for status in statuses if status for task in status["tasks"]]
            running = {task["worker_id"] for task in tasks if task["state"] == "RUNNING"}
            return running if len(tasks) == 2 else set()

        wait_until(lambda: len(running_on()) == 2, "each worker runs a task")
        listed = kafka_tools("kafka-groups", "--bootstrap-server", broker.bootstrap_servers, "--list")
        assert ["kafka-connect", "Classic", "connect"] in [line.split() for line in listed.splitlines()]
        workers[1].kill()
        wait_until(lambda: running_on() == {workers[0].url.removeprefix("http://")}, "the other one runs both tasks")
    finally:
        for worker in workers:
            worker.kill()
        broker.stop()
