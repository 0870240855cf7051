"""An incremental snapshot requested by a signal, and its notifications, compared with Debezium's."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from connect.api import RecordBatch
from connect.bench import Bench
from connectors.debezium.incremental.progress import MEMBER_PREFIX, Progress
from connectors.mysql.source import MariaDbSource
from connectors.postgres.setup import drop_slot
from connectors.postgres.source import PostgresSource
from tests.support.debezium.record_signals import AFTER, BEFORE, NAME, RECORDED, connector_config, signal
from tests.support.debezium.replay import comparable, records_of

pytestmark = [pytest.mark.servers, pytest.mark.proof]
_SOURCES: dict[str, Any] = {"mariadb": MariaDbSource, "postgresql": PostgresSource}
_OF_THE_RUN = ("gtid", "file", "pos", "thread", "server_id")


@cache
def recorded() -> dict[str, Any]:
    with gzip.open(RECORDED) as file:
        data: dict[str, Any] = json.load(file)
    return data


def _replayed(database: str, server: Any, folder: Path) -> list[RecordBatch]:
    """The batches from our connector for the steps that were run when Debezium was recorded."""
    with server.connect("" if database == "mariadb" else "postgres") as root:
        root.cursor().execute(f"CREATE DATABASE {NAME}")
    schema = NAME if database == "mariadb" else "public"
    kept = {"schema.history.internal": "FileSchemaHistory", "schema.history.internal.file.filename": str(folder / "h")}
    config = connector_config(database, schema, server.port, server.user)
    bench = Bench(_SOURCES[database], config | (kept if database == "mariadb" else {}))
    received: list[RecordBatch] = []
    with server.connect(NAME) as connection, bench.task() as running:
        cursor = connection.cursor()

        def until(done: Any) -> None:
            while not done():
                batches = list(running.task.poll())
                received.extend(batches)
                bench.commit(batches)

        for statement in BEFORE:
            cursor.execute(statement)
        until(lambda: ("Initial Snapshot", "COMPLETED") in [note[:2] for note in _notes(_told(received))])
        cursor.execute(signal(schema))
        until(lambda: ("Incremental Snapshot", "COMPLETED") in [note[:2] for note in _notes(_told(received))])
        cursor.execute(AFTER)
        until(lambda: any(record[1][1]["op"] == "u" for record in _topics(received).get(f"{NAME}.{schema}.orders", ())))
    with server.connect(NAME) as connection:
        if database == "postgresql":
            drop_slot(connection, NAME)
    with server.connect("" if database == "mariadb" else "postgres") as root:
        root.cursor().execute(f"DROP DATABASE {NAME}")
    return received


def _topics(batches: Sequence[RecordBatch]) -> dict[str, list[Any]]:
    made: dict[str, list[Any]] = {}
    for batch in batches:
        if len(batch):
            made.setdefault(batch.topic, []).extend(records_of(batch))
    return made


def _told(batches: Sequence[RecordBatch]) -> list[Any]:
    return _topics([batch for batch in batches if batch.topic == f"{NAME}.told"]).get(f"{NAME}.told", [])


def _notes(records: Sequence[list[Any]]) -> list[tuple[str, str, dict[str, str]]]:
    """Lists of tables in one order, without that of signals, which Debezium names and does not read."""
    notes = []
    for value in (record[1][1] for record in records):
        data = dict(value["additional_data"])
        if "data_collections" in data:
            names = sorted(data["data_collections"].split(","))
            data["data_collections"] = ",".join(name for name in names if not name.endswith(".signals"))
        notes.append((value["aggregate_type"], value["type"], data))
    return notes


def _compared(record: list[Any], schemas: list[Any] | None = None) -> list[Any]:
    key, value, headers = comparable(record, schemas)
    if value is not None and value[1].get("source"):
        source = {name: None if name in _OF_THE_RUN else v for name, v in value[1]["source"].items()}
        if source["snapshot"] == "first":  # Debezium calls no row so where the very first table is empty
            source["snapshot"] = "first_in_data_collection"
        value = [value[0], {**value[1], "source": source}]
    return [key, value, headers]


@pytest.mark.parametrize("database", _SOURCES)
def test_chunks_and_what_is_told_of_them(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server = request.getfixturevalue({"mariadb": "mariadb_server", "postgresql": "postgres_server"}[database])
    theirs, schemas = recorded()[database]["topics"], recorded()[database]["schemas"]
    ours = _topics(_replayed(database, server, tmp_path))
    schema = NAME if database == "mariadb" else "public"
    for table in ("orders", "pairs"):
        topic = f"{NAME}.{schema}.{table}"
        expected = [_compared(record, schemas) for record in theirs[topic]]
        assert [_compared(record) for record in ours[topic]] == expected
    assert sorted(ours) == sorted(theirs)
    assert _notes(ours[f"{NAME}.told"]) == _notes(
        [[k and [schemas[k[0]], k[1]], [schemas[v[0]], v[1]], h] for k, v, h in theirs[f"{NAME}.told"]]
    )


@pytest.mark.parametrize("database", _SOURCES)
def test_positions_within_it_are_read_and_written_as_debezium_does(database: str) -> None:
    positions = [offset for offset in recorded()[database]["offsets"] if offset.get(f"{MEMBER_PREFIX}collections")]
    assert len(positions) > 1
    for offset in positions:
        members = {name: value for name, value in offset.items() if name.startswith(MEMBER_PREFIX)}
        assert Progress.of(offset).members() == members
