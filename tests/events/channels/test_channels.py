"""Custom channels over a real broker: two events servers, clients of both protocols, and a Kafka consumer."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest
import requests

from broker.client import BatchProducer
from events.errors import BusUnavailable
from tests.events.fronts.cometd.test_front import Bayeux
from tests.events.fronts.pubsub.test_service import Client, stubs
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.events import ORDER_SHIPPED, EventsThread

__all__ = ["stubs"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TidegateBroker]:
    made = TidegateBroker(tmp_path_factory.mktemp("broker"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def service(broker: TidegateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventsThread]:
    with EventsThread(
        tmp_path_factory.mktemp("events"),
        real="log",
        **{"bootstrap.servers": broker.bootstrap_servers, "pubsub.keepalive.ms": 300},
    ) as running:
        running.define()
        running.define(replace(ORDER_SHIPPED, name="Order_Returned__e"))
        yield running


class Org:
    """The Tooling API and publishing, as an administrator's script uses them."""

    def __init__(self, service: EventsThread) -> None:
        self.base = f"{service.url}/services/data/v62.0"
        self.headers = {"Authorization": f"Bearer {service.token()}"}

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = requests.request(method, f"{self.base}/{path}", json=body, headers=self.headers, timeout=60)
        return answer.status_code, answer.json() if answer.content else None

    def channel(self, **more: str) -> str:
        name = f"C{uuid.uuid4().hex}__chn"
        metadata = {"channelType": "event", "label": "A channel"} | more
        status, said = self.call(
            "POST", "tooling/sobjects/PlatformEventChannel", {"FullName": name, "Metadata": metadata}
        )
        assert (status, said["success"]) == (201, True), said
        return name

    def member(self, channel: str, event: str, expression: str | None = None) -> tuple[int, Any]:
        name = f"{channel.removesuffix('__chn')}_chn_{event.removesuffix('__e')}_e"
        metadata = {"eventChannel": channel, "selectedEntity": event, "filterExpression": expression}
        return self.call(
            "POST", "tooling/sobjects/PlatformEventChannelMember", {"FullName": name, "Metadata": metadata}
        )

    def publish(self, *orders: tuple[str, str, float]) -> None:
        records = [
            {"attributes": {"type": kind}, "Order_Number__c": number, "Amount__c": amount}
            for kind, number, amount in orders
        ]
        _, answer = self.call("POST", "composite/sobjects", {"records": records})
        assert all(result["success"] for result in answer), answer


@pytest.fixture(scope="module")
def org(service: EventsThread) -> Org:
    return Org(service)


SHIPPED, RETURNED = "Order_Shipped__e", "Order_Returned__e"


