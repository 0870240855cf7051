"""Managed subscriptions, over a client generated from the proto file and the Tooling API."""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
import requests

from tests.events.fronts.pubsub.test_service import TOPIC, Client, refused, stubs
from tests.support.events import EventsThread

__all__ = ["stubs"]


@pytest.fixture(scope="module")
def client(service: EventsThread, stubs: Any) -> Iterator[Client]:
    made = Client(service, stubs, tls=False)
    yield made
    made.channel.close()


class Tooling:
    def __init__(self, service: EventsThread) -> None:
        self.url = f"{service.url}/services/data/v62.0/tooling"
        self.headers = {"Authorization": f"Bearer {service.token()}"}

    def call(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        answer = requests.request(
            method, f"{self.url}/{path}", json=body, params=query, headers=self.headers, timeout=60
        )
        return answer.status_code, answer.json() if answer.content else None

    def define(self, name: str, **metadata: str) -> str:
        body = {"FullName": name, "Metadata": {"label": name, "topicName": TOPIC, **metadata}}
        status, said = self.call("POST", "sobjects/ManagedEventSubscription", body)
        assert (status, said["success"]) == (201, True), said
        return str(said["id"])


@pytest.fixture(scope="module")
def tooling(service: EventsThread) -> Tooling:
    return Tooling(service)


@pytest.fixture
def name(tooling: Tooling) -> str:
    made = f"M{uuid.uuid4().hex}"
    tooling.define(made, defaultReplay="LATEST", errorRecoveryReplay="EARLIEST")
    return made


class Managed:
    """A running managed subscription."""

    def __init__(self, client: Client, count: int, **named: str) -> None:
        self.client = client
        self.asked: queue.Queue[Any] = queue.Queue()
        self.ask(num_requested=count, **named)
        self.responses = client.stub.ManagedSubscribe(iter(self.asked.get, None), metadata=client.metadata)

    def ask(self, **fields: Any) -> None:
        self.asked.put(self.client.pb.ManagedFetchRequest(**fields))

    def commit(self, replay_id: bytes, **more: Any) -> Any:
        """The answer to a commit."""
        said = str(uuid.uuid4())
        self.ask(commit_replay_id_request={"commit_request_id": said, "replay_id": replay_id}, **more)
        for response in self.responses:
            if response.HasField("commit_response"):
                assert response.commit_response.commit_request_id == said
                return response.commit_response
        raise AssertionError("the stream ended")

    def events(self, count: int) -> list[Any]:
        events: list[Any] = []
        while len(events) < count:
            events += next(self.responses).events
        return events

    def end(self) -> None:
        self.asked.put(None)
        self.responses.cancel()


def ids(events: list[Any]) -> list[str]:
    return [event.event.id for event in events]


def test_a_subscription_goes_on_after_what_was_committed(client: Client, name: str) -> None:
    first = Managed(client, 3, developer_name=name)
    assert not next(first.responses).events
    client.publish("m-1", "m-2", "m-3")
    events = first.events(3)
    answer = first.commit(events[1].replay_id)
    assert (answer.error.msg, answer.replay_id) == ("", events[1].replay_id)
    assert answer.process_time > 1_600_000_000_000
    first.end()
    second = Managed(client, 10, developer_name=name.upper())
    assert ids(second.events(1)) == ["m-3"]
    second.end()


def test_a_subscription_without_commits_begins_where_its_definition_says(client: Client, tooling: Tooling) -> None:
    client.publish("kept")
    made = f"E{uuid.uuid4().hex}"
    said = tooling.define(made, defaultReplay="EARLIEST")
    stream = Managed(client, 1, subscription_id=said)
    assert stream.events(1)[0].replay_id == b"\0" * 7 + b"\1" + b"\0" * 2
    stream.end()


def test_keepalives_can_be_committed_and_every_response_has_a_latest_replay_id(client: Client, name: str) -> None:
    stream = Managed(client, 5, developer_name=name)
    keepalive = next(stream.responses)
    assert (len(keepalive.latest_replay_id), len(keepalive.events)) == (10, 0)
    assert not stream.commit(keepalive.latest_replay_id).HasField("error")
    assert not stream.commit(keepalive.latest_replay_id[:8]).HasField("error")
    stream.end()
    client.publish("after")
    again = Managed(client, 5, developer_name=name)
    assert ids(again.events(1)) == ["after"]
    again.end()


def test_a_commit_that_cannot_be_kept_says_why_and_the_stream_goes_on(client: Client, name: str) -> None:
    stream = Managed(client, 5, developer_name=name)
    beyond = stream.commit(b"\0\0\x7f\0\0\0\0\0\0\0")
    assert (beyond.error.code, "was not delivered" in beyond.error.msg) == (client.pb.ErrorCode.COMMIT, True)
    assert "it is 3 bytes (616263)" in stream.commit(b"abc").error.msg
    client.publish("goes-on")
    assert ids(stream.events(1)) == ["goes-on"]
    stream.end()


def test_a_newer_stream_takes_the_subscription_over(client: Client, name: str) -> None:
    older = Managed(client, 5, developer_name=name)
    next(older.responses)
    newer = Managed(client, 5, developer_name=name)
    next(newer.responses)
    assert refused(lambda: list(older.responses)) == (grpc.StatusCode.ABORTED, "managed.subscription.taken.over")
    newer.end()


def test_a_stopped_subscription_ends_its_stream_and_takes_none(client: Client, tooling: Tooling, name: str) -> None:
    stream = Managed(client, 5, developer_name=name)
    next(stream.responses)
    _, result = tooling.call(
        "GET",
        "query",
        q=f"SELECT Id, DeveloperName, Metadata FROM ManagedEventSubscription WHERE DeveloperName='{name}' LIMIT 1",
    )
    assert result["size"] == 1
    (record,) = result["records"]
    assert (record["Metadata"]["topicName"], record["Metadata"]["state"]) == (TOPIC, "RUN")
    path = f"sobjects/ManagedEventSubscription/{record['Id']}"
    assert tooling.call("PATCH", path, {"Metadata": record["Metadata"] | {"state": "STOP"}})[0] == 204
    stopped = (grpc.StatusCode.FAILED_PRECONDITION, "managed.subscription.config.stopped")
    assert refused(lambda: list(stream.responses)) == stopped
    assert refused(lambda: list(Managed(client, 5, developer_name=name).responses)) == stopped
    assert tooling.call("PATCH", path, {"Metadata": record["Metadata"]})[0] == 204
    stream = Managed(client, 5, subscription_id=record["Id"])
    next(stream.responses)
    assert tooling.call("DELETE", path)[0] == 204
    deleted = (grpc.StatusCode.FAILED_PRECONDITION, "managed.subscription.config.deleted")
    assert refused(lambda: list(stream.responses)) == deleted
    for named, by in (
        ({"developer_name": name}, "developer.name"),
        ({"subscription_id": record["Id"]}, "subscription.id"),
    ):
        missing = (grpc.StatusCode.NOT_FOUND, f"managed.subscription.{by}.not.found")
        assert refused(lambda message=named: list(Managed(client, 5, **message).responses)) == missing


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ({}, "id.or.developer.name.empty"),
        ({"subscription_id": "18x000000000001", "developer_name": "Both"}, "id.or.developer.name.empty"),
        ({"subscription_id": "18x"}, "subscription.id.invalid"),
        ({"num_requested": -1}, "fetch.request.events.invalid"),
        ({"num_requested": 0}, "fetch.request.invalid"),
        ({"commit_replay_id_request": {"replay_id": b"\0" * 10}}, "fetch.request.commit.request.restricted"),
    ],
)
def test_a_first_request_that_none_could_be_is_refused(
    client: Client, name: str, first: dict[str, Any], code: str
) -> None:
    named = {} if not first or "subscription_id" in first else {"developer_name": name}
    request = client.pb.ManagedFetchRequest(**({"num_requested": 1} | named | first))
    responses = client.stub.ManagedSubscribe(iter([request]), metadata=client.metadata)
    assert refused(lambda: list(responses)) == (grpc.StatusCode.INVALID_ARGUMENT, f"managed.subscription.{code}")


