"""Writes that go wrong, through the HTTP face."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.testclient import TestClient

from registry.errors import StoreError
from registry.records import KeyType, RecordKey, encode_key, encode_value
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


def test_modes_can_be_locked(log: Any, reopened: Reopened) -> None:
    with reopened(log, mode_mutable=False) as client:
        assert client.put("/mode", json={"mode": "READONLY"}).json()["error_code"] == 42205
        assert client.delete("/mode").json()["error_code"] == 42205
