"""Triggers in several processes, and triggers whose partitions change: each event is handled by exactly one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from events.bus.publishing import JsonEvent
from events.server.triggers import TriggersServer
from events.store.catalog import Catalog
from events.triggers.config import TriggersConfig
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.events import EventsThread
from tests.support.platform import until
from tidegate.kit.config import parse

TRIGGER = """
from pathlib import Path

from events.triggers import trigger


@trigger("Order_Shipped__e", batch_size=5, replay="earliest", partitions={partitions}, partition_key="Order_Number__c")
def noted(events, context):
    with Path({out!r}).open("a") as file:
        file.write("".join(event["Order_Number__c"] + "\\n" for event in events))
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TidegateBroker]:
    made = TidegateBroker(tmp_path_factory.mktemp("broker"))
    made.start()
    yield made
    made.stop()


class Project:
    """A project folder, an events service to publish with, and several trigger processes beside it."""

    def __init__(self, folder: Path, service: EventsThread, broker: TidegateBroker) -> None:
        self.folder, self.service, self.out = folder, service, folder / "noted"
        self._broker = broker
        (folder / "project").mkdir()
        self.out.touch()

    def write(self, partitions: int) -> None:
        text = TRIGGER.format(partitions=partitions, out=str(self.out))
        (self.folder / "project" / "noted.py").write_text(text)

    def start(self, name: str) -> TriggersServer:
        properties = {
            "bootstrap.servers": self._broker.bootstrap_servers,
            "triggers.dir": str(self.folder / "project"),
            "data.dir": str(self.folder / name),
            "triggers.reload.ms": "0",
        }
        server = TriggersServer(parse(TriggersConfig, properties))
        server._catalog = Catalog(self.service.schemas, server._log)
        self.service.run(server.start(), 60)
        return server

    def stop(self, server: TriggersServer) -> None:
        self.service.run(server.stop(), 60)

    def publish(self, *numbers: str) -> None:
        events = [JsonEvent("Order_Shipped__e", {"Order_Number__c": number}) for number in numbers]
        self.service.run(self.service.server._publisher.publish_json(events, user=self.service.user), 60)

    def noted(self) -> Counter[str]:
        return Counter(self.out.read_text().splitlines())


@pytest.fixture
def project(broker: TidegateBroker, tmp_path: Path) -> Iterator[Project]:
    with EventsThread(tmp_path / "events", real="log", **{"bootstrap.servers": broker.bootstrap_servers}) as service:
        service.define()
        yield Project(tmp_path, service, broker)


@pytest.mark.proof
def test_another_process_stands_by_and_a_new_layout_loses_nothing(project: Project) -> None:
    project.write(partitions=1)
    first, second = project.start("first"), project.start("second")
    numbers = [f"a-{number}" for number in range(20)]
    project.publish(*numbers)
    until(lambda: set(project.noted()) == set(numbers), "the first events are noted")
    assert project.noted() == Counter(numbers)
    project.stop(first)
    more = [f"b-{number}" for number in range(20)]
    project.publish(*more)
    until(lambda: set(project.noted()) == {*numbers, *more}, "who stood by has taken over")
    project.stop(second)
    project.publish("while none ran")
    project.write(partitions=3)
    third = project.start("first")
    last = [f"c-{number}" for number in range(20)]
    project.publish(*last)
    until(lambda: set(project.noted()) == {*numbers, *more, *last, "while none ran"}, "three partitions have it all")
    project.stop(third)
    assert project.noted() == Counter([*numbers, *more, *last, "while none ran"])
