"""Modules for rarely used features are loaded only at their first use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from broker.api.routes import AnyRoute
from broker.coordinator.namespace import GroupType
from broker.groups.consumer.records import RECORDS as CONSUMER
from broker.groups.coordinator import _KINDS_OF_RECORDS
from broker.groups.share.records import RECORDS as SHARE
from broker.groups.streams.records import RECORDS as STREAMS
from broker.handlers import ROUTES

ROOMS = (
    "broker.groups.share",
    "broker.groups.streams",
    "broker.share_delivery",
    "broker.share_coordinator.coordinator",
    "broker.security.tokens",
    "broker.telemetry.telemetry",
    "broker.telemetry.subscriptions",
    "broker.telemetry.otlp",
    "broker.handlers.share_fetch",
    "broker.handlers.streams_groups",
    "broker.handlers.tokens",
    "broker.handlers.telemetry",
    "broker.protocol.messages.share_fetch",
)
ROUND = """
import asyncio, sys

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from broker.server import serve


def use(address):
    client = {"bootstrap.servers": address, "log_level": 0}
    producer = Producer({**client, "transactional.id": "t"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("topic", b"value")
    producer.commit_transaction(60)
    consumer = Consumer({**client, "group.id": "g", "auto.offset.reset": "earliest", "group.protocol": sys.argv[2]})
    consumer.subscribe(["topic"])
    message = None
    while message is None or message.error() is not None:
        message = consumer.poll(60)
    consumer.commit(asynchronous=False)
    consumer.close()
    admin = AdminClient(client)
    admin.delete_topics(["topic"])["topic"].result(60)


async def main():
    server = serve({"log.dirs": sys.argv[1], "listeners": "PLAINTEXT://127.0.0.1:0", "metrics.listen": "127.0.0.1:0"})
    address = (await server.start())["broker"]
    await asyncio.to_thread(use, address)
    await server.render_metrics()
    await server.stop()


asyncio.run(main())
print(*sorted(name for name in sys.modules if name.startswith("broker.")), sep="\\n")
"""


def loaded(directory: Path, protocol: str) -> list[str]:
    """The modules of the broker that were imported by a process in which a transaction was written, read and deleted."""
    command = [sys.executable, "-c", ROUND, str(directory), protocol]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.split()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_broker_loads_what_its_clients_use_and_no_more(tmp_path: Path, protocol: str) -> None:
    modules = loaded(tmp_path, protocol)
    assert "broker.groups.consumer.service" in modules
    assert [name for name in modules if name.startswith(ROOMS)] == []


def test_each_group_record_is_read_by_the_module_of_its_type() -> None:
    assert {
        **dict.fromkeys(CONSUMER, GroupType.CONSUMER),
        **dict.fromkeys(SHARE, GroupType.SHARE),
        **dict.fromkeys(STREAMS, GroupType.STREAMS),
    } == _KINDS_OF_RECORDS


@pytest.mark.parametrize("route", ROUTES.values(), ids=lambda route: route.key.title)
def test_a_route_knows_its_request_and_handler_when_it_is_asked(route: AnyRoute) -> None:
    assert route.key == route.request.API_KEY
    assert callable(route.handler)
    assert route.notes
