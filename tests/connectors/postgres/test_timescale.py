"""TimescaleDb compared with Debezium's, whose records were recorded with the same catalog (see RecordTimescale.java)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connect.api import ConnectError, Header, Record, RecordBatch, RetriableConnectError, Schema, SchemaType
from connectors.postgres.timescale import TimescaleDb, TimescaleDbConfig
from tests.servers.process import free_ports
from tidegate.kit.config import parse, validate

pytestmark = pytest.mark.servers

HERE = Path(__file__).parent
TEXT = Schema(SchemaType.STRING)
WHERE = Schema.struct({"schema": TEXT.as_optional(), "table": TEXT.as_optional()})
CASES = [json.loads(line) for line in (HERE / "timescale.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def database(postgres_server):
    """A database with the catalog of the recording."""
    with postgres_server.connect() as root:
        root.execute("CREATE DATABASE timescale")
    with postgres_server.connect("timescale") as connection:
        connection.execute((HERE / "timescale.sql").read_bytes())
        yield connection


@pytest.fixture
def server(postgres_server, database):
    return {
        "database.hostname": "127.0.0.1",
        "database.port": str(postgres_server.port),
        "database.user": postgres_server.user,
        "database.dbname": "timescale",
    }


def batch(rows, name="s.t.Envelope"):
    schema = Schema.struct({"source": WHERE, "op": TEXT}, name=name)
    records = [
        Record(
            "s.t",
            row and {"op": "c", "source": dict(zip(("schema", "table"), row, strict=True))},
            schema,
            headers=(Header("h", "v", TEXT),),
        )
        for row in rows
    ]
    return RecordBatch.from_records(records, source_offset={"at": 1})


def transformed(server, rows, name="s.t.Envelope", **config):
    made = TimescaleDb(parse(TimescaleDbConfig, server | {n.replace("_", "."): v for n, v in config.items()}))
    try:
        batches = made.apply(batch(rows, name))
    finally:
        made.close()
    return batches


def test_records_become_what_debezium_makes_of_them(server):
    wrong = []
    for case in CASES:
        config = {name.replace(".", "_"): value for name, value in case["config"].items()}
        (made,) = transformed(server, [(case["schema"], case["table"])], case["name"], **config)
        (record,) = made.records()
        before = f"s.{case['schema']}.{case['table']}".replace("None", "null")
        topic = before if record.topic == "s.t" else record.topic
        record_parts = (topic, list(record.value["source"].values()), {h.key: h.value for h in record.headers})
        if record_parts != (case["topic"], case["source"], case["headers"]):
            wrong.append(f"{case}: {record_parts}")
    assert not wrong, f"{len(wrong)} of {len(CASES)}\n" + "\n".join(wrong)
    assert sum(len(case["headers"]) > 1 for case in CASES) == 6


def test_a_batch_of_several_tables_keeps_its_order_and_its_position(server):
    internal = "_timescaledb_internal"
    rows = [("public", "a"), None, (internal, "_hyper_1_1_chunk"), (internal, "_hyper_1_1_chunk"), ("public", "a")]
    made = transformed(server, rows)
    assert [batch_made.topic for batch_made in made for _ in range(len(batch_made))] == [
        "s.t",
        "s.t",
        "timescaledb.public.conditions",
        "timescaledb.public.conditions",
        "s.t",
    ]
    assert [batch_made.source_offset for batch_made in made] == [None, None, {"at": 1}]


def test_a_chunk_that_is_new_is_found(server, database):
    made = TimescaleDb(parse(TimescaleDbConfig, server))
    rows = [("_timescaledb_internal", "_hyper_1_7_chunk")]
    try:
        assert [batch_made.topic for batch_made in made.apply(batch(rows))] == ["s.t"]
        database.execute(
            "INSERT INTO _timescaledb_catalog.chunk VALUES (7, 1, '_timescaledb_internal', '_hyper_1_7_chunk')"
        )
        assert [batch_made.topic for batch_made in made.apply(batch(rows))] == ["timescaledb.public.conditions"]
    finally:
        made.close()
        database.execute("DELETE FROM _timescaledb_catalog.chunk WHERE id = 7")


def test_a_connection_that_was_lost_is_opened_anew(server, database):
    made = TimescaleDb(parse(TimescaleDbConfig, server))
    rows = [("_timescaledb_internal", "_hyper_9_9_chunk")]
    try:
        made.apply(batch(rows))
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tidegate timescaledb'"
        )
        with pytest.raises(RetriableConnectError, match="reading TimescaleDB's catalog in 127.0.0.1"):
            made.apply(batch(rows))
        assert [batch_made.topic for batch_made in made.apply(batch(rows))] == ["s.t"]
    finally:
        made.close()


def test_a_server_that_is_away_can_be_tried_again_and_one_without_a_catalog_cannot(server):
    (port,) = free_ports(1)
    rows = [("_timescaledb_internal", "_hyper_1_1_chunk")]
    with pytest.raises(RetriableConnectError):
        transformed({**server, "database.port": str(port)}, rows)
    with pytest.raises(ConnectError, match="_timescaledb_catalog") as caught:
        transformed({**server, "database.dbname": "postgres"}, rows)
    assert not isinstance(caught.value, RetriableConnectError)


def test_the_server_has_to_be_named():
    wrong = {value.key.name for value in validate(TimescaleDbConfig, {"database.port": "many"}) if value.errors}
    assert wrong == {"database.hostname", "database.port", "database.user", "database.dbname"}
