"""Platform events under kill -9: events server and broker die while events are published and followed."""

from __future__ import annotations

import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
import requests

from events.proto import pubsub_api_pb2 as pb
from tests.events.test_server import running_registry
from tests.proofs import drawn_seed, effort
from tests.servers.process import ServerProcess, free_ports
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.events import ORDER_SHIPPED, PASSWORD, USER

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1800)]

KILLS = effort(3, 50)
TOPIC = "/event/Order_Shipped__e"


class Client:
    """A publisher and a subscriber that keep on whatever happens, each in a thread of its own."""

    def __init__(self, url: str, pubsub: str, token: str) -> None:
        self._url, self._pubsub, self._token = url, pubsub, token
        self.acknowledged: list[str] = []
        self.got: list[tuple[bytes, str]] = []
        self.publishing = self.listening = True

    def publish(self) -> None:
        """One event after another; one that is not acknowledged is not sent again."""
        number = 0
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {self._token}"
        while self.publishing:
            number += 1
            body = {"Order_Number__c": f"{number:08d}"}
            try:
                answer = session.post(
                    f"{self._url}/services/data/v60.0/sobjects/Order_Shipped__e", json=body, timeout=15
                )
            except requests.RequestException:
                time.sleep(0.05)
                continue
            if answer.status_code == 201:
                self.acknowledged.append(answer.json()["errors"][0]["message"])

    def listen(self) -> None:
        """Follow from the beginning, and after each break from the last replay id."""
        last = b""
        while self.listening:
            with grpc.insecure_channel(self._pubsub) as channel:
                try:
                    for response in self._stream(channel, last):
                        for event in response.events:
                            self.got.append((event.replay_id, event.event.id))
                        last = response.latest_replay_id or last
                        if not self.listening:
                            return
                except grpc.RpcError:
                    time.sleep(0.05)

    def _stream(self, channel: grpc.Channel, last: bytes) -> Any:
        method = channel.stream_stream(
            "/eventbus.v1.PubSub/Subscribe", pb.FetchRequest.SerializeToString, pb.FetchResponse.FromString
        )
        preset = pb.ReplayPreset.CUSTOM if last else pb.ReplayPreset.EARLIEST

        def asking() -> Any:
            yield pb.FetchRequest(topic_name=TOPIC, replay_preset=preset, replay_id=last, num_requested=100)
            while self.listening:
                time.sleep(0.02)
                yield pb.FetchRequest(num_requested=100)

        return method(asking(), metadata=(("accesstoken", self._token),))


def events_server(folder: Path, settings: dict[str, str], url: str) -> ServerProcess:
    file = folder / "events.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def ready() -> bool:
        try:
            return requests.get(f"{url}/services/data", timeout=2).ok
        except requests.RequestException:
            return False

    command = [sys.executable, "-m", "tidegate.cli", "serve", "events", str(file)]
    return ServerProcess("the events server", command, log=folder / "events.log", ready=ready)


def test_no_acknowledged_event_is_lost_and_none_is_out_of_order(tmp_path: Path, record_property: Any) -> None:
    chance = random.Random(drawn_seed())
    broker = TidegateBroker(tmp_path / "broker")
    broker.start()
    http, https, pubsub, plain = free_ports(4)
    url = f"http://127.0.0.1:{http}"
    with running_registry(broker.bootstrap_servers) as registry:
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "schema.registry.url": registry,
            "data.dir": str(tmp_path / "events"),
            "http.listen": f"127.0.0.1:{http}",
            "https.listen": f"127.0.0.1:{https}",
            "pubsub.listen": f"127.0.0.1:{pubsub}",
            "pubsub.plain.listen": f"127.0.0.1:{plain}",
            "pubsub.keepalive.ms": "500",
        }
        server = events_server(tmp_path, settings, url)
        server.start()
        form = {
            "grant_type": "password",
            "client_id": "tidegate",
            "client_secret": PASSWORD,
            "username": USER,
            "password": PASSWORD,
        }
        token = requests.post(f"{url}/services/oauth2/token", data=form, timeout=10).json()["access_token"]
        from events.definitions import to_avro_text

        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        answer = requests.post(
            f"{url}/tidegate/v1/events", data=to_avro_text(ORDER_SHIPPED), headers=headers, timeout=20
        )
        assert answer.ok, answer.text
        client = Client(url, f"127.0.0.1:{plain}", token)
        threads = [threading.Thread(target=work, daemon=True) for work in (client.publish, client.listen)]
        for thread in threads:
            thread.start()
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.2, 1.5))
            victim: Any = chance.choice([server, broker])
            victim.kill()
            time.sleep(chance.uniform(0, 0.5))
            victim.start()
        time.sleep(2)
        client.publishing = False
        threads[0].join(60)
        wanted = set(client.acknowledged)
        until = time.monotonic() + 60
        while not wanted <= {uuid for _, uuid in client.got} and time.monotonic() < until:
            time.sleep(0.1)
        client.listening = False
        threads[1].join(30)
        server.stop()
    broker.stop()
    uuids = [uuid for _, uuid in client.got]
    positions = [int.from_bytes(replay_id[:8]) for replay_id, _ in client.got]
    lost = wanted - set(uuids)
    assert not lost, f"{len(lost)} of {len(wanted)} acknowledged events never came"
    assert positions == sorted(set(positions)), "replay ids rise, and none comes twice"
    assert [uuid for uuid in uuids if uuid in wanted] == client.acknowledged, "in the order of their publisher"
    assert len(wanted) > KILLS
    record_property("acknowledged", len(wanted))
    record_property("duplicates", len(uuids) - len(set(uuids)))
