"""Kafka Connect's workers and ours in one group, led by either: each runs its share, and requests are forwarded between
them.
"""

from __future__ import annotations

from functools import partial

import pytest
import requests

from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaConnect
from tests.servers.process import answer_when, wait_until
from tests.support.worker import ConnectWorker, settled

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SETTINGS = {
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": "0",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
}


def running_on(url: str, names: list[str]) -> dict[str, str]:
    """The worker of each connector's task, where all of them run."""
    states = {}
    for name in names:
        answer = requests.get(f"{url}/connectors/{name}/status", timeout=60)
        shown = answer.json() if answer.ok else {"connector": {"state": "?"}, "tasks": []}
        if shown["connector"]["state"] == "RUNNING" and [task["state"] for task in shown["tasks"]] == ["RUNNING"]:
            states[name] = shown["tasks"][0]["worker_id"]
    return states if len(states) == len(names) else {}


def put(url: str, name: str, config: dict[str, str]) -> None:
    """Create or change a connector, again where the group is rebalancing, as every client of Connect does."""

    def done() -> bool:
        answer = requests.put(f"{url}/connectors/{name}/config", json=config, timeout=60)
        assert answer.status_code in (200, 201, 409), answer.text
        return answer.status_code != 409

    wait_until(done, f"{name} taken")


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.parametrize(
    ("first", "protocol"),
    [
        ("theirs", "sessioned"),
        pytest.param("ours", "sessioned", marks=pytest.mark.long),
        pytest.param("theirs", "eager", marks=pytest.mark.long),
        pytest.param("ours", "eager", marks=pytest.mark.long),
    ],
)
def test_a_group_of_both_shares_and_either_leads(first, protocol, tidegate_broker, tmp_path):
    group = f"mixed-{first}-{protocol}"
    topics = {f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")}
    settings = {**SETTINGS, **topics, "group.id": group, "connect.protocol": protocol}
    theirs = or_skip(lambda: KafkaConnect(tmp_path / "theirs", tidegate_broker.bootstrap_servers, settings))
    ours = ConnectWorker(tmp_path / "ours", tidegate_broker.bootstrap_servers, settings)
    order = [theirs, ours] if first == "theirs" else [ours, theirs]
    names = [f"{group}-{n}" for n in range(4)]
    (tmp_path / "lines").write_text("one\n")
    config = {"connector.class": SOURCE, "file": str(tmp_path / "lines"), "topic": group, "tasks.max": "1"}
    workers = {worker.url.removeprefix("http://") for worker in (theirs,)}
    try:
        for worker in order:
            worker.start()
        workers |= {ours.url.removeprefix("http://")}
        # Through both, so that one of the requests is passed on whoever leads, and tasks are planned on both.
        for n, name in enumerate(names):
            put(order[n % 2].url, name, config)
        wait_until(lambda: set(running_on(ours.url, names).values()) == workers, "both run tasks")
        wait_until(lambda: running_on(theirs.url, names) == running_on(ours.url, names) != {}, "both say the same")
        for name in names:  # whoever runs it, each is asked to restart it
            for worker in order:
                answer = requests.post(f"{worker.url}/connectors/{name}/tasks/0/restart", timeout=60)
                assert answer.status_code in (204, 409), answer.text
        put(order[1].url, names[0], {**config, "topic": f"{group}-other"})
        planned = f"{ours.url}/connectors/{names[0]}/tasks"
        wait_until(lambda: f'"{group}-other"' in requests.get(planned, timeout=60).text, "the task is planned anew")
        # The leader goes, and the other one takes over its part.
        order[0].stop()
        left = order[1].url.removeprefix("http://")
        wait_until(lambda: set(running_on(order[1].url, names).values()) == {left}, "the other one runs all")
        delete = partial(requests.delete, f"{order[1].url}/connectors/{names[1]}", timeout=60)
        answer = answer_when(settled, delete, "deleted")
        assert answer.status_code == 204, answer.text
    finally:
        for worker in order:
            worker.stop()
