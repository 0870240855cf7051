"""Salesforce clients for Java as published: CometD's, gRPC's with the Pub/Sub API's classes, Camel's component."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.fetch import require
from tests.servers.fixtures import or_skip
from tests.servers.java import QUICK, java
from tests.servers.process import free_ports
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.events import PASSWORD, USER, EventsThread
from tests.support.platform import until

EVENT, FIELD = "Order_Shipped__e", "Order_Number__c"
pytestmark = [pytest.mark.servers, pytest.mark.proof]


class Program:
    """A running client; what it prints is read line by line, by number."""

    def __init__(self, tmp_path: Path, *arguments: str, trusted: str = "") -> None:
        folder, program = or_skip(lambda: (require("events-java").absolute(), java()))
        options = [*QUICK, "-Xmx256m", "-cp", f"{folder}/classes:{folder}/libs/*"]
        if trusted:
            options += [f"-Djavax.net.ssl.trustStore={trusted}", "-Djavax.net.ssl.trustStorePassword=changeit"]
        self._out = tmp_path / f"{arguments[0]}.out"
        with self._out.open("w") as out, (tmp_path / f"{arguments[0]}.err").open("w") as errors:
            self._process = subprocess.Popen(
                [program, *options, "EventsCalls", *arguments],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=errors,
                text=True,
            )

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def lines(self, word: str) -> list[str]:
        return [line.removeprefix(f"{word} ") for line in self._out.read_text().splitlines() if line.startswith(word)]

    def values(self) -> list[str]:
        return [line.partition(" ")[2] for line in self.lines("event")]

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()


class RestartableService:
    """An events service over a broker, which can be started again where it was."""

    def __init__(self, data: Path, broker: TidegateBroker) -> None:
        http, secure, tls, plain = free_ports(4)
        self._data, self._more = (
            data,
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "http.listen": f"127.0.0.1:{http}",
                "https.listen": f"127.0.0.1:{secure}",
                "pubsub.listen": f"127.0.0.1:{tls}",
                "pubsub.plain.listen": f"127.0.0.1:{plain}",
                "cometd.connect.timeout.ms": 5000,
            },
        )
        self.tls, self.plain = tls, plain
        self.start()

    def start(self) -> None:
        schemas = self.service.schemas if hasattr(self, "service") else None
        self.service = EventsThread(self._data, real="log", **self._more)
        if schemas is not None:
            self.service.schemas = schemas
        self.service.__enter__()
        self.service.define()

    def stop(self) -> None:
        self.service.__exit__(None, None, None)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RestartableService]:
    broker = TidegateBroker(tmp_path / "broker")
    broker.start()
    made = RestartableService(tmp_path / "events", broker)
    yield made
    made.stop()
    broker.stop()


def wait(condition: Any, what: str) -> None:
    until(condition, what, timeout_s=120)


def test_clients_follow_and_publish_over_a_restart(running: RestartableService, tmp_path: Path) -> None:
    service = running.service
    token, org = service.token(), service.server.access.org_id
    channel = f"/event/{EVENT}"
    grpc = Program(tmp_path, "grpc", str(running.plain), token, org, channel, FIELD)
    cometd = Program(tmp_path, "cometd", service.url, token, channel, "-2", FIELD)
    try:
        wait(lambda: cometd.lines("subscribed") == ["true"], "CometD's client subscribed")
        grpc.say("one")
        wait(lambda: grpc.lines("published") == ["one"], "gRPC's client published")
        wait(lambda: (grpc.values(), cometd.values()) == (["one"], ["one"]), "both have the event")
        running.stop()
        running.start()
        grpc.say("two")
        wait(lambda: grpc.values() == ["one", "two"], "gRPC's client went on")
        wait(lambda: cometd.values() == ["one", "two"], "CometD's client went on")
        assert grpc.lines("event") == cometd.lines("event")
    finally:
        grpc.stop()
        cometd.stop()


@pytest.mark.long
def test_camel_publishes_and_follows_on_both_protocols(running: RestartableService, tmp_path: Path) -> None:
    keytool = shutil.which("keytool", path=f"{Path(java()).resolve().parent}") or "keytool"
    store = str(tmp_path / "trusted.p12")
    ca = running.service.addresses["ca"]
    subprocess.run(
        [
            keytool,
            "-importcert",
            "-noprompt",
            "-alias",
            "ca",
            "-file",
            ca,
            "-keystore",
            store,
            "-storepass",
            "changeit",
        ],
        check=True,
        capture_output=True,
        timeout=300,
    )
    arguments = (running.service.url, USER, PASSWORD, str(running.tls), f"/event/{EVENT}", FIELD)
    camel = Program(tmp_path, "camel", *arguments, trusted=store)
    try:
        camel.say("from Camel")
        wait(lambda: camel.lines("published") == ["true"], "Camel published")
        wait(lambda: camel.values() == ["from Camel"], "Camel's Pub/Sub consumer has it")
        wait(lambda: any("from Camel" in line for line in camel.lines("streamed")), "Camel's CometD consumer has it")
        camel.say("composite pair")
        camel.say("bulk row")
        wait(lambda: camel.lines("published") == ["true"] * 3, "Camel published by composite and by job")
        expected = ["from Camel", "composite pair first", "composite pair second", "bulk row"]
        wait(lambda: camel.values() == expected, "Camel's Pub/Sub consumer has them, too")
    finally:
        camel.stop()
