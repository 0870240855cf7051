"""The page about change events works as described: PostgreSQL, its connector, the platform, a subscriber."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until
from tests.support.pages import ROOT, blocks
from tests.support.platform import running_platform, tidegate

PAGE = ROOT / "docs/how-to/change-events.md"
STEPS = (
    "INSERT INTO customers VALUES (1, 'Ada', 'High St', 'York', 'secret')",
    "UPDATE customers SET city = 'Hull' WHERE id = 1",
    "UPDATE customers SET street = NULL, city = NULL WHERE id = 1",
    "DELETE FROM customers WHERE id = 1",
)


@pytest.mark.proof
@pytest.mark.servers
def test_changes_of_a_table_arrive_as_the_page_says(postgres_server: PostgresServer, tmp_path: Path) -> None:
    connector, entity = (json.loads(block.text) for block in blocks(PAGE, "json"))
    name = "change_events_page"
    with postgres_server.connect() as root:
        root.execute(f"CREATE DATABASE {name}".encode())
    connector["config"] |= {
        "database.port": str(postgres_server.port),
        "database.user": postgres_server.user,
        "database.dbname": name,
        "slot.name": name,
        "slot.drop.on.stop": "true",
        "poll.interval.ms": "20",
    }
    (tmp_path / "source.json").write_text(json.dumps(connector))
    (tmp_path / "customer.json").write_text(json.dumps(entity))
    with postgres_server.connect(name) as database:
        database.execute(
            "CREATE TABLE customers (id int PRIMARY KEY, name text, street text, city text, secret text); "
            "ALTER TABLE customers REPLICA IDENTITY FULL; INSERT INTO customers VALUES (9, 'There before', '', '', '')"
        )
        with running_platform(tmp_path, "--without", "triggers") as platform:
            where = ("--data", platform.data)
            tidegate("events", "entities", "define", tmp_path / "customer.json", *where)
            platform.create(connector["name"], **connector["config"])
            # Before the connector follows the log, changes are part of its snapshot, which is no event.
            following = f"SELECT 1 FROM pg_replication_slots WHERE slot_name = '{name}' AND active".encode()
            wait_until(lambda: bool(database.execute(following).fetchall()), "the connector follows the database's log")
            database.execute("; ".join(STEPS).encode())  # one transaction
            printed = tidegate("events", "subscribe", "/data/ChangeEvents", "--replay", "-2", "-n", "4", *where)
    hold([json.loads(line) for line in printed.stdout.splitlines()])


def hold(events: list[dict[str, Any]]) -> None:
    headers = [event["ChangeEventHeader"] for event in events]
    assert [header["changeType"] for header in headers] == ["CREATE", "UPDATE", "UPDATE", "DELETE"]
    assert [header["recordIds"] for header in headers] == [["1"]] * 4
    assert [header["sequenceNumber"] for header in headers] == [1, 2, 3, 4]
    assert len({header["transactionKey"] for header in headers}) == 1
    assert {header["changeOrigin"].rpartition("=")[2] for header in headers} == {"shop"}
    created, moved, cleared, deleted = events
    assert (created["id__c"], created["Name"]) == (1, "Ada")
    assert created["Address__c"] == {"Street": "High St", "City": "York"}
    assert not any("secret" in name for name in created)
    # the record's fields: header, four of the system's, id__c, Name, Address__c
    assert moved["ChangeEventHeader"]["changedFields"] == ["0x08", "7-0x02"]
    assert moved["Address__c"] == {"Street": None, "City": "Hull"}
    assert cleared["ChangeEventHeader"]["nulledFields"] == ["0x80"]
    assert (deleted["Name"], deleted["ChangeEventHeader"]["changedFields"]) == (None, [])
