"""The service over a real Kafka and a real registry, with clients by other authors."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from confluent_kafka import Consumer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from registry.server.config import RegistryConfig
from registry.server.service import RegistryServer
from tests.servers.kafka import KafkaBroker
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.events import EventsThread
from tidegate.kit.config import parse

XML = """<?xml version="1.0" encoding="UTF-8"?>
<CustomObject xmlns="http://soap.sforce.com/2006/04/metadata">
    <deploymentStatus>Deployed</deploymentStatus>
    <eventType>HighVolume</eventType>
    <fields>
        <fullName>Carrier__c</fullName><label>Carrier</label><length>8</length>
        <type>Text</type><required>true</required>
    </fields>
    <fields>
        <fullName>Minutes__c</fullName><label>Minutes</label><precision>6</precision><scale>0</scale><type>Number</type>
    </fields>
    <label>Flight Delayed</label>
    <pluralLabel>Flights Delayed</pluralLabel>
    <publishBehavior>PublishImmediately</publishBehavior>
</CustomObject>"""


@contextmanager
def running_registry(bootstrap_servers: str) -> Iterator[str]:
    config = parse(
        RegistryConfig, {"listeners": "http://127.0.0.1:0", "kafkastore.bootstrap.servers": bootstrap_servers}
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = RegistryServer(config)
    try:
        yield asyncio.run_coroutine_threadsafe(server.start(), loop).result(60)["registry"]
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def registry_url(apache_kafka: KafkaBroker) -> Iterator[str]:
    with running_registry(apache_kafka.bootstrap_servers) as url:
        yield url


def start(kafka: KafkaBroker | TidegateBroker, registry_url: str, data: Path) -> EventsThread:
    where = {"bootstrap.servers": kafka.bootstrap_servers, "schema.registry.url": registry_url}
    return EventsThread(data, real=True, **where)


def call(service: EventsThread, method: str, path: str, **more: Any) -> Any:
    headers = {"Authorization": f"Bearer {service.token()}"} | more.pop("headers", {})
    return requests.request(method, service.url + path, headers=headers, timeout=60, **more)


def define(service: EventsThread, name: str, xml: str = XML) -> Any:
    headers = {"Content-Type": "application/xml"}
    return call(service, "POST", f"/tidegate/v1/events?name={name}", data=xml.encode(), headers=headers)


def publish(service: EventsThread, name: str, *minutes: int) -> None:
    records = [{"attributes": {"type": name}, "Carrier__c": "UA", "Minutes__c": number} for number in minutes]
    answer = call(service, "POST", "/services/data/v60.0/composite/sobjects", json={"records": records})
    assert all(result["success"] for result in answer.json()), answer.text


class Follower:
    """A Bayeux client that collects events."""

    def __init__(self, service: EventsThread, name: str, replay: int) -> None:
        self._service, self._channel = service, f"/event/{name}"
        handshake = {"channel": "/meta/handshake", "supportedConnectionTypes": ["long-polling"]}
        self._id = self._send(handshake)[0]["clientId"]
        subscribe = {
            "channel": "/meta/subscribe",
            "subscription": self._channel,
            "ext": {"replay": {self._channel: replay}},
        }
        self.subscribed = self._send(subscribe | {"clientId": self._id})[0]

    def _send(self, message: dict[str, Any]) -> Any:
        return call(self._service, "POST", "/cometd/60.0", json=message).json()

    def receive(self, count: int) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        deadline = time.monotonic() + 60
        while len(events) < count and time.monotonic() < deadline:
            connect = {"channel": "/meta/connect", "clientId": self._id, "connectionType": "long-polling"}
            events += [m["data"] for m in self._send(connect | {"advice": {"timeout": 1000}}) if "data" in m]
        return events


def minutes(events: list[dict[str, Any]]) -> list[float]:
    return [event["payload"]["Minutes__c"] for event in events]


def test_a_definition_lands_in_the_registry_and_its_events_are_an_ordinary_avro_topic(
    apache_kafka: KafkaBroker, registry_url: str, tmp_path: Path
) -> None:
    name = "Flight_Delayed__e"
    with start(apache_kafka, registry_url, tmp_path) as service:
        assert define(service, name).status_code == 201
        publish(service, name, 121, 180)
    with SchemaRegistryClient({"url": registry_url}) as registry:
        registered = registry.get_latest_version(f"{name}-value")
        schema = json.loads(registered.schema.schema_str)
        assert (schema["namespace"], schema["name"]) == ("com.sforce.eventbus", name)
        assert schema["salesforce"]["label"] == "Flight Delayed"
        consumer = Consumer(
            {"bootstrap.servers": apache_kafka.bootstrap_servers, "group.id": "plain", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([name])
        decode = AvroDeserializer(registry)
        events = []
        deadline = time.monotonic() + 60
        while len(events) < 2 and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                events.append(decode(message.value(), SerializationContext(name, MessageField.VALUE)))
                assert len(message.key()) == 36
        consumer.close()
        assert [event["Minutes__c"] for event in events] == [121.0, 180.0]
        assert events[0]["Carrier__c"] == "UA"


def test_replay_goes_on_over_a_restart_of_the_service(
    apache_kafka: KafkaBroker, registry_url: str, tmp_path: Path
) -> None:
    name = "Restarted__e"
    with start(apache_kafka, registry_url, tmp_path) as service:
        define(service, name)
        publish(service, name, 1, 2, 3)
        first = Follower(service, name, -2).receive(3)
        token = service.token()
    assert minutes(first) == [1, 2, 3]
    with start(apache_kafka, registry_url, tmp_path) as service:
        publish(service, name, 4)
        assert service.server.access.session(token).user_name == "developer@tidegate.local"
        assert minutes(Follower(service, name, first[1]["event"]["replayId"]).receive(2)) == [3, 4]
        live = Follower(service, name, -1)
        publish(service, name, 5)
        assert minutes(live.receive(1)) == [5]
        assert (
            Follower(service, name, 99)
            .subscribed["error"]
            .startswith("400::The replayId {99} you provided was invalid")
        )


def test_a_change_that_breaks_readers_is_refused(apache_kafka: KafkaBroker, registry_url: str, tmp_path: Path) -> None:
    name = "Changed__e"
    with start(apache_kafka, registry_url, tmp_path) as service:
        assert define(service, name).status_code == 201
        again = define(service, name)
        more = XML.replace(
            "<label>Flight", "<fields><fullName>Gate__c</fullName><type>Text</type></fields><label>Flight"
        )
        wider = define(service, name, more)
        assert wider.json()["schemaId"] != again.json()["schemaId"]
        fewer = define(
            service,
            name,
            more.replace("Gate__c", "Pier__c").replace(
                "<type>Text</type></fields><label>", "<type>Text</type><required>true</required></fields><label>"
            ),
        )
        assert (fewer.status_code, fewer.json()[0]["errorCode"]) == (409, "INCOMPATIBLE_DEFINITION")
        publish(service, name, 7)
        assert minutes(Follower(service, name, -2).receive(1)) == [7]
        listed = call(service, "GET", "/tidegate/v1/events").json()
        assert name in [event["name"] for event in listed]


def test_a_topic_with_several_partitions_is_refused_by_name(
    apache_kafka: KafkaBroker, registry_url: str, tmp_path: Path
) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": apache_kafka.bootstrap_servers})
    admin.create_topics([NewTopic("Wide__e", 3, 1)])["Wide__e"].result(60)
    with start(apache_kafka, registry_url, tmp_path) as service:
        answer = define(service, "Wide__e")
    assert (answer.status_code, answer.json()[0]["errorCode"]) == (409, "TOPIC_UNFIT")
    assert "Topic Wide__e has 3 partitions" in answer.json()[0]["message"]


def test_no_acknowledged_event_is_lost_when_the_broker_is_killed(tmp_path: Path) -> None:
    name = "Survivor__e"
    kafka = TidegateBroker(tmp_path / "broker")
    kafka.start()
    try:
        with running_registry(kafka.bootstrap_servers) as url, start(kafka, url, tmp_path / "events") as service:
            define(service, name)
            follower = Follower(service, name, -1)
            acknowledged: list[int] = []

            def publisher() -> None:
                for number in range(60):
                    body = {"Carrier__c": "UA", "Minutes__c": number}
                    answer = call(service, "POST", f"/services/data/v60.0/sobjects/{name}", json=body)
                    if answer.status_code == 201:
                        acknowledged.append(number)
                    else:
                        assert answer.json()[0]["errorCode"] == "SERVER_UNAVAILABLE"
                    if number == 20:
                        killed.set()
                        revived.wait(60)

            killed, revived = threading.Event(), threading.Event()
            publishing = threading.Thread(target=publisher)
            publishing.start()
            assert killed.wait(60)
            kafka.kill()
            revived.set()
            kafka.start()
            publishing.join(60)
            got = minutes(follower.receive(len(acknowledged)))
            while acknowledged[-1] not in got:  # what was not acknowledged may have arrived too
                more = minutes(follower.receive(1))
                assert more, f"{acknowledged[-1]} was acknowledged and does not come"
                got += more
            assert len(acknowledged) > 40
            assert [number for number in got if number in acknowledged] == acknowledged
            assert minutes(Follower(service, name, -2).receive(len(got))) == got
    finally:
        kafka.stop()


def test_the_service_loads_no_heavy_library() -> None:
    heavy = ("numpy", "pyarrow", "pandas", "sqlalchemy", "pyspark", "simple_salesforce")
    code = f"import sys, events.server.service, events.fronts.pubsub.service, events.server.grpc_listeners; print([n for n in {heavy} if n in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
