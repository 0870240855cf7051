"""Attacks on the events service over HTTP: logins, SOAP, CometD, REST, definitions; from strangers and a user of one event."""

from __future__ import annotations

import io
import json
import zipfile
from functools import cache
from typing import Any, Final

from tests.hostile.http_attacks import OUTSIDERS, ask
from tests.hostile.siege import Attack, Target

__all__ = ["ATTACKS", "ENVELOPE", "EVENT"]

EVENT: Final = "Mallory__e"
_BASE: Final = "/services/data/v60.0"
_SOAP: Final = "/services/Soap/u/60.0"
ENVELOPE: Final = '<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns:n="urn:partner.soap.sforce.com"><e:Body>{}</e:Body></e:Envelope>'


def _soap(target: Target, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    answer = ask(target, "POST", _SOAP, data, kind="text/xml", may_fail=True, login=False, SOAPAction="login")
    assert answer is None or answer.status_code >= 400, f"{data[:100]!r}: {answer.text[:200]}"
    assert answer is None or "UNKNOWN_EXCEPTION" not in answer.text, f"{data[:100]!r}: {answer.text[:300]}"


def large_xml(target: Target) -> None:
    """Anybody may send SOAP: a login is SOAP."""
    _soap(target, "<a>" * 1_000_000)
    _soap(target, "<a>" + "<b/>" * 1_500_000 + "</a>")
    _soap(target, "<a " + " ".join(f'b{number}="c"' for number in range(200_000)) + "/>")
    _soap(target, "<a>" + "x" * 8_000_000 + "</a>")
    _soap(target, ENVELOPE.format("<n:login>" + "<n:username>x</n:username>" * 100_000 + "</n:login>"))


def odd_xml(target: Target) -> None:
    entities = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(20))
    for text in (
        f'<!DOCTYPE a [<!ENTITY a0 "x">{entities}]><a>&a20;</a>',
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        '<!DOCTYPE a SYSTEM "http://evil.example/x"><a/>',
        "<?xml version='1.0' encoding='UTF-7'?><a/>",
        "<a>" * 50_000 + "</a>" * 50_000,
        "<a xmlns:b='" + "c" * 500_000 + "'/>",
        "<a>" + "&#65;" * 300_000 + "</a>",
        "<!--" + "-" * 500_000,
        "<a><![CDATA[" + "]]" * 300_000,
        "<a/>".encode("utf-16"),
        b"\xff\xfe" + b"\0<" * 200_000,
        b"",
    ):
        _soap(target, text)


def odd_logins(target: Target) -> None:
    for form in (
        "grant_type=password&username=admin&password=",
        "grant_type=password&" + "a=b&" * 100_000,
        "grant_type=" + "%" * 100_000,
        "grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=" + "a" * 500_000,
        "grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
        "grant_type=authorization_code&code=" + "x" * 100_000,
        "grant_type=refresh_token&refresh_token=x",
        "grant_type=client_credentials&client_id=\0",
    ):
        kind = "application/x-www-form-urlencoded"
        answer = ask(target, "POST", "/services/oauth2/token", form.encode(), kind=kind, login=False)
        assert answer is None or answer.status_code >= 400, f"{form[:100]}: {answer.text[:200]}"
        ask(
            target,
            "GET",
            "/services/oauth2/authorize?response_type=code&client_id=x&redirect_uri=" + form[:30_000],
            login=False,
        )


def odd_channels(target: Target) -> None:
    handshake = {"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": ["long-polling"]}
    for body in (
        [handshake] * 5_000,
        [{"channel": "/meta/connect", "clientId": "x", "connectionType": "long-polling"}] * 5_000,
        [{"channel": "/meta/subscribe", "clientId": "x", "subscription": ["/event/a"] * 50_000}],
        [{"channel": "/" + "a/" * 50_000, "data": {}}],
        {"channel": ["x"], "id": {"a": []}},
        [[[]]],
        [None] * 100_000,
    ):
        ask(target, "POST", "/cometd/60.0", body, login=False)
        ask(target, "POST", "/cometd/60.0", body)
    for data in (b"[" * 500_000, b'[{"ext":' * 100_000, b"message=" + b"%5B" * 100_000):
        ask(target, "POST", "/cometd/60.0", data)


