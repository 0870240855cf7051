"""Topics written by other registries: Karapace 6.2.0's as recorded, Confluent's according to its sources.

``topics/*.jsonl`` contain one record per line, key and value as text. Karapace's was made by registering, configuring
and deleting with curl, and read back with ``BatchConsumer``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

Reopened = Callable[..., TestClient]
TOPICS = Path(__file__).with_name("topics")
R = '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int"}]}'


def fill(log: Any, name: str) -> int:
    for line in (TOPICS / name).read_text(encoding="utf-8").splitlines():
        key, value = json.loads(line)
        log.records.append((key.encode(), None if value is None else value.encode()))
    return len(log.records)


def register(client: TestClient, subject: str, schema: str, **more: Any) -> Any:
    return client.post(f"/subjects/{subject}/versions", json={"schema": schema, **more}).json()


def test_a_registry_goes_on_with_karapaces_topic(log: Any, reopened: Reopened) -> None:
    size = fill(log, "karapace-6.2.0.jsonl")
    with reopened(log) as client:
        assert client.get("/subjects").json() == ["a", "b", "c"]
        assert client.get("/subjects?deleted=true").json() == ["a", "b", "c", "e", "f"]
        assert client.get("/config").json()["compatibilityLevel"] == "FULL"
        assert client.get("/config/a").json()["error_code"] == 40408
        assert client.get("/subjects/b/versions/1/schema").json()["fields"][0]["type"] == "n.R"
        assert client.get("/schemas/ids/4").json()["schemaType"] == "JSON"
        # Karapace sorts the members of a schema; it is the same schema under the same id all the same.
        assert client.get("/schemas/ids/2").json()["schema"] == R
        assert register(client, "a", R)["id"] == 2
        answer = client.post("/subjects/b", json={"schema": '{"type":"record","name":"B","fields":[{"name":"r","type":"n.R"}]}',
                                                 "references": [{"name": "n.R", "subject": "a", "version": 2}]})  # fmt: skip
        assert answer.json()["id"] == 3
        assert len(log.records) == size, "all of that was known"
        assert register(client, "other", R)["id"] == 2
        assert register(client, "new", '"double"')["id"] == 7


def test_deleted_schemas_of_karapace_do_not_come_back(log: Any, reopened: Reopened) -> None:
    fill(log, "karapace-6.2.0.jsonl")
    with reopened(log) as client:
        assert client.delete("/config").json()["compatibilityLevel"] == "FULL"
        assert client.delete("/subjects/f?permanent=true").json() == [1]
    assert (b'{"keytype":"CONFIG","subject":null,"magic":0}', None) in log.records
    assert (b'{"keytype":"CONFIG","magic":0}', None) in log.records
    with reopened(log) as client:
        assert client.get("/config").json()["compatibilityLevel"] == "BACKWARD"
        assert "f" not in client.get("/subjects?deleted=true").json()


def test_a_registry_goes_on_with_confluents_topic(
    log: Any, reopened: Reopened, caplog: pytest.LogCaptureFixture
) -> None:
    size = fill(log, "confluent-8.5.jsonl")
    with reopened(log) as client:
        assert client.get("/subjects?subjectPrefix=:*:").json() == [":.ctx:c", "old", "s-value", "t"]
        assert client.get("/subjects?deleted=true").json() == [":.ctx:c", "del", "old", "s-value", "t"]
        assert client.get("/config/s-value").json()["compatibilityLevel"] == "NONE"
        assert client.get("/mode/s3").json() == {"mode": "IMPORT"}
        assert ".ctx" in client.get("/contexts").json()
        assert client.get("/schemas/ids/1").json()["schema"] == R
        assert client.get("/schemas/ids/1?subject=:.ctx:").json()["schema"] == '"boolean"'
        assert client.get("/schemas/ids/7").json()["error_code"] == 40403, "cleared for an import"
        assert register(client, "s-value", R)["id"] == 1
        assert len(log.records) == size
        assert register(client, "t2", '"int"')["id"] > 7, "no id is given again"
        assert client.delete("/subjects/old").json() == [1]
        assert client.delete("/subjects/old?permanent=true").json() == [1]
    assert (b'{"keytype":"SCHEMA","subject":"old","version":1,"magic":0}', None) in log.records
    assert caplog.text.count("FUTURE") == 1, "one line for a kind of record, however many there are"
