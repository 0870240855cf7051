"""Runs a scenario with our connector and returns its records in the form in which Debezium's are stored."""

from __future__ import annotations

import json
import time
from typing import Any

from connect.api import ConverterContext, RecordBatch
from connect.bench import Bench
from connect.converters.json import JsonConverter
from connect.data.headers import header_lists
from connectors.postgres.config import PostgresConfig
from connectors.postgres.connections import connect
from connectors.postgres.setup import drop_slot
from connectors.postgres.source import PostgresSource
from tests.servers.postgres import PostgresServer
from tests.support.debezium.scenarios import Scenario
from tidegate.kit.config import parse

__all__ = ["comparable", "records_of", "replayed"]


def properties(server: PostgresServer, scenario: Scenario) -> dict[str, str]:
    return {
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": "unused",
        "database.dbname": scenario.name,
        "topic.prefix": scenario.name,
        "plugin.name": "pgoutput",
        "slot.name": scenario.name,
        "poll.interval.ms": "50",
        **scenario.config,
    }


def replayed(server: PostgresServer, scenario: Scenario) -> dict[str, list[Any]]:
    """The records by topic: [key, value, headers], keys and values as [schema, payload] or None."""
    with server.connect("postgres") as root:
        root.execute(f"CREATE DATABASE {scenario.name}")
    bench = Bench(PostgresSource, properties(server, scenario))
    with server.connect(scenario.name) as connection:
        connection.execute(scenario.before)
        with bench.task() as running:
            batches = list(settled(running.task))
            for transaction in scenario.after:
                connection.execute(transaction)
            batches += settled(running.task)
        if scenario.after:
            drop_slot(connection, scenario.name)
    topics: dict[str, list[Any]] = {}
    for batch in filter(len, batches):  # one without records only moves the offset
        topics.setdefault(batch.topic, []).extend(records_of(batch))
    return topics


def settled(task: Any, quiet: int = 12) -> list[RecordBatch]:
    """The batches until several consecutive polls are empty and the stream has passed the current end of the database's
    log.

    MariaDB does not report how far it has examined its log: there it is a second without batches.
    """
    end = _end_of_log(task)
    batches: list[RecordBatch] = []
    idle, since = 0, time.monotonic()
    deadline = since + 120
    while True:
        polled = task.poll()
        batches += polled
        if polled or (task._stream is None and not task._finished):
            idle, since = 0, time.monotonic()
        else:
            idle += 1
        if task._finished or end is None:
            over = idle >= quiet and (task._finished or time.monotonic() - since > 1)
        else:
            over = idle > 0 and max(task._stream.server_lsn, task._stream._flushed) >= end
        if over:
            return batches
        assert time.monotonic() < deadline


def _end_of_log(task: Any) -> int | None:
    """The end of PostgreSQL's log, all of it flushed: log written outside of transactions is only flushed by a later
    commit.
    """
    if not isinstance(task.config, PostgresConfig):
        return None
    with connect(task.config) as connection:
        connection.execute("CREATE TEMPORARY TABLE flushed ()")
        row = connection.execute("SELECT (pg_current_wal_flush_lsn() - '0/0')::int8").fetchone()
    assert row is not None
    return int(row[0])


def records_of(batch: RecordBatch) -> list[list[Any]]:
    made = [JsonConverter(parse(JsonConverter.config_class, {}), ConverterContext(is_key=False)) for _ in range(2)]
    keys: list[Any] = [None] * len(batch)
    if batch.keys is not None:
        keys = made[0].from_connect(batch.topic, batch.key_schema, batch.keys).to_pylist()
    values = made[1].from_connect(batch.topic, batch.value_schema, batch.values).to_pylist()
    headers = [()] * len(batch) if batch.headers is None else header_lists(batch.headers)
    return [
        [_pair(k), _pair(v), [[h.key, h.value.decode()] for h in hs]]
        for k, v, hs in zip(keys, values, headers, strict=True)
    ]


def _pair(raw: bytes | None) -> Any:
    if raw is None:
        return None
    value = json.loads(raw)
    return [value["schema"], value["payload"]]


_RUN = ("version", "ts_ms", "ts_us", "ts_ns", "txId", "lsn", "sequence")


def comparable(record: list[Any], schemas: list[Any] | None = None) -> list[Any]:
    """A record without what differs from run to run; numbers of schemas resolved."""
    key, value, headers = record
    if schemas is not None:
        key, value = (None if x is None else [schemas[x[0]], x[1]] for x in (key, value))
    headers = [h if h[0] != "__debezium.context.runId" else [h[0], ""] for h in headers]
    if value is not None and isinstance(value[1], dict):
        payload = {name: v for name, v in value[1].items() if name not in ("ts_ms", "ts_us", "ts_ns")}
        if payload.get("source"):
            payload["source"] = {n: None if n in _RUN else v for n, v in payload["source"].items()}
        if payload.get("transaction"):
            payload["transaction"] = {**payload["transaction"], "id": ""}
        if "status" in payload:
            payload["id"], key = "", [key[0], {"id": ""}]
            collections = payload["data_collections"]
            if collections is not None:
                payload["data_collections"] = sorted((c["data_collection"], c["event_count"]) for c in collections)
        value = [value[0], payload]
    return [key, value, headers]