def many_sessions(target: Target) -> None:
    """A user's own sessions, up to the bound that there is on them; with subscriptions of all kinds of replay."""
    for _ in range(20):
        shake = [{"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": ["long-polling"]}]
        answer = ask(target, "POST", "/cometd/60.0", shake)
        if answer is None or not answer.json()[0].get("successful"):
            return
        client = answer.json()[0]["clientId"]
        for replay in (-2, -1, 0, 10**30, -(10**30), "x", [], {"a": {}}, 1.5, None):
            wish = {"channel": "/meta/subscribe", "clientId": client, "subscription": f"/event/{EVENT}", "ext": {"replay": {f"/event/{EVENT}": replay}}}  # fmt: skip
            ask(target, "POST", "/cometd/60.0", [wish])


def deep_json(target: Target) -> None:
    for data in (
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b'{"Text__c":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"1" * 500_000,
    ):
        for path in (f"/sobjects/{EVENT}", "/composite", "/composite/batch", "/composite/sobjects", f"/composite/tree/{EVENT}", "/jobs/ingest"):  # fmt: skip
            ask(target, "POST", _BASE + path, data)


def odd_events(target: Target) -> None:
    for body in (
        {"Text__c": "x" * 5_000_000},
        {f"Field{number}__c": 1 for number in range(50_000)},
        {"Text__c": "\ud800"},
        {"Text__c": {"a": [1] * 100_000}},
        {"Text__c": "x", "attributes": {"type": "Witness__e"}},
    ):
        ask(target, "POST", f"{_BASE}/sobjects/{EVENT}", body)
    record = {"attributes": {"type": EVENT}, "Text__c": "x" * 200}
    ask(target, "POST", f"{_BASE}/composite/sobjects", {"records": [record] * 20_000})
    ask(target, "POST", f"{_BASE}/composite/tree/{EVENT}", {"records": [{"attributes": {"type": EVENT, "referenceId": "r"}}] * 5_000})  # fmt: skip


def nested_composites(target: Target) -> None:
    post = {"method": "POST", "url": f"{_BASE}/sobjects/{EVENT}"}
    bomb = [
        {"method": "GET", "url": f"{_BASE}/sobjects/{EVENT}/describe", "referenceId": "all"},
        *(
            {**post, "referenceId": f"r{n}", "body": {"Text__c": "@{all}" * 2_000, "x": ["@{all}"] * 5_000}}
            for n in range(20)
        ),
    ]
    ask(target, "POST", f"{_BASE}/composite", {"compositeRequest": bomb})
    inner: dict[str, Any] = {"method": "GET", "url": _BASE, "referenceId": "x"}
    for _ in range(30):
        inner = {
            "method": "POST",
            "url": f"{_BASE}/composite",
            "referenceId": "x",
            "body": {"compositeRequest": [inner]},
        }
    ask(target, "POST", f"{_BASE}/composite", {"compositeRequest": [inner]})
    ask(target, "POST", f"{_BASE}/composite", {"compositeRequest": [{**post, "referenceId": f"r{n}", "body": {}} for n in range(20_000)]})  # fmt: skip
    batch = [
        {"method": "POST", "url": f"v60.0/sobjects/{EVENT}", "richInput": {"Text__c": "@{x." + "a." * 50_000 + "}"}}
    ]
    ask(target, "POST", f"{_BASE}/composite/batch", {"batchRequests": batch * 25})


def odd_queries(target: Target) -> None:
    for query in (
        "SELECT Id FROM EventBusSubscriber WHERE " + "(" * 10_000 + "Name = 'a'" + ")" * 10_000,
        "SELECT Id FROM EventBusSubscriber WHERE " + " OR ".join(["Name = 'a'"] * 3_000),
        "SELECT " + ",".join(["Id"] * 10_000) + " FROM EventBusSubscriber",
        "SELECT Id FROM EventBusSubscriber WHERE Name LIKE '" + "%a" * 5_000 + "'",
        "SELECT Id FROM EventBusSubscriber WHERE Name IN (" + ",".join(["'a'"] * 5_000) + ")",
        "'" * 30_000,
        "SELECT Id FROM EventBusSubscriber LIMIT 99999999999999999999999999",
        "NOT " * 10_000,
    ):
        for path in ("/query", "/tooling/query"):
            ask(target, "GET", f"{_BASE}{path}?q={query.replace('%', '%25').replace(' ', '+')[:60_000]}")


@cache
def _zips() -> list[bytes]:
    def packed(files: dict[str, bytes]) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return out.getvalue()

    thing = b"<CustomObject><eventType>HighVolume</eventType><label>x</label></CustomObject>"
    deep = b"<a>" * 500_000
    return [
        packed({"objects/Bomb__e.object": bytes(200_000_000)}),
        packed({f"objects/Many{number}__e.object": thing[:-4] for number in range(20_000)}),
        packed({"../../etc/Up__e.object": thing, "/abs/Up__e.object": thing}),
        packed({f"objects/Deep{number}__e.object": deep for number in range(20)}),
        packed({"inner.zip": packed({"inner.zip": bytes(1_000_000)})}),
        packed({"objects/A__e.object": thing})[:-30],
        b"PK\x05\x06" + b"\xff" * 18,
        b"PK" * 500_000,
    ]


