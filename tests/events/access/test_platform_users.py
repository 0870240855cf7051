"""Users in the platform's file at the events service: a right to manage events covers the events that it names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.events import ORDER_SHIPPED, EventsThread
from tidegate.security import Security, init_security

PASSWORD = "correct-horse"
BASE = "/services/data/v60.0"
OBJECT = "<CustomObject><eventType>HighVolume</eventType><label>x</label></CustomObject>"


@pytest.fixture(scope="module")
def security(tmp_path_factory: pytest.TempPathFactory) -> Security:
    made = init_security(tmp_path_factory.mktemp("platform"), hosts=[], admin="admin", password=PASSWORD)
    made.add_user("shop", PASSWORD, ["manage event Shop*"])
    made.add_user("reader", PASSWORD, ["read event *"])
    made.add_user("keeper", PASSWORD, ["manage event *"])
    return made


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, security: Security) -> Iterator[EventsThread]:
    settings = {"users.file": str(security.users_file)}
    with EventsThread(tmp_path_factory.mktemp("events"), **settings) as running:
        running.define(ORDER_SHIPPED)
        yield running


def ask(service: EventsThread, user: str, method: str, path: str, body: Any, kind: str = "application/json") -> int:
    token = service.run(service.server.access.login(user, PASSWORD)).id
    headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
    sent = {"data": body} if isinstance(body, str) else {"json": body}
    return requests.request(method, service.url + path, headers=headers, timeout=60, **sent).status_code


def define(service: EventsThread, user: str, name: str) -> int:
    return ask(service, user, "POST", f"/tidegate/v1/events?name={name}", OBJECT, "application/xml")


def create(service: EventsThread, user: str, kind: str, name: str, **metadata: str) -> int:
    body = {"FullName": name, "Metadata": metadata}
    return ask(service, user, "POST", f"{BASE}/tooling/sobjects/{kind}", body)


def test_events_are_defined_by_who_may_manage_them(service: EventsThread) -> None:
    assert define(service, "shop", "Shop_Opened__e") == 201
    assert define(service, "keeper", "Other__e") == 201
    for user, name in (("shop", "Order_Shipped__e"), ("shop", "Other__e"), ("reader", "Shop_Closed__e")):
        assert define(service, user, name) == 403, (user, name)


def test_an_event_is_described_to_who_may_use_it(service: EventsThread) -> None:
    define(service, "keeper", "Shop_Seen__e")
    for user, name, status in (
        ("shop", "Shop_Seen__e", 200),
        ("shop", "Order_Shipped__e", 404),
        ("keeper", "Order_Shipped__e", 200),
    ):
        assert ask(service, user, "GET", f"{BASE}/sobjects/{name}/describe", None) == status, (user, name)


def test_a_channel_brings_no_events_that_its_owner_may_not_read(service: EventsThread) -> None:
    define(service, "keeper", "Shop_Sold__e")
    channel = {"channelType": "event", "label": "x"}
    assert create(service, "shop", "PlatformEventChannel", "Order__chn", **channel) == 403
    assert create(service, "shop", "PlatformEventChannel", "Shop__chn", **channel) == 201
    member = {"eventChannel": "Shop__chn"}
    kind = "PlatformEventChannelMember"
    assert create(service, "shop", kind, "Shop_chn_Mine", **member, selectedEntity="Shop_Sold__e") == 201
    assert create(service, "shop", kind, "Shop_chn_Other", **member, selectedEntity="Order_Shipped__e") == 403
    assert create(service, "keeper", "PlatformEventChannel", "Order__chn", **channel) == 201
    other = {"eventChannel": "Order__chn", "selectedEntity": "Shop_Sold__e"}
    assert create(service, "shop", kind, "Shop_chn_There", **other) == 403


def test_an_event_has_as_many_fields_as_salesforce_takes(service: EventsThread) -> None:
    fields = "".join(
        f"<fields><fullName>F{n}__c</fullName><label>x</label><type>Checkbox</type><defaultValue>false</defaultValue></fields>"
        for n in range(801)
    )
    body = OBJECT.replace("<label>x</label>", f"<label>x</label>{fields}", 1)
    path = "/tidegate/v1/events?name=Wide__e"
    assert ask(service, "keeper", "POST", path, body, "application/xml") == 400
