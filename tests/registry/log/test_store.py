"""Writes that fail, through the HTTP API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from starlette.testclient import TestClient

from registry.errors import StoreError
from registry.model.records import KeyType, RecordKey, encode_key, encode_value
from tests.registry.conftest import MemoryLog
from tests.servers.process import answer_when

Reopened = Callable[..., TestClient]


def sent(client: TestClient, subject: str, schema: str = '"int"') -> Any:
    return client.post(f"/subjects/{subject}/versions", json={"schema": schema})


def registered(client: TestClient, subject: str, schema: str = '"int"') -> int:
    """The id, once the log has answered in the little time that it is given here."""
    return int(
        answer_when(lambda answer: answer.status_code == 200, lambda: sent(client, subject, schema), "an id").json()[
            "id"
        ]
    )


def test_a_refused_write_is_50001_and_leaves_nothing(log: Any, client: TestClient) -> None:
    log.failure = StoreError("the disk is full")
    answer = sent(client, "s")
    assert (answer.status_code, answer.json()) == (500, {"error_code": 50001, "message": "the disk is full"})
    assert client.get("/subjects").json() == []
    log.failure = None
    assert sent(client, "s").json()["id"] == 1


def test_a_write_without_an_answer_is_50002(log: Any, reopened: Reopened) -> None:
    with reopened(log, timeout_ms=50) as client:
        log.silent = True
        answer = sent(client, "s")
        assert (answer.status_code, answer.json()["error_code"]) == (500, 50002)
        log.silent = False
        assert registered(client, "s") == 1


def test_a_late_write_is_seen_before_the_next_decision(log: Any, reopened: Reopened) -> None:
    with reopened(log, timeout_ms=50) as client:
        log.silent = True
        assert sent(client, "s").json()["error_code"] == 50002
        late = {"subject": "s", "version": 1, "id": 1, "schemaType": "AVRO", "schema": '"int"', "deleted": False}
        log.records.append((encode_key(RecordKey(KeyType.SCHEMA, "s", 1)), encode_value(late)))
        log.silent = False
        assert registered(client, "t", '"string"') == 2
        assert registered(client, "s") == 1
        assert client.get("/subjects/s/versions").json() == [1]


def test_a_deletion_covers_the_keys_other_registries_wrote(log: Any, reopened: Reopened) -> None:
    foreign = b'{"subject":"s","keytype":"SCHEMA","magic":1,"version":1}'
    value = b'{"subject":"s","version":1,"id":1,"schema":"\\"int\\"","deleted":true}'
    log.records.append((foreign, value))
    with reopened(log) as client:
        assert client.get("/subjects?deleted=true").json() == ["s"]
        assert client.delete("/subjects/s?permanent=true").json() == [1]
    assert (foreign, None) in log.records
    assert (encode_key(RecordKey(KeyType.SCHEMA, "s", 1)), None) in log.records


def test_records_that_make_no_sense_do_not_stop_the_start(log: Any, reopened: Reopened) -> None:
    log.records += [(None, None), (b"\xff", b""), (b"{}", b"{}"), (b'{"keytype":"SCHEMA"}', b"3")]
    with reopened(log) as client:
        assert client.get("/subjects").json() == []
        assert b"registry_log_records_invalid_total 4.0" in client.get("/metrics").content


RECORD = '{"type":"record","name":"%s","fields":[]}'
KARAPACE = '{"fields":[],"name":"%s","type":"record"}'
"""A schema with sorted members, which are put into another order when the record is read."""


def stored(subject: str, schema_id: int, schema: str, *references: str, version: int = 1) -> tuple[bytes, bytes]:
    """The record of a version that refers to the first versions of other subjects."""
    value = {
        "subject": subject,
        "version": version,
        "id": schema_id,
        "references": [{"name": name.upper(), "subject": name, "version": 1} for name in references],
        "schema": schema % subject.upper() if "%s" in schema else schema,
        "deleted": False,
    }
    return encode_key(RecordKey(KeyType.SCHEMA, subject, version)), encode_value(value)


@pytest.mark.parametrize("schema", [RECORD, KARAPACE])
def test_schemas_that_refer_to_one_another_are_passed_over(log: Any, reopened: Reopened, schema: str) -> None:
    log.records += [
        stored("self", 1, schema, "self"),
        stored("a", 2, schema, "c"),
        stored("b", 3, schema, "a"),
        stored("c", 4, schema, "b"),
        stored("good", 5, schema),
        stored("user", 6, schema, "good"),
    ]
    with reopened(log) as client:
        assert client.get("/subjects").json() == ["a", "b", "good", "user"]
        assert client.get("/schemas/ids/6/schema").json()["name"] == "USER"
        assert b"registry_log_records_invalid_total 2.0" in client.get("/metrics").content
        assert registered(client, "new") == 7


def test_a_chain_of_references_of_any_length_does_not_stop_the_start(log: Any, reopened: Reopened) -> None:
    log.records += [stored("s0", 1, KARAPACE)]
    log.records += [stored(f"s{number}", number + 1, KARAPACE, f"s{number - 1}") for number in range(1, 2000)]
    with reopened(log) as client:
        assert len(client.get("/subjects").json()) == 2000
        assert registered(client, "new") == 2001


def test_an_import_cannot_make_a_schema_refer_to_itself(client: TestClient) -> None:
    def imported(subject: str, schema_id: int, *references: str) -> Any:
        body = {
            "schema": RECORD % subject.upper(),
            "id": schema_id,
            "version": 1,
            "references": [{"name": name.upper(), "subject": name, "version": 1} for name in references],
        }
        return client.post(f"/subjects/{subject}/versions", json=body)

    client.put("/mode", json={"mode": "IMPORT"})
    assert imported("a", 1).status_code == imported("b", 2, "a").status_code == 200
    refused = imported("a", 3, "b")
    assert (refused.status_code, refused.json()["error_code"]) == (422, 42201)
    assert "refers to itself" in refused.json()["message"]


POISON = [
    *[(f'{{"keytype":"SCHEMA","subject":"s","version":1,"magic":{magic}}}', "{}") for magic in ("1", "[]")],
    *[
        ('{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', json.dumps({"id": 1, "schema": '"int"', **other}))
        for other in (
            {"schemaType": {}},
            {"schemaType": "XML"},
            {"schema": "no schema"},
            {"schema": "\ud800"},
            {"schema": '{"type":"record","fields":[{"name":"f","type":"int"}]}'},
            {"schema": "[" * 100_000},
            {"schema": '{"fields":' * 10_000, "references": [{"name": "a", "subject": "s", "version": 1}]},
            {"references": [{"name": [], "subject": "s", "version": 7}]},
            {"metadata": [], "ruleSet": "rules"},
        )
    ],
    ('{"keytype":"CONFIG","subject":"s","magic":0}', '{"compatibilityLevel":[1],"alias":{},"defaultMetadata":3}'),
    ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":{"a":1},"normalize":"x"}'),
    ('{"keytype":"MODE","subject":"s","magic":0}', '{"mode":[]}'),
    ('{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', '{"version":"x"}'),
    ('{"keytype":"CLEAR_SUBJECT","subject":5,"magic":0}', "{}"),
    ('{"keytype":"CONTEXT","tenant":"default","context":[],"magic":0}', "{}"),
    ('{"keytype":"ASSOC","subject":"s","magic":0}', '{"guid":5}'),
    ('{"keytype":["SCHEMA"]}', "[]"),
    ("[" * 100_000, "[" * 100_000),
]


@pytest.mark.parametrize(("key", "value"), POISON, ids=[key[:60] + value[:60] for key, value in POISON])
def test_no_record_keeps_the_registry_from_answering(log: Any, reopened: Reopened, key: str, value: str) -> None:
    log.records += [stored("good", 7, RECORD), (key.encode(), value.encode()), stored("good", 8, '"long"', version=2)]
    with reopened(log) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/subjects/good/versions").json() == [1, 2]
        for path in (
            "/subjects",
            "/schemas?findTags=*",
            "/config",
            "/config/s?defaultToGlobal=true",
            "/mode",
            "/contexts",
        ):
            assert client.get(path).status_code < 500, path
        assert client.get("/subjects/s/versions/1?findTags=*").status_code < 500
        assert sent(client, "good", '"long"').json()["id"] == 8
        assert sent(client, "other").status_code == 200


class Rude(MemoryLog):
    """A log in which another registry writes without asking, just before ours."""

    rival: tuple[bytes, bytes] | None = None

    async def append(self, records: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int) -> int:
        if self.rival is not None:
            self.records.append(self.rival)
            self.rival = None
        return await super().append(records, timestamp_ms)


def test_a_write_that_the_state_refuses_is_not_acknowledged(reopened: Reopened) -> None:
    log = Rude()
    with reopened(log) as client:
        assert registered(client, "s") == 1
        log.rival = stored("theirs", 2, '"long"')
        refused = sent(client, "ours", '"string"')
        assert (refused.status_code, refused.json()["error_code"]) == (500, 50001)
        assert "id 2" in refused.json()["message"]
        assert client.get("/schemas/ids/2/schema").json() == "long"
        assert registered(client, "ours", '"string"') == 3


def test_a_reader_that_dies_is_started_again(log: Any, reopened: Reopened) -> None:
    with reopened(log) as client:
        assert registered(client, "s") == 1
        log.unreadable = asyncio.CancelledError()  # as from a future that somebody else gave up
        log.records.append(stored("theirs", 1, '"int"'))
        assert sent(client, "ours", '"string"').json()["id"] == 2
        assert client.get("/subjects").json() == ["ours", "s", "theirs"]
        assert client.get("/health").json()["status"] == "healthy"
        assert b"registry_log_reader_restarts_total 1.0" in client.get("/metrics").content


def test_health_tells_that_the_log_cannot_be_read(log: Any, reopened: Reopened) -> None:
    with reopened(log, timeout_ms=50) as client:
        answer = client.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (200, "healthy")
        log.deaf = True
        answer = client.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (503, "unhealthy")
        assert "offset 0" in answer.json()["message"]
        log.deaf = False
        log.records.append(stored("unseen", 1, '"int"'))  # which the reader is not told of
        assert client.get("/health").status_code == 503
        log.records.append(stored("seen", 2, '"long"'))
        log.tell()
        assert client.get("/health").status_code == 200


def test_modes_can_be_locked(log: Any, reopened: Reopened) -> None:
    with reopened(log, mode_mutable=False) as client:
        assert client.put("/mode", json={"mode": "READONLY"}).json()["error_code"] == 42205
        assert client.delete("/mode").json()["error_code"] == 42205
