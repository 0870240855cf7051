"""Each scenario gives the records that Debezium wrote; any differences are listed here."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

import pytest

from tests.servers.postgres import PostgresServer
from tests.support.debezium.record import RECORDED
from tests.support.debezium.replay import comparable, replayed
from tests.support.debezium.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.servers

_ODD_VALUES = {"d", "ts", "h", "lt", "mo"}
"""Columns in which Debezium's own snapshot and stream differ: dates and timestamps before 1582 (its snapshot counts in the
Julian calendar) and infinite dates, the order of an hstore's pairs, names (null in its stream), money (-5.5 in its snapshot)."""


@cache
def recorded() -> dict[str, Any]:
    with gzip.open(RECORDED) as file:
        content: dict[str, Any] = json.load(file)
    return content


def _without_odd_values(record: list[Any]) -> list[Any]:
    key, value, headers = record
    if value is None or not isinstance(value[1].get("after"), dict) or "jb" not in value[1]["after"]:
        return record
    after = {name: v for name, v in value[1]["after"].items() if name not in _ODD_VALUES}
    # the original length of a numeric without one is 0 in Debezium's snapshot, 131089 in its stream
    schema = json.loads(json.dumps(value[0]).replace('column.length": "131089"', 'column.length": "0"'))
    for row in schema["fields"][:2]:
        for field in row["fields"]:
            if field["field"] == "n" and "parameters" in field:
                field["parameters"].pop("__debezium.source.column.scale", None)
    return [key, [schema, {**value[1], "after": after}], headers]


def _without_name_of_messages(record: list[Any]) -> list[Any]:
    """Debezium counts a transaction's logical messages under a Java object's address."""
    value = record[1]
    if value is not None and value[1].get("data_collections"):
        known = value[1]["data_collections"]
        named = sorted(("message" if name.startswith("io.debezium") else name, count) for name, count in known)
        record = [record[0], [value[0], {**value[1], "data_collections": named}], record[2]]
    return record


def _without_excluded_key(record: list[Any]) -> list[Any]:
    """A key's column that rows do not have is empty in Debezium's snapshot, which does not ask for it, and may be null in its stream."""
    key, value, headers = record
    if key is not None and value is not None and "hidden" in key[1]:
        fields = [{**field, "optional": False} for field in key[0]["fields"]]
        snapshot = {"hidden": ""} if value[1].get("op") == "r" else {}
        key = [{**key[0], "fields": fields}, {**key[1], **snapshot}]
    return [key, value, headers]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_records_are_debezium_s(postgres_server: PostgresServer, scenario: Scenario) -> None:
    theirs = recorded()["scenarios"][scenario.name]
    ours = replayed(postgres_server, scenario)
    assert sorted(ours) == sorted(theirs)
    for topic, records in theirs.items():
        expected = [comparable(record, recorded()["schemas"]) for record in records]
        made = [comparable(record) for record in ours[topic]]
        assert len(made) == len(expected), topic
        for our_record, other in zip(made, expected, strict=True):
            ends = [
                _without_odd_values(_without_name_of_messages(_without_excluded_key(r))) for r in (our_record, other)
            ]
            # NaN is not equal to itself; the text is
            assert json.dumps(ends[0], sort_keys=True) == json.dumps(ends[1], sort_keys=True), topic
