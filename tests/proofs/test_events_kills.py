"""Platform events under kill -9: events server and broker die while events are published and followed.

Three publishers send each event until it is acknowledged, two subscribers go on after their last replay id. Seeds that can
be divided by five run over Apache Kafka, the others over our broker. TIDEGATE_SEEDS=3,7-9 chooses seeds.
"""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
import requests

from events.model.definitions import to_avro_text
from events.model.payloads import EventSchema
from events.proto import pubsub_api_pb2 as pb
from tests.events.test_server import running_registry
from tests.proofs import effort, run_seeds, seeds
from tests.servers.kafka import KafkaBroker
from tests.servers.process import ServerProcess, free_ports, wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.events import ORDER_SHIPPED, PASSWORD, USER

pytestmark = [pytest.mark.proof, pytest.mark.timeout(7200)]

SEEDS = seeds(1, 50)
KILLS = effort(3, 6)
NAME = ORDER_SHIPPED.name
TOPIC = f"/event/{NAME}"
SCHEMA = EventSchema(1, to_avro_text(ORDER_SHIPPED))
AWAY = (requests.RequestException, ValueError, KeyError, IndexError)
"""The exceptions that a REST client gets from a server that dies."""


class Service:
    """An events server over a broker, both of which may die, and a session that outlives them."""

    def __init__(self, folder: Path, broker: Any, registry: str, more: Mapping[str, str] | None = None) -> None:
        http, https, pubsub, plain = free_ports(4)
        self.url, self.pubsub = f"http://127.0.0.1:{http}", f"127.0.0.1:{plain}"
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "schema.registry.url": registry,
            "data.dir": str(folder / "events"),
            "http.listen": f"127.0.0.1:{http}",
            "https.listen": f"127.0.0.1:{https}",
            "pubsub.listen": f"127.0.0.1:{pubsub}",
            "pubsub.plain.listen": self.pubsub,
            "pubsub.keepalive.ms": "500",
            **(more or {}),
        }
        file = folder / "events.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        command = [sys.executable, "-m", "tidegate.cli", "serve", "events", str(file)]
        self.server = ServerProcess("the events server", command, log=folder / "events.log", ready=self._answers)
        self.server.start()
        form = {"grant_type": "password", "client_id": "tidegate", "client_secret": PASSWORD}
        form |= {"username": USER, "password": PASSWORD}
        self.token = requests.post(f"{self.url}/services/oauth2/token", data=form, timeout=60).json()["access_token"]
        self.headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        answer = requests.post(
            f"{self.url}/tidegate/v1/events", data=to_avro_text(ORDER_SHIPPED), headers=self.headers, timeout=60
        )
        assert answer.ok, answer.text
        self.schema_id = str(answer.json()["schemaId"])

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.url}/services/data", timeout=2).ok
        except requests.RequestException:
            return False


