"""Three workers on one log share connectors, forward requests, and continue when one of them is killed."""

from __future__ import annotations

import time
import uuid
from functools import partial
from pathlib import Path

import pytest
import requests

from tests.servers.process import ServerFailed, answer_when, wait_until
from tests.support.cluster import WorkerCluster
from tests.support.worker import ConnectWorker, settled

CROWD = "org.toys.CrowdConnector"


@pytest.fixture(
    scope="module",
    params=["tidegate_broker", pytest.param("apache_kafka", marks=[pytest.mark.proof, pytest.mark.servers])],
)
def cluster(request, tmp_path_factory):
    made = WorkerCluster(
        tmp_path_factory.mktemp("cluster"),
        request.getfixturevalue(request.param).bootstrap_servers,
        f"w{uuid.uuid4().hex[:8]}",
        {"scheduled.rebalance.max.delay.ms": "60000"},
    )
    made.start()
    yield made
    made.stop()


def diary(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()]


def leader_of(cluster: WorkerCluster) -> str:
    """The worker that answers what only the leader does, even where it must not pass it on."""

    def leaders() -> list[str]:
        answers = {
            w.url: requests.delete(f"{w.url}/connectors/none?forward=false", timeout=60) for w in cluster.workers
        }
        return [url for url, answer in answers.items() if answer.status_code == 404]

    return answer_when(lambda urls: len(urls) == 1, leaders, "one leader")[0]


def test_a_group_shares_passes_on_and_outlives_its_members(cluster, tmp_path):
    book = tmp_path / "diary"
    leader = leader_of(cluster)
    followers = [w for w in cluster.workers if w.url != leader]

    # Created through one that does not lead, by way of the leader; each gets its share.
    config = {"connector.class": CROWD, "tasks.max": "6", "tasks": "6", "diary": str(book)}
    post = partial(requests.post, json={"name": "crowd", "config": config}, timeout=60)
    created = answer_when(settled, lambda: post(f"{followers[0].url}/connectors"), "the connector created")
    assert (created.status_code, created.headers["Location"]) == (201, f"{followers[0].url}/connectors/crowd")
    cluster.wait_spread("crowd", 2, 2, 2)
    again = post(f"{followers[1].url}/connectors")
    assert (again.status_code, again.json()["message"]) == (409, "Connector crowd already exists")

    # A task is restarted by whoever runs it, whoever is asked.
    for number, worker in enumerate(cluster.workers):
        answer = requests.post(f"{worker.url}/connectors/crowd/tasks/{number}/restart", timeout=60)
        assert answer.status_code == 204, answer.text
    wait_until(lambda: len([line for line in diary(book) if line[0] == "start"]) == 9, "three tasks started again")
    cluster.wait_spread("crowd", 2, 2, 2)
    answer = requests.post(
        f"{followers[0].url}/connectors/crowd/restart?includeTasks=true&onlyFailed=false", timeout=60
    )
    assert answer.status_code == 202 and {t["state"] for t in answer.json()["tasks"]} == {"RESTARTING"}
    wait_until(lambda: len([line for line in diary(book) if line[0] == "start"]) == 15, "all tasks started again")
    cluster.wait_spread("crowd", 2, 2, 2)

    # requests from workers to their leader must be signed
    for path, method in (("tasks", "POST"), ("fence", "PUT")):
        refused = requests.request(method, f"{leader}/connectors/crowd/{path}", json=[], timeout=60)
        assert refused.json() == {"error_code": 400, "message": "Internal request missing required signature"}
    headers = {"X-Connect-Authorization": "AAAA", "X-Connect-Request-Signature-Algorithm": "HmacSHA256"}
    refused = requests.post(f"{leader}/connectors/crowd/tasks", json=[], headers=headers, timeout=60)
    assert (refused.status_code, refused.json()["message"]) == (403, "Internal request contained invalid signature.")

    # One is killed and comes back: its tasks, and no others, are started, where they were.
    before, starts = cluster.places("crowd"), len(diary(book))
    victim = followers[0]
    victim.kill()
    victim.start()
    wait_until(lambda: cluster.places("crowd") == before, "the same places")
    lost = {str(number) for number, worker in before.items() if worker == victim.url.removeprefix("http://")}
    wait_until(lambda: {line[2] for line in diary(book)[starts:] if line[0] == "start"} == lost, "its tasks started")
    assert not [line for line in diary(book)[starts:] if line[0] == "stop"]

    # the leader is killed and not restarted: another worker leads, and the leader's tasks move
    dead = next(worker for worker in cluster.workers if worker.url == leader)
    dead.kill()
    survivors = [worker for worker in cluster.workers if worker is not dead]
    cluster.wait_spread("crowd", 3, 3, at=survivors[0])
    changed = requests.put(f"{survivors[1].url}/connectors/crowd/stop", timeout=60)
    assert changed.status_code == 204, changed.text
    wait_until(lambda: not cluster.running("crowd", survivors[0]), "stopped")
    deleted = requests.delete(f"{survivors[0].url}/connectors/crowd", timeout=60)
    assert deleted.status_code == 204, deleted.text
    wait_until(
        lambda: requests.get(f"{survivors[1].url}/connectors/crowd/status", timeout=60).status_code == 404, "gone"
    )


@pytest.mark.proof
def test_a_worker_that_joins_or_leaves_is_expected(tidegate_broker, tmp_path):
    """The first worker hears of the second long before its next heartbeat, a minute and a half later."""
    slow = {"heartbeat.interval.ms": "90000", "session.timeout.ms": "300000"}
    name = f"w{uuid.uuid4().hex[:8]}"
    cluster = WorkerCluster(tmp_path, tidegate_broker.bootstrap_servers, name, slow, count=2)
    try:
        cluster.workers[0].start()
        time.sleep(4)  # it expects no round any more
        cluster.workers[1].start()
        wait_until(lambda: len(cluster.members()) == 2, "both in the group")

        config = {"connector.class": CROWD, "tasks.max": "2", "tasks": "2", "diary": str(tmp_path / "diary")}
        post = partial(requests.post, json={"name": "crowd", "config": config}, timeout=60)
        answer_when(settled, lambda: post(f"{cluster.workers[0].url}/connectors"), "the connector created")
        cluster.wait_spread("crowd", 1, 1)
        time.sleep(4)
        cluster.workers[1].stop()
        cluster.wait_spread("crowd", 2, timeout_s=60)
    finally:
        cluster.stop()


def test_a_worker_that_wants_more_replicas_than_brokers_names_the_keys(tidegate_broker, tmp_path):
    settings = {"replication.factor.fit": "false"}
    worker = ConnectWorker(tmp_path, tidegate_broker.bootstrap_servers, settings, name=f"w{uuid.uuid4().hex[:8]}")
    with pytest.raises(ServerFailed, match=r"config\.storage\.replication\.factor, .* may be the number of brokers"):
        worker.start()
