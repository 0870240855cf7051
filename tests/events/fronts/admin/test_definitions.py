from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
import requests

from tests.support.events import EventsThread


def call(
    service: EventsThread, method: str, path: str, kind: str = "application/json", **more: Any
) -> requests.Response:
    headers = {"Authorization": f"Bearer {service.token()}", "Content-Type": kind}
    return requests.request(method, f"{service.url}/tidegate/v1/events{path}", headers=headers, timeout=60, **more)


def test_an_event_defined_from_avro_can_be_published_at_once(service: EventsThread) -> None:
    avro = '{"type": "record", "name": "Made__e", "fields": [{"name": "A__c", "type": "string"}]}'
    made = call(service, "POST", "", data=avro)
    assert made.status_code == 201
    assert made.json()["channel"] == "/event/Made__e"
    headers = {"Authorization": f"Bearer {service.token()}"}
    where = f"{service.url}/services/data/v60.0/sobjects/Made__e"
    assert requests.post(where, json={"A__c": "x"}, headers=headers, timeout=60).status_code == 201
    assert call(service, "GET", "/Made__e").json() == made.json()
    assert {"Made__e", "Order_Shipped__e"} <= {event["name"] for event in call(service, "GET", "").json()}


def test_an_event_is_defined_from_metadata_xml(service: EventsThread) -> None:
    xml = "<CustomObject><eventType>HighVolume</eventType><label>From XML</label><fields><fullName>A__c</fullName><type>Date</type></fields></CustomObject>"
    made = call(service, "POST", "?name=From_Xml__e", "text/xml; charset=utf-8", data=xml)
    assert made.json()["schema"]["fields"][2]["doc"].startswith("Data:DateOnly:")


def test_a_zip_of_metadata_defines_all_its_events_and_a_definition_is_shown_as_metadata(service: EventsThread) -> None:
    xml = "<CustomObject><eventType>HighVolume</eventType><label>{}</label></CustomObject>"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in ("One__e", "Two__e"):
            archive.writestr(f"unpackaged/objects/{name}.object", xml.format(name[:3]))
    made = call(service, "POST", "?retentionMs=86400000000", "application/zip", data=data.getvalue())
    assert [event["name"] for event in made.json()] == ["One__e", "Two__e"]
    assert call(service, "GET", "/One__e").json()["retentionMs"] == 86_400_000_000
    headers = {"Authorization": f"Bearer {service.token()}", "Accept": "application/xml"}
    shown = requests.get(f"{service.url}/tidegate/v1/events/two__e", headers=headers, timeout=60).text
    assert "<label>Two</label>" in shown
    assert call(service, "POST", "?retentionMs=long", data="{}").status_code == 400


@pytest.mark.parametrize(
    ("kind", "body", "status", "code"),
    [
        ("application/json", "{", 400, "FIELD_INTEGRITY_EXCEPTION"),
        ("application/json", b"\xff", 400, "JSON_PARSER_ERROR"),
        ("application/json", "[" * 100_000, 400, "FIELD_INTEGRITY_EXCEPTION"),
        ("application/xml", "<a/>", 400, "FIELD_INTEGRITY_EXCEPTION"),
        ("application/xml", "<a", 400, "MALFORMED_XML"),
        ("application/zip", b"PK", 400, "FIELD_INTEGRITY_EXCEPTION"),
        ("text/plain", "x", 415, "UNSUPPORTED_MEDIA_TYPE"),
    ],
)
def test_an_invalid_definition_is_refused(
    service: EventsThread, kind: str, body: str | bytes, status: int, code: str
) -> None:
    answer = call(service, "POST", "", kind, data=body)
    assert (answer.status_code, answer.json()[0]["errorCode"]) == (status, code)


def test_the_door_is_closed_without_a_session(service: EventsThread) -> None:
    for method in ("GET", "POST"):
        assert requests.request(method, f"{service.url}/tidegate/v1/events", timeout=60).status_code == 401