class Clients:
    """Publishers and subscribers, each in a separate thread; they continue after every error."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.publishing = self.listening = True
        self.acknowledged: dict[str, list[str]] = {"plain": [], "keyed": [], "pubsub": []}
        """Order numbers by publisher, in the order of the acknowledgements."""
        self.pubsub: list[tuple[int, str]] = []
        self.cometd: list[tuple[int, str]] = []
        """(replay id, order number) as they came."""
        self.refused: list[str] = []
        """The errors after which a subscriber can simply continue."""
        self.broken: Counter[str] = Counter()
        """The errors that ended streams of the Pub/Sub subscriber, by code and message."""
        self.waits: list[tuple[float, float]] = []
        """When each event, or block of them, was first sent (time.monotonic), and after how many seconds it was acknowledged."""
        self._publishers = [
            threading.Thread(target=work, daemon=True)
            for work in (lambda: self._rest("plain"), lambda: self._rest("keyed"), self._publish)
        ]
        self._subscribers = [
            threading.Thread(target=work, daemon=True) for work in (self._subscribe, self._follow_cometd)
        ]
        for thread in (*self._publishers, *self._subscribers):
            thread.start()

    @property
    def count(self) -> int:
        """Events acknowledged so far."""
        return sum(map(len, self.acknowledged.values()))

    def stop_publishing(self) -> None:
        self.publishing = False
        for thread in self._publishers:
            thread.join(120)
            assert not thread.is_alive(), "a publisher never got its last acknowledgement"

    def stop_listening(self) -> None:
        self.listening = False
        for thread in self._subscribers:
            thread.join(120)

    def _until(self, sent: Callable[[], bool]) -> None:
        """Send again until it is acknowledged."""
        began = time.monotonic()
        while not sent():
            time.sleep(0.05)
        self.waits.append((began, time.monotonic() - began))

    def _rest(self, kind: str) -> None:
        """``plain`` has no Idempotency-Key: what is sent again may be there twice."""
        with requests.Session() as session:
            session.headers.update(self._service.headers)
            for count in itertools.count(1):
                number = f"{kind}-{count:06d}"
                key = {"Idempotency-Key": f"{kind} {count}"} if kind == "keyed" else {}
                path = f"{self._service.url}/services/data/v60.0/sobjects/{NAME}"  # an id is retried at the same server

                def post(number: str = number, key: dict[str, str] = key, path: str = path) -> bool:
                    try:
                        return (
                            session.post(path, json={"Order_Number__c": number}, headers=key, timeout=20).status_code
                            == 201
                        )
                    except requests.RequestException:
                        return False

                self._until(post)
                self.acknowledged[kind].append(number)
                if not self.publishing:
                    return
                time.sleep(0.005)

    def _publish(self) -> None:
        """Publish events in blocks of five, each event with its own id."""
        for count in itertools.count(1):
            numbers = [f"pubsub-{5 * count + index:06d}" for index in range(5)]
            events = [
                pb.ProducerEvent(
                    id=str(uuid.uuid4()),
                    schema_id=self._service.schema_id,
                    payload=SCHEMA.encode_json({"Order_Number__c": number}, created_ms=0, created_by="005"),
                )
                for number in numbers
            ]
            request = pb.PublishRequest(topic_name=TOPIC, events=events)
            target = self._service.pubsub

            def publish(request: pb.PublishRequest = request, target: str = target) -> bool:
                with grpc.insecure_channel(target) as channel:
                    method = channel.unary_unary(
                        "/eventbus.v1.PubSub/Publish",
                        pb.PublishRequest.SerializeToString,
                        pb.PublishResponse.FromString,
                    )
                    try:
                        answer = method(request, metadata=(("accesstoken", self._service.token),), timeout=20)
                    except grpc.RpcError:
                        return False
                    return all(result.replay_id for result in answer.results)

            self._until(publish)
            self.acknowledged["pubsub"] += numbers
            if not self.publishing:
                return
            time.sleep(0.02)

    def _subscribe(self) -> None:
        last = b""
        while self.listening:
            with grpc.insecure_channel(self._service.pubsub) as channel:
                try:
                    for response in self._stream(channel, last):
                        for event in response.events:
                            number = SCHEMA.decode(event.event.payload)["Order_Number__c"]
                            self.pubsub.append((int.from_bytes(event.replay_id[:8]), number))
                        last = response.latest_replay_id or last
                        if not self.listening:
                            return
                except grpc.RpcError as error:
                    self.broken[f"{error.code().name}: {error.details()}"] += 1
                    if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
                        self.refused.append(str(error))
                    time.sleep(0.05)

    def _stream(self, channel: grpc.Channel, last: bytes) -> Any:
        method = channel.stream_stream(
            "/eventbus.v1.PubSub/Subscribe", pb.FetchRequest.SerializeToString, pb.FetchResponse.FromString
        )
        preset = pb.ReplayPreset.CUSTOM if last else pb.ReplayPreset.EARLIEST

        def asking() -> Iterator[pb.FetchRequest]:
            yield pb.FetchRequest(topic_name=TOPIC, replay_preset=preset, replay_id=last, num_requested=100)
            while self.listening:
                time.sleep(0.05)
                yield pb.FetchRequest(num_requested=100)

        return method(asking(), metadata=(("accesstoken", self._service.token),))

    def _follow_cometd(self) -> None:
        while self.listening:
            with requests.Session() as session:
                session.headers.update(self._service.headers)
                try:
                    self._one_cometd_session(session)
                except AWAY:
                    time.sleep(0.05)

    def _one_cometd_session(self, session: requests.Session) -> None:
        """Handshake, subscribe after the last event, and connect until the server knows this client no more."""

        url = self._service.url

        def send(**message: Any) -> list[dict[str, Any]]:
            answer = session.post(f"{url}/cometd/60.0", json=[message], timeout=20)
            return list(answer.json())

        (hello,) = send(channel="/meta/handshake", version="1.0", supportedConnectionTypes=["long-polling"])
        client = hello["clientId"]
        last = self.cometd[-1][0] if self.cometd else -2
        (reply,) = send(channel="/meta/subscribe", clientId=client, subscription=TOPIC, ext={"replay": {TOPIC: last}})
        if not reply["successful"]:
            if str(reply.get("error", "")).startswith("400"):
                self.refused.append(str(reply))
            raise ValueError
        while self.listening:
            for message in send(
                channel="/meta/connect", clientId=client, connectionType="long-polling", advice={"timeout": 1000}
            ):
                if "data" in message:
                    data = message["data"]
                    self.cometd.append((data["event"]["replayId"], data["payload"]["Order_Number__c"]))
                elif not message["successful"]:
                    return


def run(seed: int, folder: Path) -> str:
    chance = random.Random(seed)
    folder.mkdir()
    broker: Any = KafkaBroker(folder / "broker") if seed % 5 == 0 else TidegateBroker(folder / "broker")
    broker.start()
    killed: Counter[str] = Counter()
    try:
        with running_registry(broker.bootstrap_servers) as registry:
            service = Service(folder, broker, registry)
            try:
                clients = Clients(service)
                for _ in range(KILLS):
                    before = clients.count
                    wait_until(lambda before=before: clients.count >= before + 10, "acknowledged between kills")  # type: ignore[misc]
                    time.sleep(chance.uniform(0, 1))
                    what = chance.choice(["server", "broker"])
                    victim: Any = service.server if what == "server" else broker
                    victim.kill()
                    killed[what] += 1
                    time.sleep(chance.uniform(0, 0.5))
                    victim.start()
                clients.stop_publishing()
                expected = set(itertools.chain(*clients.acknowledged.values()))

                def complete() -> bool:
                    got = ({number for _, number in received} for received in (clients.pubsub, clients.cometd))
                    return all(expected <= numbers for numbers in got)

                try:
                    wait_until(complete, "every acknowledged event at both subscribers", pause_s=0.1)
                finally:
                    clients.stop_listening()
            finally:
                service.server.stop()
    finally:
        broker.stop()
    twice = judge(clients)
    return f"{clients.count} acknowledged, {twice} twice, {dict(killed)}"


def judge(clients: Clients) -> int:
    """The number of events that are stored twice because their publisher sent them again without an id, which is
    allowed.
    """
    assert not clients.refused, clients.refused
    for got in (clients.pubsub, clients.cometd):
        replay_ids = [replay_id for replay_id, _ in got]
        assert replay_ids == sorted(set(replay_ids)), "replay ids rise, and none comes twice"
    shared = min(len(clients.pubsub), len(clients.cometd))
    assert clients.pubsub[:shared] == clients.cometd[:shared], "both subscribers see the same"
    for kind, acknowledged in clients.acknowledged.items():
        stored = [number for _, number in clients.pubsub if number.startswith(kind)]
        once = list(
            dict.fromkeys(stored)
        )  # a request that was lost in the network may arrive, once more, a minute later
        assert once == sorted(once), f"{kind}: in the order of their publisher"
        assert once == acknowledged, f"{kind}: what is there is what was acknowledged"
        if kind != "plain":
            assert stored == once, f"{kind}: sent again with its id, stored once"
    return len(clients.pubsub) - len({number for _, number in clients.pubsub})


def test_no_acknowledged_event_is_lost_none_is_out_of_order_and_those_with_an_id_are_there_once(
    tmp_path: Path, record_property: Any
) -> None:
    run_seeds(run, SEEDS, tmp_path, record_property)
