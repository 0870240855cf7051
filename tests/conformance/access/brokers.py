"""Brokers with an authorizer and two listeners, and clients with few rights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from broker.protocol.api import ApiKey
from tests.conformance.access.walk import SETTINGS, Client, findings, prepare
from tests.servers.kafka import KafkaBroker
from tests.servers.process import free_ports
from tests.support.broker import BrokerThread, settings

__all__ = ["Ports", "apache", "ours", "walked"]


class Ports(NamedTuple):
    admin: int
    clients: int


@contextmanager
def apache(directory: Path) -> Iterator[Ports]:
    (clients,) = free_ports(1)
    broker = KafkaBroker(directory, SETTINGS)
    properties = directory / "server.properties"
    lines = dict(line.split("=", 1) for line in properties.read_text().splitlines())
    lines["listeners"] += f",CLIENTS://127.0.0.1:{clients}"
    lines["advertised.listeners"] += f",CLIENTS://127.0.0.1:{clients}"
    lines["listener.security.protocol.map"] += ",CLIENTS:SASL_PLAINTEXT"
    properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    broker.start()
    try:
        yield Ports(broker.port, clients)
    finally:
        broker.stop()


@contextmanager
def ours(directory: Path) -> Iterator[Ports]:
    (clients,) = free_ports(1)
    more = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:{clients}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
    }
    with BrokerThread({**settings(directory), **SETTINGS, **more}) as broker:
        yield Ports(broker.port, clients)


def walked(ports: Ports) -> dict[str, Any]:
    """The response to each client, by client and request."""
    admin = Client(ports.admin)
    ids = prepare(admin)
    listed = admin.ask(18, 4, {"client_software_name": "test", "client_software_version": "1"})["api_keys"]
    served = {
        ApiKey(api["api_key"]): range(api["min_version"], api["max_version"] + 1)
        for api in listed
        if api["api_key"] in list(ApiKey)
    }
    answers = {}
    for user in ("nobody", "some"):
        client = Client(ports.clients, user)
        answers[user] = findings(client, served, ids)
        client.hang_up()
    admin.hang_up()
    return answers
