"""``tidegate events channels`` and ``subscriptions`` against an events service."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from events.client import EventsClient
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.events import PASSWORD, USER, EventsThread
from tidegate.cli import tidegate


@pytest.fixture(scope="module")
def service(tidegate_broker: TidegateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventsThread]:
    servers = {"bootstrap.servers": tidegate_broker.bootstrap_servers}
    with EventsThread(tmp_path_factory.mktemp("events"), real="log", **servers) as running:
        running.define()
        yield running


Run = Callable[..., str]


@pytest.fixture
def run(service: EventsThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEGATE_CONTEXTS", str(tmp_path / "contexts.json"))
    where = [
        "--events",
        service.url,
        "--pubsub",
        service.addresses["pubsub-plain"],
        "--user",
        USER,
        "--password",
        PASSWORD,
    ]

    def run(*arguments: str, fails: bool = False) -> str:
        result = CliRunner().invoke(tidegate, ["events", *arguments, *where])
        assert (result.exit_code != 0) == fails, (result.output, result.exception)
        return str(result.exception) if fails and not result.output else result.output

    return run


def channels(run: Run) -> dict[str, Any]:
    return {
        c["channel"]: [(e["event"], e["filter"]) for e in c["events"]]
        for c in json.loads(run("channels", "list", "--json"))
    }


def test_a_channel_is_filled_filtered_and_deleted(run: Run, service: EventsThread) -> None:
    said = run("channels", "add", "Big__chn", "Order_Shipped__e", "--filter", "Amount__c > 1000")
    assert said == "channel Big__chn is created\nOrder_Shipped__e is in Big__chn, where Amount__c > 1000\n"
    run("channels", "add", "Big__chn", "Order_Shipped__e", "--filter", "Amount__c > 10")
    assert channels(run) == {"Big__chn": [("Order_Shipped__e", "Amount__c > 10")]}
    client = EventsClient(service.url, user=USER, password=PASSWORD, pubsub=service.addresses["pubsub-plain"])
    for amount in (5, 50):
        client.publish("Order_Shipped__e", {"Order_Number__c": "1", "Amount__c": amount})
    (received,) = islice(client.follow("Big__chn", replay_id=-2), 1)
    assert received.fields["Amount__c"] == 50
    assert run("channels", "remove", "Big__chn", "Order_Shipped__e") == "Order_Shipped__e is no longer in Big__chn\n"
    assert "Order_Shipped__e is not in Big__chn" in run(
        "channels", "remove", "Big__chn", "Order_Shipped__e", fails=True
    )
    run("channels", "add", "Big__chn", "Order_Shipped__e")
    assert run("channels", "delete", "Big__chn") == "channel Big__chn is deleted\n"
    assert channels(run) == {}


def test_a_channel_that_cannot_be_is_refused_with_the_reason(run: Run) -> None:
    assert "not both" in run("channels", "add", "Mixed__chn", "A__e", "OrderChangeEvent", fails=True)
    assert "__chn" in run("channels", "add", "Big", "Order_Shipped__e", fails=True)
    assert "there is no PlatformEventChannel None__chn" in run("channels", "delete", "None__chn", fails=True)


def test_a_subscription_is_created_stopped_started_and_deleted(run: Run) -> None:
    said = run("subscriptions", "create", "Warehouse", "Order_Shipped__e", "--from", "earliest")
    assert said == "subscription Warehouse to /event/Order_Shipped__e is created\n"
    assert "there is a subscription Warehouse" in run(
        "subscriptions", "create", "Warehouse", "Order_Shipped__e", fails=True
    )
    assert run("subscriptions", "stop", "warehouse") == "subscription Warehouse is stopped\n"
    expected = {
        "subscription": "Warehouse",
        "topic": "/event/Order_Shipped__e",
        "state": "stopped",
        "starts": "earliest",
        "shared": False,
    }
    assert json.loads(run("subscriptions", "list", "--json")) == [expected]
    assert run("subscriptions", "start", "Warehouse") == "subscription Warehouse is running\n"
    assert "there is no subscription Other; there are: Warehouse" in run("subscriptions", "stop", "Other", fails=True)
    assert run("subscriptions", "delete", "Warehouse") == "subscription Warehouse is deleted\n"
    assert json.loads(run("subscriptions", "list", "--json")) == []
