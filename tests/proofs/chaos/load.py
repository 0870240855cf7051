"""The load on the platform: rows, lines, registrations, publishers and subscribers."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg
import requests

from events.model.definitions import to_avro_text
from tests.proofs.chaos.scene import EVENTS_PASSWORD, Scene
from tests.proofs.test_events_kills import Clients
from tests.support.events import ORDER_SHIPPED, USER

__all__ = ["Answer", "Load"]


class Answer(NamedTuple):
    """When a request was sent to which host (time.monotonic), after how many seconds it was answered, and with which status."""

    host: str
    began: float
    took_s: float
    status: int


class EventsService:
    """Two events servers as one: each request goes to any of them. The session is good at both."""

    def __init__(self, scene: Scene, chance: random.Random) -> None:
        self._addresses = [party.host.address for party in scene.of("events")]
        self._chance = chance
        form = {"grant_type": "password", "client_id": "tidegate", "client_secret": EVENTS_PASSWORD}
        form |= {"username": USER, "password": EVENTS_PASSWORD}
        answer = requests.post(f"{self.url}/services/oauth2/token", data=form, timeout=60)
        self.token = answer.json()["access_token"]
        self.headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        defined = requests.post(
            f"{self.url}/tidegate/v1/events", data=to_avro_text(ORDER_SHIPPED), headers=self.headers, timeout=60
        )
        assert defined.ok, defined.text
        self.schema_id = str(defined.json()["schemaId"])

    @property
    def url(self) -> str:
        return f"http://{self._chance.choice(self._addresses)}:18090"

    @property
    def pubsub(self) -> str:
        return f"{self._chance.choice(self._addresses)}:17080"


class Load:
    def __init__(self, scene: Scene, seed: int) -> None:
        self._scene, self._seed = scene, seed
        self._ended = threading.Event()
        self.written = 0
        self.registered: dict[str, tuple[str, int]] = {}
        """Subject and id by schema, of the registrations that were acknowledged."""
        self.answers: list[Answer] = []
        """Of the registries."""
        self.waits: list[tuple[float, float]] = []
        """When a registration was first sent, and after how long it was acknowledged."""
        self.events = Clients(EventsService(scene, random.Random(seed)))  # type: ignore[arg-type]
        work: list[Callable[[], None]] = [self._lines, self._orders, self._accounts]
        work += [lambda n=n: self._register(n) for n in range(2)]  # type: ignore[misc]
        self._threads = [threading.Thread(target=each, daemon=True) for each in work]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive(), "a writer never got its last acknowledgement"
        self.events.stop_publishing()

    def _lines(self) -> None:
        with self._scene.lines.open("a") as file:
            while not self._ended.wait(0.2):
                for _ in range(5):
                    file.write(f"{self.written}\n")
                    self.written += 1
                file.flush()

    def _until_lost(self, write: Callable[[psycopg.Connection], None]) -> None:
        """Write on one connection after the other."""
        while not self._ended.is_set():
            with contextlib.suppress(psycopg.Error), self._scene.database.connect() as connection:
                while not self._ended.wait(0.2):
                    write(connection)

    def _orders(self) -> None:
        self._until_lost(lambda link: link.execute("INSERT INTO orders (n) SELECT n FROM generate_series(1, 8) n"))  # type: ignore[arg-type, return-value]

    def _accounts(self) -> None:
        chance = random.Random(self._seed)

        def write(connection: psycopg.Connection) -> None:
            with connection.transaction():
                connection.execute("UPDATE accounts SET v = v + 1 WHERE id = 0")
                for key in sorted(chance.sample(range(1, 200), 5)):
                    # Deleted rows come back with a higher version than they had.
                    if chance.random() < 0.1:
                        connection.execute("DELETE FROM accounts WHERE id = %s", (key,))
                    else:
                        connection.execute(
                            "INSERT INTO accounts VALUES (%s, (SELECT v FROM accounts WHERE id = 0)) "
                            "ON CONFLICT (id) DO UPDATE SET v = excluded.v",
                            (key,),
                        )

        self._until_lost(write)

    def _register(self, writer: int) -> None:
        chance = random.Random(self._seed + writer)
        hosts = [party.host for party in self._scene.of("registry")]
        number = 0
        while not self._ended.is_set():
            number += 1
            subject = f"s-{writer}-{number % 20}"
            schema = json.dumps({"type": "record", "name": f"R{writer}_{number}", "fields": []}, separators=(",", ":"))
            first = time.monotonic()
            while True:
                host, began = chance.choice(hosts), time.monotonic()
                url = f"http://{host.address}:18081/subjects/{subject}/versions"
                answer: Any = None
                with contextlib.suppress(requests.RequestException):
                    answer = requests.post(url, json={"schema": schema}, timeout=60)
                if answer is not None:
                    self.answers.append(Answer(host.name, began, time.monotonic() - began, answer.status_code))
                    if answer.status_code == 200:
                        break
                time.sleep(0.1)
            self.registered[schema] = (subject, answer.json()["id"])
            self.waits.append((first, time.monotonic() - first))
            time.sleep(0.1)
