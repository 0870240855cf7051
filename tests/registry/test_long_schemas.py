"""Long schemas are parsed and compared in a thread, so that other requests do not wait, and their size is limited."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from registry.formats.avro.schema import AvroSchema
from registry.formats.json_schema.schema import JsonSchema
from registry.formats.protobuf.schema import ProtobufSchema

JSON_SCHEMA = json.dumps({"properties": {f"p{n}": {"type": "string"} for n in range(1_000)}})
AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": "int"} for n in range(1_000)]})
PROTOBUF = 'syntax = "proto3"; message M { ' + "".join(f"string f{n} = {n + 1};" for n in range(1_500)) + "}"


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, set[str]]]:
    """The names of the threads that parsed and compared."""
    seen: dict[str, set[str]] = {"parse": set(), "compare": set()}
    for kind in (JsonSchema, AvroSchema, ProtobufSchema):
        parse, compare = kind.parse.__func__, kind.reading_problems  # type: ignore[attr-defined]

        def parsing(cls, *arguments, _parse=parse, **more):
            seen["parse"].add(threading.current_thread().name)
            return _parse(cls, *arguments, **more)

        def comparing(self, *arguments, _compare=compare, **more):
            seen["compare"].add(threading.current_thread().name)
            return _compare(self, *arguments, **more)

        monkeypatch.setattr(kind, "parse", classmethod(parsing))
        monkeypatch.setattr(kind, "reading_problems", comparing)
    yield seen


@pytest.mark.parametrize(("kind", "schema"), [("JSON", JSON_SCHEMA), ("AVRO", AVRO), ("PROTOBUF", PROTOBUF)])
def test_no_other_request_waits_for_a_long_schema(
    client: TestClient, threads: dict[str, set[str]], kind: str, schema: str
) -> None:
    other = schema.replace("f1", "g1").replace("p1", "q1")
    for normalize in ("false", "true"):
        for text in (schema, other):
            body, query = {"schema": text, "schemaType": kind}, f"normalize={normalize}"
            client.post(f"/compatibility/subjects/s/versions?{query}", json=body).raise_for_status()
            client.post(f"/subjects/s/versions?{query}", json=body)
            client.post(f"/subjects/s?{query}", json=body)
    assert threads["parse"] == {"schemas_0"}
    assert threads["compare"] == {"schemas_0"}


def test_many_alternatives_in_a_short_text_are_compared_there_too(
    client: TestClient, threads: dict[str, set[str]]
) -> None:
    for count in (200, 199):
        text = json.dumps({"anyOf": [{}] * count})
        client.post("/subjects/s/versions", json={"schema": text, "schemaType": "JSON"}).raise_for_status()
    assert threads["compare"] == {"schemas_0"}


def test_a_schema_that_no_record_of_the_log_could_hold_is_refused(client: TestClient) -> None:
    text = json.dumps({"description": "x" * (1 << 20)})
    for path in ("/subjects/s/versions", "/compatibility/subjects/s/versions"):
        answer = client.post(path, json={"schema": text, "schemaType": "JSON"})
        assert answer.status_code == 422, answer.text
        assert "it may have 1048576" in answer.json()["message"]


def test_the_schemas_that_one_refers_to_are_bounded_together(client: TestClient) -> None:
    for number in range(5):
        text = json.dumps({"description": f"{number}" * 1_000_000})
        client.post(f"/subjects/s{number}/versions", json={"schema": text, "schemaType": "JSON"}).raise_for_status()
    references = [{"name": f"n{number}", "subject": f"s{number}", "version": 1} for number in range(5)]
    body = {"schema": "{}", "schemaType": "JSON", "references": references}
    answer = client.post("/subjects/all/versions", json=body)
    assert answer.status_code == 422 and "they may have 4194304" in answer.json()["message"], answer.text
    answer = client.post("/subjects/all/versions", json={**body, "references": references[:4]})
    assert answer.status_code == 200, answer.text
