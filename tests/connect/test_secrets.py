"""Secrets in a connector's error messages are shown to nobody."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from broker.client import ClientConfig
from broker.client.blocking import BatchConsumer
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.worker import ConnectWorker

NUMBERS, ROWS = "org.toys.NumbersConnector", "org.toys.RowsConnector"
TOKEN = "t0ken-that-nobody-may-see"


@pytest.fixture(scope="module")
def worker(tidegate_broker: TidegateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectWorker]:
    made = ConnectWorker(
        tmp_path_factory.mktemp("secrets"), tidegate_broker.bootstrap_servers, name=f"w{uuid.uuid4().hex[:8]}"
    )
    made.start()
    yield made
    made.stop()
    assert TOKEN not in made.process.log.read_text()


def test_neither_the_status_nor_the_log_shows_a_secret(worker: ConnectWorker) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    worker.create(name, connector_class=NUMBERS, topic=name, die_at="5", token=TOKEN)
    worker.wait_for(name, connector="RUNNING", task0="FAILED")
    shown = requests.get(f"{worker.url}/connectors/{name}/status", timeout=60).text
    assert "cannot go past 5[hidden]" in shown and TOKEN not in shown


def test_a_connectors_error_about_offsets_shows_no_secret(worker: ConnectWorker) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    worker.create(name, connector_class=NUMBERS, topic=name, token=TOKEN)
    worker.ask("PUT", f"/connectors/{name}/stop", expect=204)
    worker.wait_for(name, connector="STOPPED")
    for offset, words in ((-1, "there is no such offset[hidden]"), (-2, "no connection to //user:[hidden]@host")):
        body = {"offsets": [{"partition": {"numbers": name}, "offset": {"n": offset}}]}
        answer = requests.patch(f"{worker.url}/connectors/{name}/offsets", json=body, timeout=60)
        assert answer.status_code >= 400
        assert words in answer.text and TOKEN not in answer.text


def test_a_validation_shows_no_secret(worker: ConnectWorker) -> None:
    config = {"connector.class": NUMBERS, "name": "n", "topic": "t", "refuse": "true", "token": TOKEN}
    answer = requests.put(f"{worker.url}/connector-plugins/{NUMBERS}/config/validate", json=config, timeout=60).text
    assert "the outside world says no[hidden]" in answer and TOKEN not in answer


def test_a_dead_letter_shows_no_secret(worker: ConnectWorker, tmp_path: Path) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    worker.fill(name, 10)
    config = {
        "connector.class": ROWS,
        "topics": name,
        "file": str(tmp_path / "out"),
        "report.at.flush": "3",
        "token": TOKEN,
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "errors.deadletterqueue.topic.name": f"{name}-dead",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    worker.ask("POST", "/connectors", {"name": f"{name}-rows", "config": config}, expect=201)
    wait_until(lambda: worker.committed(f"{name}-rows") == {name: 10}, "all rows in the sink")
    with BatchConsumer(ClientConfig(worker.properties["bootstrap.servers"])) as consumer:
        consumer.assign([(f"{name}-dead", 0)])
        consumer.seek_to_beginning((f"{name}-dead", 0))
        payloads: list[bytes] = []

        def read() -> bool:
            for part in consumer.fetch(max_wait_ms=200):
                payloads.extend(value or b"" for record in part.records() for _, value in record.headers)
            return bool(payloads)

        wait_until(read, "the dead letter")
    said = b"\n".join(payloads)
    assert b"this one is not wanted[hidden]" in said and TOKEN.encode() not in said
