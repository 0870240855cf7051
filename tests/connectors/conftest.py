"""An events service on a real broker, and the login data of connectors for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from events.config import EventsConfig
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.events import PASSWORD, USER, EventsThread
from tidegate.kit.config import parse


@pytest.fixture(scope="session")
def events_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventsThread]:
    broker = TidegateBroker(tmp_path_factory.mktemp("broker"))
    broker.start()
    more = {"bootstrap.servers": broker.bootstrap_servers, "cometd.connect.timeout.ms": 2000}
    try:
        with EventsThread(tmp_path_factory.mktemp("events"), real="log", **more) as running:
            running.define()
            yield running
    finally:
        broker.stop()


@pytest.fixture
def login(events_service: EventsThread) -> Mapping[str, str]:
    app = parse(EventsConfig, {})
    return {
        "salesforce.instance": events_service.secure_url,
        "salesforce.username": USER,
        "salesforce.password": PASSWORD,
        "salesforce.consumer.key": app.client_id,
        "salesforce.consumer.secret": app.client_secret.reveal(),
        "salesforce.ca.file": events_service.addresses["ca"],
    }
