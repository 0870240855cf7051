"""Runs a scenario with our MariaDB connector and returns its records in the form in which Debezium's are stored."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from connect.api import RecordBatch
from connect.bench import Bench
from connectors.mysql.source import MariaDbSource
from tests.servers.mariadb import MariaDbServer
from tests.support.debezium.mariadb_scenarios import statements
from tests.support.debezium.record_mariadb import connector_config, run
from tests.support.debezium.replay import records_of
from tests.support.debezium.scenarios import Scenario

__all__ = ["replayed", "settled"]


def replayed(
    server: MariaDbServer, scenario: Scenario, folder: Path
) -> tuple[dict[str, list[Any]], list[dict[str, Any]]]:
    """The records by topic: [key, value, headers], keys and values as [schema, payload] or None; and those of the history."""
    run(server, "", [f"CREATE DATABASE {scenario.name} CHARACTER SET utf8mb4"])
    run(server, scenario.name, statements(scenario.before))
    history = folder / scenario.name
    kept = {"schema.history.internal": "FileSchemaHistory", "schema.history.internal.file.filename": str(history)}
    bench = Bench(MariaDbSource, connector_config(server, scenario) | kept)
    with bench.task() as running:
        batches = list(settled(server, running.task))
        run(server, scenario.name, scenario.after)
        batches += settled(server, running.task)
    topics: dict[str, list[Any]] = {}
    for batch in filter(len, batches):  # one without records only moves the offset
        topics.setdefault(batch.topic, []).extend(records_of(batch))
    return topics, [json.loads(line) for line in history.read_text().splitlines()]


def settled(server: MariaDbServer, task: Any) -> list[RecordBatch]:
    """The batches up to the current end of the server's log."""
    with server.connect("") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        end = cursor.fetchone()[:2]
    batches: list[RecordBatch] = []
    deadline = time.monotonic() + 60
    while not task._finished:
        batches += task.poll()
        if task._stream is not None:
            offset = task._decoder.offset
            if (offset["file"], offset["pos"]) >= end:
                break
        assert time.monotonic() < deadline, (task._offset, end)
    return batches