def receive(client: Bayeux, count: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    until = time.monotonic() + 60
    while len(events) < count and time.monotonic() < until:
        events += [message for message in client.connect(1000) if "data" in message]
    return events


def test_a_channel_carries_what_its_members_let_through(service: EventsThread, org: Org, stubs: Any) -> None:
    channel = org.channel()
    org.publish((SHIPPED, "before", 99))
    assert org.member(channel, SHIPPED, "Amount__c > 10 OR Order_Number__c LIKE 'vip%'")[0] == 201
    assert org.member(channel, RETURNED)[0] == 201
    path = f"/event/{channel}"
    cometd, pubsub = Bayeux(service), Client(service, stubs, tls=False)
    message = {"channel": "/meta/subscribe", "clientId": cometd.id, "subscription": path}
    assert cometd.send(message | {"ext": {"replay": {path: -2}}})[0]["successful"]
    org.publish(
        (SHIPPED, "small", 1),
        (SHIPPED, "large", 11),
        (SHIPPED, "VIP-1", 1),
        (RETURNED, "back", 0),
        (SHIPPED, "tiny", 2),
    )
    messages = receive(cometd, 3)
    shown = [(each["data"]["event"]["EventApiName"], each["data"]["payload"]["Order_Number__c"]) for each in messages]
    assert sorted(shown) == [(RETURNED, "back"), (SHIPPED, "VIP-1"), (SHIPPED, "large")]
    assert shown.index((SHIPPED, "large")) < shown.index((SHIPPED, "VIP-1"))
    ids = [each["data"]["event"]["replayId"] for each in messages]
    assert ids == sorted(set(ids))
    earliest = pubsub.pb.FetchRequest(topic_name=path, num_requested=10, replay_preset=pubsub.pb.ReplayPreset.EARLIEST)
    responses, asked = pubsub.subscribe(earliest)
    assert pubsub.numbers(responses, 3) == [number for _, number in shown]
    asked.put(None)
    topic = pubsub.stub.GetTopic(pubsub.pb.TopicRequest(topic_name=path), metadata=pubsub.metadata)
    assert (topic.topic_name, topic.can_publish, topic.can_subscribe) == (path, False, True)
    pubsub.channel.close()


def test_another_server_takes_a_channel_over_and_loses_and_repeats_nothing(
    broker: TidegateBroker, service: EventsThread, org: Org, tmp_path: Path
) -> None:
    channel = org.channel()
    assert org.member(channel, SHIPPED, "Amount__c >= 0")[0] == 201
    org.publish(*((SHIPPED, f"one-{number}", number) for number in range(20)))
    with EventsThread(tmp_path, real="log", **{"bootstrap.servers": broker.bootstrap_servers}) as other:
        other.schemas = service.schemas
        other.server.catalog._schemas = service.schemas
        org.publish(*((SHIPPED, f"two-{number}", number) for number in range(20)))
        cometd = Bayeux(other)
        path = f"/event/{channel}"
        message = {"channel": "/meta/subscribe", "clientId": cometd.id, "subscription": path}
        assert cometd.send(message | {"ext": {"replay": {path: -2}}})[0]["successful"]
        assert len(receive(cometd, 40)) == 40
    org.publish(*((SHIPPED, f"three-{number}", number) for number in range(20)))
    cometd = Bayeux(service)
    assert cometd.send(message | {"clientId": cometd.id, "ext": {"replay": {path: -2}}})[0]["successful"]
    numbers = [each["data"]["payload"]["Order_Number__c"] for each in receive(cometd, 60)]
    assert numbers == [f"{word}-{number}" for word in ("one", "two", "three") for number in range(20)]


def test_an_event_that_is_sent_again_to_another_server_is_stored_once(
    broker: TidegateBroker, service: EventsThread, org: Org, tmp_path: Path
) -> None:
    with EventsThread(tmp_path, real="log", **{"bootstrap.servers": broker.bootstrap_servers}) as other:
        other.schemas = service.schemas
        other.server.catalog._schemas = service.schemas
        servers = [org, Org(other)]
        for number in range(6):
            body = {"Order_Number__c": f"sent twice {number}"}
            answers = [
                requests.post(
                    f"{each.base}/sobjects/{SHIPPED}",
                    json=body,
                    headers=each.headers | {"Idempotency-Key": f"twice-{number}"},
                    timeout=60,
                )
                for each in (servers if number % 2 else reversed(servers))
            ]
            assert [answer.status_code for answer in answers] == [201, 201]
            first, second = (answer.json() for answer in answers)
            assert first == second


def test_a_changed_filter_holds_for_what_is_published_later(service: EventsThread, org: Org) -> None:
    channel = org.channel(staleReplay="earliest")
    _, made = org.member(channel, RETURNED, "Express__c = true")
    record = f"tooling/sobjects/PlatformEventChannelMember/{made['id']}"
    _, body = org.call("GET", record)
    metadata = body["Metadata"] | {"filterExpression": "Express__c = false"}
    assert org.call("PATCH", record, {"Metadata": metadata})[0] == 204
    org.publish((RETURNED, "later", 1))
    path = f"/event/{channel}"
    cometd = Bayeux(service)
    message = {"channel": "/meta/subscribe", "clientId": cometd.id, "subscription": path}
    stale = {"ext": {"replay": {path: 10**6}}}  # the channel says what that leads to
    assert cometd.send(message | stale)[0]["successful"]
    assert [each["data"]["payload"]["Order_Number__c"] for each in receive(cometd, 1)] == ["later"]
    status, (error,) = org.call("DELETE", f"tooling/sobjects/PlatformEventChannel/{channel_id(org, channel)}")
    assert (status, "delete its members first" in error["message"]) == (400, True)
    assert org.call("DELETE", record)[0] == 204
    assert org.call("DELETE", f"tooling/sobjects/PlatformEventChannel/{channel_id(org, channel)}")[0] == 204
    assert "does not exist" in cometd.send(message)[0]["error"] or cometd.send(message)[0]["successful"] is False


def test_a_member_that_is_made_again_begins_then(service: EventsThread, org: Org) -> None:
    channel = org.channel()
    _, made = org.member(channel, SHIPPED)
    org.publish((SHIPPED, "first", 1))
    cometd = Bayeux(service)
    path = f"/event/{channel}"
    message = {"channel": "/meta/subscribe", "clientId": cometd.id, "subscription": path}
    assert cometd.send(message | {"ext": {"replay": {path: -2}}})[0]["successful"]
    assert [each["data"]["payload"]["Order_Number__c"] for each in receive(cometd, 1)] == ["first"]
    assert org.call("DELETE", f"tooling/sobjects/PlatformEventChannelMember/{made['id']}")[0] == 204
    relays = service.server._relays
    assert relays is not None
    wait_until(lambda: channel not in relays._running and not relays._ending, "the channel's relay has ended")
    org.publish((SHIPPED, "between", 2))
    assert org.member(channel, SHIPPED)[0] == 201
    org.publish((SHIPPED, "again", 3))
    assert [each["data"]["payload"]["Order_Number__c"] for each in receive(cometd, 1)] == ["again"]


def test_a_producer_that_cannot_start_stalls_no_channel(
    service: EventsThread, org: Org, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = []

    class Failing(BatchProducer):
        async def start(self) -> Self:
            if not failed:
                failed.append(self)
                raise BusUnavailable("The coordinator is away for a moment")
            return await super().start()

    monkeypatch.setattr("events.channels.relay.BatchProducer", Failing)
    channel = org.channel()
    assert org.member(channel, SHIPPED)[0] == 201
    org.publish((SHIPPED, "in spite of it", 1))
    cometd = Bayeux(service)
    path = f"/event/{channel}"
    message = {"channel": "/meta/subscribe", "clientId": cometd.id, "subscription": path}
    assert cometd.send(message | {"ext": {"replay": {path: -2}}})[0]["successful"]
    assert [each["data"]["payload"]["Order_Number__c"] for each in receive(cometd, 1)] == ["in spite of it"]
    assert len(failed) == 1


def channel_id(org: Org, name: str) -> str:
    developer_name = name.removesuffix("__chn")
    query = f"SELECT Id FROM PlatformEventChannel WHERE DeveloperName = '{developer_name}'"
    _, result = org.call("GET", f"tooling/query?q={query}")
    return str(result["records"][0]["Id"])


def test_members_that_none_could_have_are_refused(org: Org) -> None:
    channel = org.channel()
    for event, expression, said in (
        (SHIPPED, "Amount__c >", "line 1 column 11"),
        (SHIPPED, "Nope__c = 1", "has no field Nope__c"),
        ("Missing__e", None, "is no platform event"),
    ):
        status, (error,) = org.member(channel, event, expression)
        assert (status, error["errorCode"]) == (400, "FIELD_INTEGRITY_EXCEPTION")
        assert said in error["message"]
    assert "Unable to find the specified channel" in org.member("Missing__chn", SHIPPED)[1][0]["message"]
    assert org.member(channel, SHIPPED)[0] == 201
    assert "exists already" in org.member(channel, SHIPPED)[1][0]["message"]
