"""``python -m tests.proofs.chaos.machines FOLDER [EARLIER]``, in namespaces of its own: docs/how-to/scale.md on two machines,
each of whose processes is replaced while everything goes on.

With EARLIER, a folder with the code of an earlier version, everything starts as that version, is upgraded, and is rolled
back: docs/how-to/upgrade.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import requests

from broker.client import ClientConfig
from broker.client.blocking import Admin
from events.model.definitions import to_avro_text
from tests.proofs.chaos.scene import EVENTS_PASSWORD, answers
from tests.servers.kafka import metadata_answers
from tests.servers.process import ServerProcess, wait_until
from tests.support.events import ORDER_SHIPPED, USER
from tests.support.hosts import Host, Network
from tests.support.pages import ROOT, blocks

PORTS: Final = {"registry": 8081, "connect": 8083, "events": 8090}
"""In the order of the page, which is the one of an upgrade."""
PATIENCE_S: Final = 60


def files() -> dict[str, str]:
    """The properties files of the page by name."""
    page = ROOT / "docs" / "how-to" / "scale.md"
    texts = [block.text for block in blocks(page, "properties")]
    return {text.splitlines()[0].removeprefix("# "): text for text in texts}


def commands() -> dict[str, list[str]]:
    """The page's commands that start a component, by its name."""
    page = ROOT / "docs" / "how-to" / "scale.md"
    lines = [line.split() for block in blocks(page, "sh") for line in block.text.splitlines()]
    return {words[2]: words for words in lines if words[:2] == ["tidegate", "serve"]}


class Machine:
    def __init__(self, host: Host, folder: Path, key: bytes) -> None:
        self.host, self._folder, self.processes = host, folder, dict[str, ServerProcess]()
        (folder / "events-data").mkdir(parents=True)
        (folder / "events-data" / "session.key").write_bytes(key)
        for name, text in files().items():
            mine = text.replace("=machine-1", f"={host.name}").replace("=...", f"={EVENTS_PASSWORD}")
            alone = "replication.factor.fit=true\n" if name == "worker.properties" else ""  # there is one broker here
            (folder / name).write_text(mine + alone)

    def start(self, component: str, code: Path) -> None:
        """Start a component with the code in a folder."""
        _, *arguments = commands()[component]
        settings = [f"--chdir={self._folder}", f"PYTHONPATH={code}"]
        self.processes[component] = ServerProcess(
            f"{component} of {self.host.name}",
            self.host.inside(["env", *settings, sys.executable, "-m", "tidegate.cli", *arguments]),
            log=self._folder / f"{component}.log",
            ready=lambda: self.is_healthy(component),
        )
        self.processes[component].start()

    def url(self, component: str) -> str:
        return f"http://{self.host.name}:{PORTS[component]}"

    def is_healthy(self, component: str) -> bool:
        return answers(f"{self.url(component)}/health")


