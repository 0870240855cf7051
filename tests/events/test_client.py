from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
import responses

from events.client import EventsClient, PublishRefused, UnknownName
from events.errors import InvalidDefinition
from tests.support.events import PASSWORD, USER, EventsThread
from tidegate.kit.errors import TidegateError, UsageError


@pytest.fixture
def client(service: EventsThread) -> Iterator[EventsClient]:
    yield EventsClient(service.url, user=USER, password=PASSWORD, pubsub=service.addresses["pubsub-plain"])


OBJECT = "<CustomObject><eventType>HighVolume</eventType><label>{}</label></CustomObject>"


def test_an_sfdx_folder_is_defined_with_its_field_files(client: EventsClient, tmp_path: Path) -> None:
    folder = tmp_path / "Parcel__e"
    (folder / "fields").mkdir(parents=True)
    (folder / "Parcel__e.object-meta.xml").write_text(OBJECT.format("Parcel"))
    field = "<CustomField><fullName>Weight__c</fullName><type>Number</type><precision>6</precision><scale>1</scale></CustomField>"
    (folder / "fields" / "Weight__c.field-meta.xml").write_text(field)
    made = client.define_file(folder)
    assert [entry["name"] for entry in made["schema"]["fields"]] == ["CreatedDate", "CreatedById", "Weight__c"]
    client.publish("Parcel__e", {"Weight__c": 2.5})
    (received,) = islice(client.follow("Parcel__e", replay_id=-2), 1)
    assert (received.event, received.fields["Weight__c"]) == ("Parcel__e", 2.5)


def test_a_tree_is_defined_with_the_retention_that_is_said(
    service: EventsThread, client: EventsClient, tmp_path: Path
) -> None:
    folder = tmp_path / "objects" / "Kept__e"
    folder.mkdir(parents=True)
    (folder / "Kept__e.object-meta.xml").write_text(OBJECT.format("Kept"))
    (made,) = client.define_files([tmp_path], retention_ms=-1)
    assert (made["name"], client.describe("Kept__e")["retentionMs"]) == ("Kept__e", -1)
    list(client.define_files([tmp_path], retention_ms=400 * 86_400_000))
    assert service.memory_log.retentions["Kept__e"] == 400 * 86_400_000
    list(client.define_files([tmp_path]))
    assert client.describe("Kept__e")["retentionMs"] == 400 * 86_400_000
    assert client.definition("Kept__e").label == "Kept"


def test_a_file_that_is_no_definition_is_refused(client: EventsClient, tmp_path: Path) -> None:
    path = tmp_path / "x.avsc"
    path.write_text("{}")
    with pytest.raises(InvalidDefinition, match="is a record"):
        client.define_file(path)


def test_an_event_that_nobody_defined_is_named_with_the_nearest_one(client: EventsClient, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="there is no event Parcle__e that this user may publish"):
        client.publish("Parcle__e", {})
    (tmp_path / "Parcel__e.object-meta.xml").write_text(OBJECT.format("Parcel"))
    client.define_file(tmp_path / "Parcel__e.object-meta.xml")
    for ask in (
        lambda: client.publish("Parcle__e", {}),
        lambda: client.describe("Parcle__e"),
        lambda: next(client.follow("Parcle__e")),
    ):
        with pytest.raises(UnknownName, match=r"there is no event Parcle__e .*; did you mean Parcel__e\?"):
            ask()


def test_a_refused_event_says_why(client: EventsClient) -> None:
    with pytest.raises(PublishRefused, match="INVALID_FIELD: No such column 'Nope__c'"):
        client.publish("Order_Shipped__e", {"Nope__c": 1})


def test_more_events_than_one_request_asks_for_all_come(client: EventsClient) -> None:
    for number in range(130):
        client.publish("Order_Shipped__e", {"Order_Number__c": f"l-{number}"})
    topics = [
        received.fields["Order_Number__c"] for received in islice(client.follow("Order_Shipped__e", replay_id=-2), 130)
    ]
    assert topics == [f"l-{number}" for number in range(130)]


LOGIN = (
    '<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><sessionId>s</sessionId>'
    "<organizationId>o</organizationId></Body></Envelope>"
)


@responses.activate
def test_an_address_that_is_no_events_service_is_reported() -> None:
    for body in ("<html>", "<a/>", '{"version": 1}'):
        responses.upsert(responses.POST, "http://other/services/Soap/u/60.0", body=body)
        with pytest.raises(TidegateError, match="what answers at http://other .* is no events service"):
            EventsClient("http://other", user="u", password="p")
    responses.upsert(responses.POST, "http://other/services/Soap/u/60.0", body=LOGIN)
    responses.get("http://other/tidegate/v1/events", body="<html>")
    with pytest.raises(TidegateError, match="is no events service"):
        EventsClient("http://other", user="u", password="p").events()
    with pytest.raises(TidegateError, match="no events service answers at http://nobody"):
        EventsClient("http://nobody", user="u", password="p")
    with pytest.raises(TidegateError, match="no scheme: cannot be asked"):
        EventsClient("no scheme://", user="u", password="p")


@pytest.mark.parametrize("replay_id", [-3, 1 << 63])
def test_a_replay_id_that_none_could_be_is_refused(client: EventsClient, replay_id: int) -> None:
    with pytest.raises(UsageError, match="replay id .* is none"):
        next(client.follow("Order_Shipped__e", replay_id=replay_id))


def test_a_name_is_one_part_of_a_path(client: EventsClient) -> None:
    for name in ("../events?x=", "a/b", "#"):
        with pytest.raises(UnknownName, match=f"there is no event {re.escape(name)} that this user may see"):
            client.describe(name)


def test_an_authority_that_is_not_trusted_is_said_to_be_the_trouble(service: EventsThread) -> None:
    with pytest.raises(TidegateError, match="REQUESTS_CA_BUNDLE"):
        EventsClient(service.secure_url, user=USER, password=PASSWORD)
