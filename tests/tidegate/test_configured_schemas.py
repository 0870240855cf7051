"""Subjects that are imported into a registry, and an import that is stopped in the middle."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from registry.client import Reference, RegistryClient
from registry.client.errors import Refused
from tests.support.registry import RegistryThread
from tidegate.configuration.parts import Document
from tidegate.configuration.schemas import Subjects

ITEM = '{"type": "record", "name": "Item", "fields": [{"name": "id", "type": "long"}]}'
ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "item", "type": "Item"}]}'


@pytest.fixture
def exported() -> dict[str, Document]:
    """Two subjects that refer to each other by turns: ids 1 and 3, and 2."""
    with RegistryThread() as registry, RegistryClient(registry.url) as client:
        client.register("order", '"string"')
        client.set_compatibility("NONE", "order")
        client.register("item", ITEM)
        client.register("order", ORDER, references=[Reference("Item", "item", 1)])
        client.set_mode("item", "READONLY")
        return Subjects(client).read()


@pytest.fixture
def client() -> Iterator[RegistryClient]:
    with RegistryThread() as registry, RegistryClient(registry.url) as client:
        yield client


def imported(subjects: Subjects, documents: dict[str, Document]) -> dict[str, str]:
    """Import what differs; the differences that are left."""
    there = subjects.read()
    changes = {name: (document, there.get(name)) for name, document in documents.items()}
    subjects.write({name: pair for name, pair in changes.items() if subjects.difference(*pair)})
    there = subjects.read()
    return {name: subjects.difference(document, there.get(name)) for name, document in documents.items()}


def test_subjects_are_imported_with_their_ids_levels_and_modes(
    client: RegistryClient, exported: dict[str, Document]
) -> None:
    subjects = Subjects(client)
    assert imported(subjects, exported) == {"item": "", "order": ""}
    assert subjects.read() == exported
    assert [version["id"] for version in exported["order"]["versions"]] == [1, 3]
    assert exported["item"]["mode"] == "READONLY" and exported["order"]["mode"] is None


@pytest.mark.parametrize("fails_at", range(9))
def test_an_import_that_one_failed_request_stops_goes_on_later(
    client: RegistryClient, exported: dict[str, Document], fails_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    subjects, ask, count = Subjects(client), client._transport.ask, 0
    there = subjects.read()

    def failing(method: str, path: str, **more: object) -> object:
        nonlocal count
        if method != "GET":
            count += 1
            if count == fails_at + 1:
                raise Refused("the connection was lost")
        return ask(method, path, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(client._transport, "ask", failing)
    with pytest.raises(Refused, match="lost"):
        subjects.write({name: (document, there.get(name)) for name, document in exported.items()})
    monkeypatch.undo()
    assert imported(subjects, exported) == {"item": "", "order": ""}
    assert subjects.read() == exported


def test_a_mode_that_a_killed_import_left_is_taken_back(client: RegistryClient, exported: dict[str, Document]) -> None:
    subjects = Subjects(client)
    imported(subjects, exported)
    client.set_mode("order", "IMPORT", force=True)
    assert subjects.difference(exported["order"], subjects.read()["order"]) == "take its mode back"
    assert imported(subjects, exported) == {"item": "", "order": ""}


def test_a_version_that_is_another_one_there_is_not_touched(
    client: RegistryClient, exported: dict[str, Document]
) -> None:
    client.register("item", '"int"')
    words = Subjects(client).difference(exported["item"], Subjects(client).read()["item"])
    assert words == "cannot: version 1 differs from what is registered"
