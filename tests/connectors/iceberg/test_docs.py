"""The page about Iceberg tables works as described: PostgreSQL's log, a table, DuckDB."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until
from tests.support.iceberg import iceberg_rows
from tests.support.pages import ROOT, blocks
from tests.support.platform import running_platform, tidegate

PAGE = ROOT / "docs/how-to/connectors/iceberg.md"


@pytest.mark.long
@pytest.mark.servers
@pytest.mark.proof  # a platform, a database and two connectors
def test_a_table_follows_a_databases_log(postgres_server: PostgresServer, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    shown = [json.loads(block.text.replace("/lake/", f"{lake}/")) for block in blocks(PAGE, "json")]
    source, sink = (
        next(each for each in shown if each["name"] == name) for name in ("customers-source", "customers-table")
    )
    name = "iceberg_page"
    with postgres_server.connect() as root:
        root.execute(f"CREATE DATABASE {name}".encode())
    source["config"] |= {
        "database.port": str(postgres_server.port),
        "database.user": postgres_server.user,
        "database.dbname": name,
        "slot.name": name,
        "slot.drop.on.stop": "true",
        "poll.interval.ms": "20",
    }
    files = [tmp_path / f"{each['name']}.json" for each in (source, sink)]
    for file, each in zip(files, (source, sink), strict=True):
        file.write_text(json.dumps(each))

    def table() -> dict[int, tuple[str, str | None]]:
        found = iceberg_rows(sink["config"], "shop.customers").to_pylist()
        return {each["id"]: (each["name"], each.get("city")) for each in found}

    with postgres_server.connect(name) as database:
        database.execute(
            "CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL); INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bo'), (3, 'Cy')"
        )
        with running_platform(tmp_path, "--without", "events") as platform:
            tidegate("connectors", "apply", *files, "--data", platform.data)
            wait_until(
                lambda: table() == {1: ("Ada", None), 2: ("Bo", None), 3: ("Cy", None)}, "the snapshot in the table", 60
            )
            database.execute(
                "UPDATE customers SET name = 'Bob' WHERE id = 2; DELETE FROM customers WHERE id = 3; "
                "ALTER TABLE customers ADD city text; INSERT INTO customers VALUES (4, 'Di', 'York')"
            )
            expected = {1: ("Ada", None), 2: ("Bob", None), 4: ("Di", "York")}
            wait_until(lambda: table() == expected, "the changes in the table", 60)
    (code,) = (block.text.replace("/lake/", f"{lake}/") for block in blocks(PAGE, "python"))
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert [line.split() for line in printed.replace("│", " ").splitlines() if line.strip(" │")[:1].isdigit()] == [
        ["1", "Ada"],
        ["2", "Bob"],
        ["4", "Di"],
    ]
