"""The README's connectors keep a Delta table like a table of PostgreSQL, and its Python reads it with DuckDB."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer
from tests.support.pages import ROOT, blocks
from tests.support.platform import running_platform, tidegate, until

README = ROOT / "README.md"
STEPS = (
    "INSERT INTO customers VALUES (2, 'Charles'), (3, 'Luigi')",
    "UPDATE customers SET name = 'Ada Lovelace' WHERE id = 1",
    "DELETE FROM customers WHERE id = 3",
    "ALTER TABLE customers ADD COLUMN city text",
    "INSERT INTO customers VALUES (4, 'Grace', 'New York')",
)


@pytest.mark.proof
@pytest.mark.servers
def test_a_table_follows_the_log_of_a_database(postgres_server: PostgresServer, tmp_path: Path) -> None:
    source, sink = (json.loads(block.text) for block in blocks(README, "json"))
    (python,) = (block.text for block in blocks(README, "python") if "deltalake" in block.text)
    with postgres_server.connect() as root:
        root.execute("CREATE DATABASE readme_shop")
    source["config"] |= {
        "database.port": str(postgres_server.port),
        "database.user": postgres_server.user,
        "database.dbname": "readme_shop",
        "slot.name": "readme_shop",
        "slot.drop.on.stop": "true",
    }
    sink["config"]["delta.warehouse"] = f"file://{tmp_path}/lake"
    for connector in (source, sink):
        (tmp_path / f"{connector['name']}.json").write_text(json.dumps(connector))
    program = python.replace("/lake/", f"{tmp_path}/lake/")

    def read() -> str:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        return done.stdout

    with postgres_server.connect("readme_shop") as database:
        database.execute(
            "CREATE TABLE customers (id int PRIMARY KEY, name text); INSERT INTO customers VALUES (1, 'Ada')"
        )
        with running_platform(tmp_path, "--without", "triggers", "--without", "events") as platform:
            files = [tmp_path / "shop.json", tmp_path / "customers-table.json"]
            tidegate("connectors", "apply", *files, "--wait", "--data", platform.data)
            until(lambda: "Ada" in read(), "the row of the snapshot")
            for step in STEPS:
                database.execute(step.encode())
            until(lambda: "Grace" in read(), "the newest row")
            shown = read()
    assert "Ada Lovelace" in shown and "Charles" in shown and "New York" in shown and "Luigi" not in shown
