"""Each scenario gives the records that Debezium's MariaDB connector wrote; any differences are listed here."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.servers.mariadb import MariaDbServer
from tests.support.debezium.mariadb_scenarios import MARIADB_SCENARIOS
from tests.support.debezium.record_mariadb import RECORDED
from tests.support.debezium.replay import comparable
from tests.support.debezium.replay_mariadb import replayed
from tests.support.debezium.scenarios import Scenario

pytestmark = pytest.mark.servers
_RUN = ("gtid", "file", "pos", "thread", "server_id")


@cache
def recorded() -> dict[str, Any]:
    with gzip.open(RECORDED) as file:
        content: dict[str, Any] = json.load(file)
    return content


def _comparable(record: list[Any], schemas: list[Any] | None = None) -> list[Any]:
    """Without what differs from run to run."""
    key, value, headers = comparable(record, schemas)
    if value is not None and (value[1].get("source") or {}):
        source = {name: None if name in _RUN else v for name, v in value[1]["source"].items()}
        value = [value[0], {**value[1], "source": source}]
    return [key, value, headers]


def _without_differences(record: list[Any], path: str) -> list[Any]:
    """The record without values in which the original's own snapshot and stream differ, or which are wrong there: a
    zero TIMESTAMP is null in its snapshot and the epoch in its stream; nanoseconds beyond 64 bits overflow; the row
    number at DDL is that of an earlier row.
    """
    key, value, headers = record
    if value is None:
        return record
    payload = json.loads(json.dumps(value[1]))
    if (
        key is not None and payload.get("op") == "r" and "hidden" in key[1]
    ):  # its snapshot does not ask for what rows have not
        key = [key[0], {**key[1], "hidden": ""}]
    after = payload.get("after") or {}
    if after.get("id") in (4, 14):
        after.pop("ts", None)
    if "nanos" in path:
        after.pop("dt6", None)
    if payload.get("ddl", "").startswith("DROP TABLE"):  # the original writes the statement anew
        payload["ddl"] = "DROP TABLE"
    if payload.get("op") == "t" or "ddl" in payload:
        payload["source"]["row"], payload["transaction"] = 0, None
    return [key, [value[0], payload], headers]


def _transactions_that_end(records: list[list[Any]]) -> list[list[Any]]:
    """The original begins one at each statement of DDL, and never ends it; it counts a truncation."""
    statuses = [record[1][1].get("status") for record in records]
    kept = [
        r
        for r, now, then in zip(records, statuses, [*statuses[1:], None], strict=True)
        if (now, then) != ("BEGIN", "BEGIN")
    ]
    return kept[:-1] if kept and kept[-1][1][1].get("status") == "BEGIN" else kept


def _of_scenario(records: list[list[Any]], name: str) -> list[list[Any]]:
    """From the topic of schema changes, the records about the scenario's own database; the original also writes SET,
    USE and DROP at a snapshot, and the structure of databases that are not captured.
    """
    return [
        r
        for r in records
        if r[1][1]["source"]["snapshot"] == "false"
        or (r[1][1]["databaseName"] == name and r[1][1]["ddl"].startswith("CREATE"))
    ]


_PROOFS = {"kinds_doubles", "kinds_nanos", "kinds_micros", "only_initial"}
"""Long together, and much like the others."""


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(s, id=s.name, marks=[pytest.mark.proof] if s.name in _PROOFS else []) for s in MARIADB_SCENARIOS],
)
def test_records_are_debezium_s(mariadb_server: MariaDbServer, tmp_path: Path, scenario: Scenario) -> None:
    name = scenario.name
    theirs = recorded()["scenarios"][name]
    ours, history = replayed(mariadb_server, scenario, tmp_path)
    assert sorted(ours) == sorted(theirs)
    for topic, records in theirs.items():
        expected, made = records, ours[topic]
        if topic == name:
            expected, made = (_of_scenario(side, name) for side in (records, made))
        if topic == f"{name}.transaction":
            expected = _transactions_that_end(records)
        expected = [_comparable(record, recorded()["schemas"]) for record in expected]
        made = [_comparable(record) for record in made]
        assert len(made) == len(expected), topic
        for our_record, other in zip(made, expected, strict=True):
            ends = [json.dumps(_without_differences(record, topic), sort_keys=True) for record in (our_record, other)]
            assert ends[0] == ends[1], topic
    _compare_histories(history, recorded()["history"][name], name)


def _compare_histories(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], name: str) -> None:
    """The same structure after the same statements."""

    def kept(records: list[dict[str, Any]]) -> list[Any]:
        of_tables = [r for r in records if r["databaseName"] == name and r["tableChanges"]]
        return [(r["ddl"], r["tableChanges"]) for r in of_tables if not r["ddl"].startswith(("DROP TABLE", "TRUNCATE"))]

    assert kept(ours) == kept(theirs)