def zips(target: Target) -> None:
    """The user may define events, so that archives are looked into."""
    for data in _zips():
        answer = ask(target, "POST", "/tidegate/v1/events", data, kind="application/zip")
        assert answer is None or answer.status_code >= 400, answer.text[:300]


def odd_definitions(target: Target) -> None:
    fields = "".join(
        f"<fields><fullName>F{n}__c</fullName><type>Text</type><length>10</length></fields>" for n in range(20_000)
    )
    for text in (
        f"<CustomObject><eventType>HighVolume</eventType>{fields}</CustomObject>",
        "<CustomObject>" * 100_000,
        '<!DOCTYPE a [<!ENTITY x "y">]><CustomObject>&x;</CustomObject>',
    ):
        ask(target, "POST", "/tidegate/v1/events?name=Mallory_Odd__e", text.encode(), kind="application/xml")
    avro: dict[str, Any] = {"type": "record", "name": "Mallory_Odd__e", "fields": [{"name": f"F{n}__c", "type": ["null", "string"]} for n in range(20_000)]}  # fmt: skip
    ask(target, "POST", "/tidegate/v1/events", avro)
    ask(target, "POST", "/tidegate/v1/events", b'{"type":"record","name":"Mallory_Odd__e","fields":' + b"[" * 100_000)
    conditions = " AND ".join(["(Text__c = 'a'"] * 2_000) + ")" * 2_000
    for filter_ in (conditions, "NOT " * 20_000, "(" * 50_000, "Text__c = '" + "a" * 1_000_000 + "'"):
        metadata = {"FullName": "Mallory_Odd__chn", "Metadata": {"channelType": "event", "label": "x", "eventChannel": "Mallory__chn", "selectedEntity": EVENT, "filterExpression": filter_}}  # fmt: skip
        ask(target, "POST", f"{_BASE}/tooling/sobjects/PlatformEventChannelMember", metadata)


def bulk_jobs(target: Target) -> None:
    answer = ask(target, "POST", f"{_BASE}/jobs/ingest", {"object": EVENT, "operation": "insert", "contentType": "CSV", "lineEnding": "LF"})  # fmt: skip
    if answer is None or answer.status_code != 200:
        return
    path = f"{_BASE}/jobs/ingest/{answer.json()['id']}"
    rows = target.chance.choice([b"Text__c\n" + b'"' * 3_000_000, b",".join([b"Text__c"] * 100_000) + b"\nx", b"\0" * 1_000_000, b"Text__c\n" + b"x," * 1_000_000, b"Text__c\n" + b"\n" * 3_000_000])  # fmt: skip
    ask(target, "PUT", f"{path}/batches", rows, kind="text/csv")
    ask(target, "PATCH", path, {"state": "UploadComplete"})
    ask(target, "GET", f"{path}/failedResults")
    ask(target, "PATCH", path, {"state": "Aborted"})
    ask(target, "DELETE", path)


def of_others(target: Target) -> None:
    """The user is refused where it has no right."""
    for method, path, body in (
        ("POST", f"{_BASE}/sobjects/Witness__e", {"Text__c": "x"}),
        ("GET", f"{_BASE}/sobjects/Witness__e/describe", None),
        ("GET", "/tidegate/v1/events/Witness__e", None),
    ):
        answer = ask(target, method, path, body)
        assert answer is None or answer.status_code in (400, 401, 403, 404), f"{method} {path}: {answer.text[:200]}"
    shake = ask(target, "POST", "/cometd/60.0", [{"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": ["long-polling"]}])  # fmt: skip
    if shake is not None and (client := shake.json()[0].get("clientId")):
        wish = {"channel": "/meta/subscribe", "clientId": client, "subscription": "/event/Witness__e"}
        answer = ask(target, "POST", "/cometd/60.0", [wish])
        assert answer is None or not json.loads(answer.text)[0]["successful"], answer.text


ATTACKS: Final[list[Attack]] = [
    *OUTSIDERS,
    large_xml,
    odd_xml,
    odd_logins,
    odd_channels,
    many_sessions,
    deep_json,
    odd_events,
    nested_composites,
    odd_queries,
    zips,
    odd_definitions,
    bulk_jobs,
    of_others,
]
