"""Several registries over one log, while the writing one is killed, stopped and cut off under load."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import threading
import time
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.proofs import drawn_seed, effort
from tests.servers.kafka import KafkaBroker
from tests.servers.process import free_ports
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.registries import RegistryProcess

pytestmark = [pytest.mark.proof, pytest.mark.servers, pytest.mark.timeout(1800)]

ROUNDS, REGISTRIES, WRITERS = effort(2, 20), 3, 4


class Load:
    """Writers that register new schemas at any registry, and remember what was acknowledged, and when."""

    def __init__(self, urls: list[str], seed: int) -> None:
        self._urls, self._ended = urls, threading.Event()
        self.acknowledged: dict[str, tuple[str, int]] = {}
        self.times: list[float] = []
        self.failures: dict[str, int] = defaultdict(int)
        self._threads = [
            threading.Thread(target=self._write, args=(n, random.Random(seed + n))) for n in range(WRITERS)
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, writer: int, chance: random.Random) -> None:
        number = 0
        while not self._ended.is_set():
            number += 1
            subject = f"s-{writer}-{number % 50}"
            schema = json.dumps({"type": "record", "name": f"R{writer}_{number}", "fields": []}, separators=(",", ":"))
            try:
                answer = requests.post(
                    f"{chance.choice(self._urls)}/subjects/{subject}/versions",
                    json={"schema": schema},
                    timeout=30,
                )
            except requests.RequestException as error:
                self.failures[type(error).__name__] += 1
                time.sleep(0.05)
                continue
            if answer.status_code == 200:
                self.acknowledged[schema] = (subject, answer.json()["id"])
                self.times.append(time.monotonic())
            else:
                self.failures[str(answer.json())[:80]] += 1
                assert answer.status_code == 500, answer.text
                assert 50000 < answer.json()["error_code"] < 50005, answer.text
                time.sleep(0.05)

    def pause_after(self, moment: float) -> float:
        """How long after a moment the first write was acknowledged that started at least half a second later."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            later = [at for at in self.times if at > moment + 0.5]
            if later:
                return later[0] - moment
            time.sleep(0.1)
        raise AssertionError(f"nothing was acknowledged within 60 s; failures: {dict(self.failures)}")

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("kafka", [pytest.param("apache_kafka", marks=pytest.mark.long), "tidegate_broker"])
def test_no_acknowledged_registration_is_lost_and_no_id_given_twice(request, kafka, tmp_path: Path, record_property):
    broker: KafkaBroker | TidegateBroker = request.getfixturevalue(kafka)
    seed = drawn_seed()
    record_property("seed", seed)
    chance = random.Random(seed)
    name = f"proof-{uuid.uuid4().hex[:8]}"
    ports = free_ports(REGISTRIES)
    settings = [
        {
            "listeners": f"http://127.0.0.1:{port}",
            "kafkastore.bootstrap.servers": broker.bootstrap_servers,
            "kafkastore.topic": f"_schemas-{name}",
            "schema.registry.group.id": name,
            "schema.compatibility.level": "none",
        }
        for port in ports
    ]
    registries = [RegistryProcess(tmp_path, config) for config in settings]
    urls = [registry.url for registry in registries]
    load = Load(urls, seed)
    pauses: list[tuple[str, float]] = []
    try:
        load.pause_after(time.monotonic())
        for _ in range(ROUNDS):
            time.sleep(chance.uniform(0.2, 1.5))
            writer = leader(urls, tmp_path / "registry.log")
            how = chance.choice(["kill", "kill", "terminate", "freeze"])
            moment = time.monotonic()
            if how == "freeze":
                registries[writer].process.send_signal(signal.SIGSTOP)
                pauses.append((how, load.pause_after(moment)))
                # Back from the dead it still believes to be the writer; the log must refuse it.
                registries[writer].process.send_signal(signal.SIGCONT)
            else:
                registries[writer].end(signal.SIGKILL if how == "kill" else signal.SIGTERM)
                if chance.random() < 0.5:
                    pauses.append((how, load.pause_after(moment)))
                    registries[writer] = RegistryProcess(tmp_path, settings[writer])
                else:
                    registries[writer] = RegistryProcess(tmp_path, settings[writer])
                    pauses.append((how, load.pause_after(moment)))
                assert registries[writer].url == urls[writer]
        load.end()
        told = settled(urls)
    finally:
        load.end()
        for registry in registries:
            registry.end(signal.SIGKILL)
    record_property("acknowledged", len(load.acknowledged))
    record_property("pauses", [(how, round(pause, 2)) for how, pause in pauses])
    record_property("failures", dict(load.failures))
    ids = [schema_id for _, schema_id in load.acknowledged.values()]
    assert len(set(ids)) == len(ids), f"an id was given twice (seed {seed})"
    for url, versions in told.items():
        known = {version["schema"]: (version["subject"], version["id"]) for version in versions}
        lost = {schema: position for schema, position in load.acknowledged.items() if known.get(schema) != position}
        assert not lost, f"{url} does not have {list(lost.items())[:3]} of {len(lost)} (seed {seed})"
        every = [version["id"] for version in versions]
        assert len(set(every)) == len(every), f"{url} shows an id twice (seed {seed})"
        versions_found = [(version["subject"], version["version"]) for version in versions]
        assert len(set(versions_found)) == len(versions_found)
    assert len({json.dumps(versions, sort_keys=True) for versions in told.values()}) == 1, "all registries agree"
    assert max(pause for _, pause in pauses) < effort(60, 10), (pauses, seed)


def everything(url: str) -> list[dict[str, Any]]:
    """All versions in a registry, which returns a thousand at a time."""
    versions: list[dict[str, Any]] = []
    while page := requests.get(f"{url}/schemas?limit=1000&offset={len(versions)}", timeout=30).json():
        versions += page
    return versions


def settled(urls: list[str]) -> dict[str, list[dict[str, Any]]]:
    """The same of each registry, once they agree: those that do not write follow the log a moment behind."""
    deadline = time.monotonic() + 60
    while True:
        told = {url: everything(url) for url in urls}
        if all(versions == told[urls[0]] for versions in told.values()) or time.monotonic() > deadline:
            return told
        time.sleep(0.1)


def leader(urls: list[str], log: Path) -> int:
    """The registry that writes, according to the registries: the last one that reported it and is still running."""
    for line in reversed(log.read_text().splitlines()):
        if "the writer is known" in line:
            for number, url in enumerate(urls):
                if url in line:
                    return number
    with contextlib.suppress(ValueError):
        return urls.index(urls[0])
    return 0
