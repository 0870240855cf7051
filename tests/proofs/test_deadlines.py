"""While the log does not answer, clients get an answer within the deadline, and subscribers are moved on afterwards."""

from __future__ import annotations

import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.proofs.test_events_kills import NAME, Clients, Service, judge
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.registries import RegistryProcess

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]

_DEADLINE = {"kafkastore.timeout.ms": "1500", "events.publish.timeout.ms": "1500"}
_PATIENCE_S = 25
"""A client of the tests waits so long, which is less than the timeouts of single requests to the log."""


def test_a_frozen_log(tmp_path: Path) -> None:
    broker = TidegateBroker(tmp_path / "broker")
    broker.start()
    pid = broker.process.pid
    settings = {"kafkastore.bootstrap.servers": broker.bootstrap_servers, "listeners": "http://127.0.0.1:0"}
    registry = RegistryProcess(tmp_path, settings | {"kafkastore.timeout.ms": _DEADLINE["kafkastore.timeout.ms"]})
    service = None
    try:
        publish_timeout = {name: value for name, value in _DEADLINE.items() if name.startswith("events")}
        service = Service(tmp_path, broker, registry.url, publish_timeout)
        clients = Clients(service)
        wait_until(lambda: clients.count >= 20 and clients.pubsub and clients.cometd, "events at both subscribers")

        os.kill(pid, signal.SIGSTOP)
        url = f"{registry.url}/subjects/late/versions"
        event = f"{service.url}/services/data/v60.0/sobjects/{NAME}"
        with ThreadPoolExecutor() as pool:
            registered = pool.submit(requests.post, url, json={"schema": '"string"'}, timeout=_PATIENCE_S)
            published = [
                pool.submit(
                    requests.post,
                    event,
                    json={"Order_Number__c": f"late {n}"},
                    headers={**service.headers, "Idempotency-Key": f"late {n}"},
                    timeout=_PATIENCE_S,
                )
                for n in range(2)
            ]
            refused = registered.result()
            assert (refused.status_code, refused.json()["error_code"]) in ((500, 50001), (500, 50002)), refused.text
            assert {answer.result().status_code for answer in published} == {503}
            assert clients.listening

        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: requests.post(url, json={"schema": '"string"'}, timeout=_PATIENCE_S).ok, "a registration")
        before = clients.count
        wait_until(lambda: clients.count >= before + 20, "published events after it")
        clients.stop_publishing()
        expected = {number for numbers in clients.acknowledged.values() for number in numbers}
        for received in (clients.pubsub, clients.cometd):
            wait_until(lambda received=received: expected <= {number for _, number in received}, "them at a subscriber")
        clients.stop_listening()
        clients.pubsub = [row for row in clients.pubsub if "late" not in row[1]]
        clients.cometd = [row for row in clients.cometd if "late" not in row[1]]
        judge(clients)
        assert clients.broken == Counter()
    finally:
        os.kill(pid, signal.SIGCONT)
        if service is not None:
            service.server.stop()
        registry.end()
        broker.stop()