class Load:
    """Registrations, events and lines, each sent to any machine until one takes it."""

    def __init__(self, machines: list[Machine], folder: Path) -> None:
        self._machines, self.lines, self._ended = machines, folder / "lines.txt", threading.Event()
        self.lines.touch()
        self.counts = {"lines": 0, "registrations": 0, "events": 0}
        self.waits: dict[str, float] = dict.fromkeys(self.counts, 0.0)
        form = {"grant_type": "password", "username": USER, "password": EVENTS_PASSWORD}
        form |= {"client_id": "tidegate", "client_secret": EVENTS_PASSWORD}
        logged_in = requests.post(f"{machines[0].url('events')}/services/oauth2/token", data=form, timeout=30)
        self.headers = {"Authorization": f"Bearer {logged_in.json()['access_token']}"}
        self._taken("events", "/tidegate/v1/events", data=to_avro_text(ORDER_SHIPPED))
        config = {
            "connector.class": "FileStreamSource",
            "file": str(self.lines),
            "topic": "lines",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        }
        self._taken("connect", "/connectors", json={"name": "lines", "config": config})
        self._threads = [threading.Thread(target=work) for work in (self._write, self._register, self._publish)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _taken(self, component: str, path: str, **content: Any) -> Any:
        headers = {"Content-Type": "application/json", **(self.headers if component == "events" else {})}
        for attempt in range(600):
            url = self._machines[attempt % len(self._machines)].url(component) + path
            try:
                answer = requests.post(url, headers=headers, timeout=PATIENCE_S, **content)
            except requests.RequestException:
                continue
            if answer.ok:
                return answer.json()
            assert answer.status_code in (404, 409, 500, 503), answer.text
            time.sleep(0.1)
        raise AssertionError(f"nobody takes {path}")

    def _timed(self, kind: str, component: str, path: str, body: Mapping[str, Any]) -> None:
        began = time.monotonic()
        self._taken(component, path, json=body)
        self.waits[kind] = max(self.waits[kind], time.monotonic() - began)
        self.counts[kind] += 1

    def _write(self) -> None:
        with self.lines.open("a") as file:
            while not self._ended.wait(0.05):
                file.write(f"{self.counts['lines']}\n")
                file.flush()
                self.counts["lines"] += 1

    def _register(self) -> None:
        while not self._ended.wait(0.05):
            schema = json.dumps({"type": "record", "name": f"R{self.counts['registrations']}", "fields": []})
            path = f"/subjects/s-{self.counts['registrations']}/versions"
            self._timed("registrations", "registry", path, {"schema": schema})

    def _publish(self) -> None:
        while not self._ended.wait(0.05):
            number = {"Order_Number__c": str(self.counts["events"])}
            self._timed("events", "events", f"/services/data/v60.0/sobjects/{ORDER_SHIPPED.name}", number)


def main(folder: Path, earlier: Path | None) -> None:
    network = Network()
    kafka, *hosts = (network.host(name) for name in ("kafka", "machine-1", "machine-2"))
    folder.mkdir(parents=True, exist_ok=True)
    names = folder / "hosts"
    names.write_text("127.0.0.1 localhost\n" + "".join(f"{host.address} {host.name}\n" for host in (kafka, *hosts)))
    subprocess.run(["mount", "--bind", str(names), "/etc/hosts"], check=True)
    settings = folder / "broker.properties"
    settings.write_text(f"listeners=PLAINTEXT://kafka:9092\nlog.dirs={folder / 'log'}\n")

    def broker_of(code: Path) -> ServerProcess:
        command = [sys.executable, "-m", "tidegate.cli", "serve", "broker", str(settings)]
        process = ServerProcess(
            "the broker",
            kafka.inside(["env", f"--chdir={folder}", f"PYTHONPATH={code}", *command]),
            log=folder / "broker.log",
            ready=lambda: metadata_answers(9092, kafka.address),
        )
        process.start()
        return process

    machines = [Machine(host, folder / host.name, bytes(range(32))) for host in hosts]
    begins = earlier or ROOT
    broker = broker_of(begins)
    try:
        for component in PORTS:
            for machine in machines:
                machine.start(component, begins)
        load = Load(machines, folder)
        wait_until(lambda: all(load.counts.values()), "the load to be taken", PATIENCE_S)

        def replace(component: str, machine: Machine, code: Path) -> None:
            before = dict(load.counts)
            machine.processes[component].stop()
            machine.start(component, code)
            wait_until(
                lambda: all(load.counts[kind] > count + 5 for kind, count in before.items()),
                f"more of everything after {component} of {machine.host.name} is {code}",
                PATIENCE_S,
            )

        if earlier:
            broker.stop()
            broker = broker_of(ROOT)
        for component in PORTS:
            for machine in machines:
                replace(component, machine, ROOT)
        if earlier:
            for component in reversed(PORTS):
                for machine in machines:
                    replace(component, machine, earlier)
            broker.stop()
            broker = broker_of(earlier)
            before = dict(load.counts)
            wait_until(
                lambda: all(load.counts[kind] > count + 5 for kind, count in before.items()), "more of all", PATIENCE_S
            )
        load.end()
        with Admin(ClientConfig("kafka:9092")) as admin:

            def written(topic: str) -> int:
                parts = [(topic, part.partition) for part in admin.describe_topics([topic])[topic].partitions]
                return sum(admin.end_offsets(parts).values())

            wait_until(lambda: written("lines") >= load.counts["lines"], "all lines in the topic", PATIENCE_S)
            assert written(ORDER_SHIPPED.name) > load.counts["events"]  # offset 0 is nobody's
        subjects = requests.get(f"{machines[0].url('registry')}/subjects", timeout=PATIENCE_S).json()
        assert len([name for name in subjects if name.startswith("s-")]) >= load.counts["registrations"]
        figures = {"taken": load.counts, "longest wait s": {kind: round(s, 1) for kind, s in load.waits.items()}}
        print(json.dumps(figures), flush=True)
    finally:
        for machine in machines:
            for process in machine.processes.values():
                process.kill()
        broker.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