def test_a_stale_position_follows_the_error_recovery_replay(
    service: EventsThread, client: Client, tooling: Tooling, name: str
) -> None:
    client.publish("s-1", "s-2")
    stream = Managed(client, 5, developer_name=name)
    latest = next(stream.responses).latest_replay_id
    stream.commit(latest)
    stream.end()
    kept = len(service.memory_log.topics["Order_Shipped__e"]) + 2
    client.publish("s-3", "s-4", "s-5")
    service.memory_log.starts["Order_Shipped__e"] = kept
    try:
        again = Managed(client, 5, developer_name=name)
        assert ids(again.events(1)) == ["s-5"]
        again.end()
    finally:
        service.memory_log.starts["Order_Shipped__e"] = 1


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"topicName": "Order_Shipped__e"}, "topicName"),
        ({"defaultReplay": "CUSTOM"}, "defaultReplay"),
        ({"state": "PAUSED"}, "state"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_definition_that_none_could_have_is_refused(tooling: Tooling, metadata: dict[str, str], said: str) -> None:
    body = {"FullName": "Refused", "Metadata": {"label": "x", "topicName": TOPIC} | metadata}
    status, (error,) = tooling.call("POST", "sobjects/ManagedEventSubscription", body)
    assert (status, error["errorCode"], said in error["message"]) == (400, "FIELD_INTEGRITY_EXCEPTION", True)


@pytest.mark.parametrize(
    "query",
    ["", "DELETE", "SELECT Id FROM ManagedEventSubscription WHERE x", "SELECT Nope FROM ManagedEventSubscription"],
)
def test_a_query_that_is_none_is_refused(tooling: Tooling, name: str, query: str) -> None:
    status, (error,) = tooling.call("GET", "query", q=query)
    assert (status, error["errorCode"]) == (400, "MALFORMED_QUERY")


@pytest.fixture
def shared(tooling: Tooling) -> str:
    made = f"S{uuid.uuid4().hex}"
    body = {"label": made, "topicName": TOPIC, "shared": True}
    assert tooling.call("POST", "sobjects/ManagedEventSubscription", {"FullName": made, "Metadata": body})[0] == 201
    return made


def test_workers_of_a_shared_subscription_get_each_event_once(client: Client, shared: str) -> None:
    workers = [Managed(client, 5, developer_name=shared) for _ in range(4)]
    for worker in workers:
        next(worker.responses)
    numbers = [f"w-{number}" for number in range(20)]
    client.publish(*numbers)
    got = [worker.events(5) for worker in workers]
    assert sorted(ids([event for events in got for event in events])) == sorted(numbers)
    for worker, events in zip(workers, got, strict=True):
        assert not worker.commit(events[-1].replay_id).HasField("error")
        worker.end()


def test_uncommitted_events_of_a_worker_go_to_another(client: Client, shared: str) -> None:
    dying = Managed(client, 4, developer_name=shared)
    next(dying.responses)
    client.publish("d-1", "d-2", "d-3", "d-4")
    events = dying.events(4)
    dying.commit(events[0].replay_id)
    other = Managed(client, 10, developer_name=shared)
    next(other.responses)
    client.publish("d-5")
    first = other.events(1)
    other.commit(first[-1].replay_id)
    dying.end()
    again = other.events(3)
    assert ids(first + again) == ["d-5", "d-2", "d-3", "d-4"]
    other.end()
    later = Managed(client, 10, developer_name=shared)
    assert ids(later.events(3)) == ["d-2", "d-3", "d-4"]  # d-5 was committed, and these were not
    later.commit(again[-1].replay_id)
    later.end()
    client.publish("d-6")
    last = Managed(client, 10, developer_name=shared)
    assert ids(last.events(1)) == ["d-6"]
    last.end()


def test_a_worker_that_does_not_commit_gets_no_more_and_holds_up_nobody(
    client: Client, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("events.subscriptions.shared.MOST_OPEN", 3)
    stuck = Managed(client, 100, developer_name=shared)
    next(stuck.responses)
    client.publish("o-1", "o-2", "o-3", "o-4", "o-5")
    events = stuck.events(3)
    assert not next(stuck.responses).events  # a keepalive, though more was asked for and is there
    other = Managed(client, 100, developer_name=shared)
    taken = other.events(2)
    assert ids(taken) == ["o-4", "o-5"]
    other.commit(taken[-1].replay_id)
    other.end()
    assert not stuck.commit(events[0].replay_id).HasField("error")
    client.publish("o-6")
    assert ids(stuck.events(1)) == ["o-6"]
    stuck.end()


def test_the_state_of_a_shared_subscription_does_not_grow_with_its_commits(
    service: EventsThread, client: Client, shared: str
) -> None:
    first = Managed(client, 1, developer_name=shared)
    next(first.responses)
    client.publish("k-0")
    (event,) = first.events(1)
    second = Managed(client, 1, developer_name=shared)
    next(second.responses)
    for number in range(1, 30):
        client.publish(f"k-{number}")
        (taken,) = second.events(1)
        second.commit(taken.replay_id, num_requested=1)
    kept = service.run(service.server.state.get(f"managed-position/{shared.lower()}"))
    number = int.from_bytes(event.replay_id[:8])
    assert (kept["replayId"], kept["open"], kept["next"]) == (number - 1, [number], number + 30)
    first.end()
    second.end()
    again = Managed(client, 5, developer_name=shared)
    assert ids(again.events(1)) == ["k-0"]
    client.publish("k-30")
    assert ids(again.events(1)) == ["k-30"]
    again.end()


def test_one_server_distributes_a_shared_subscription_until_its_lease_ends(
    service: EventsThread, client: Client, shared: str
) -> None:
    managed, now = service.server.managed, time.time_ns() // 1_000_000
    assert service.run(managed.lease(shared.lower(), "another server", now, 60_000))
    elsewhere = (grpc.StatusCode.UNAVAILABLE, "managed.subscription.elsewhere")
    assert refused(lambda: list(Managed(client, 5, developer_name=shared).responses)) == elsewhere
    assert service.run(managed.lease(shared.lower(), "another server", now, -1))
    worker = Managed(client, 5, developer_name=shared)
    next(worker.responses)
    client.publish("here")
    assert ids(worker.events(1)) == ["here"]
    worker.end()


def test_a_position_before_the_first_event_is_kept(tmp_path_factory: pytest.TempPathFactory, stubs: Any) -> None:
    with EventsThread(tmp_path_factory.mktemp("first"), **{"pubsub.keepalive.ms": 300}) as service:
        service.define()
        client, tooling = Client(service, stubs, tls=False), Tooling(service)
        tooling.define("First")
        stream = Managed(client, 5, developer_name="First")
        assert not stream.commit(next(stream.responses).latest_replay_id).HasField("error")
        stream.end()
        client.publish("first of all")
        again = Managed(client, 5, developer_name="First")
        assert ids(again.events(1)) == ["first of all"]
        again.end()
        client.channel.close()
