"""Record what Debezium's connectors write of an incremental snapshot, and of its notifications:
``python -m tests.support.debezium.record_signals`` (some minutes; Java)."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any, Final

import httpx

from tests.servers.fetch import require
from tests.servers.kafka import KafkaBroker, KafkaConnect
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until
from tests.support.debezium.record import keep, records_in, topics_of
from tests.support.debezium.scenarios import Scenario

__all__ = ["AFTER", "BEFORE", "NAME", "RECORDED", "connector_config", "signal"]

NAME: Final = "reread"
RECORDED: Final = Path(__file__).with_name("signals.json.gz")
"""By database: ``schemas``, each once; the records by topic, with schemas as numbers of these; the ``offsets`` in
order.
"""
BEFORE: Final = (
    "CREATE TABLE orders (id int PRIMARY KEY, word varchar(20))",
    "CREATE TABLE pairs (a bigint, b varchar(10), note varchar(20), PRIMARY KEY (a, b))",
    "CREATE TABLE nothing (id int PRIMARY KEY)",
    "CREATE TABLE signals (id varchar(64) PRIMARY KEY, type varchar(64) NOT NULL, data varchar(2048))",
    "INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')",
    "INSERT INTO pairs VALUES (1, 'x', 'one'), (1, 'y', 'two'), (2, 'x', NULL)",
)
AFTER: Final = "UPDATE orders SET word = 'z' WHERE id = 5"


def connector_config(database: str, schema: str, port: int, user: str) -> dict[str, str]:
    """``database`` is mariadb or postgresql; ``schema`` is where the tables are."""
    settings = {
        "mariadb": {"database.server.id": "6001", "database.include.list": NAME, "include.schema.changes": "false"},
        "postgresql": {"database.dbname": NAME, "plugin.name": "pgoutput", "slot.name": NAME},
    }[database]
    return settings | {
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": user,
        "database.password": "unused" if database == "postgresql" else "",
        "topic.prefix": NAME,
        "poll.interval.ms": "50",
        "signal.data.collection": f"{schema}.signals",
        "incremental.snapshot.chunk.size": "2",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": f"{NAME}.told",
    }


def signal(schema: str) -> str:
    """The statement that asks for all of it; ``missing`` is no table."""
    tables = ", ".join(f'"{schema}.{name}"' for name in ("orders", "nothing", "pairs", "missing"))
    return f"""INSERT INTO signals VALUES ('ad-hoc', 'execute-snapshot', '{{"data-collections": [{tables}]}}')"""


def _recorded(database: str, server: Any) -> dict[str, Any]:
    server.start()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = KafkaBroker(folder / "kafka")
        broker.start()
        plugin = {
            "mariadb": ("debezium-mariadb", "mariadb.MariaDb"),
            "postgresql": ("debezium-postgres", "postgresql.Postgres"),
        }
        artefact, connector = plugin[database]
        plugins = str(require(artefact) / "plugins")
        worker = KafkaConnect(
            folder / "connect", broker.bootstrap_servers, {"plugin.path": plugins, "offset.flush.interval.ms": "50"}
        )
        try:
            worker.start()
            return _run(database, f"io.debezium.connector.{connector}Connector", server, broker, worker)
        finally:
            worker.stop()
            broker.stop()
            server.stop()


def _run(database: str, connector: str, server: Any, broker: KafkaBroker, worker: KafkaConnect) -> dict[str, Any]:
    with server.connect("" if database == "mariadb" else "postgres") as root:
        root.cursor().execute(f"CREATE DATABASE {NAME}")
    schema = NAME if database == "mariadb" else "public"
    config = {
        "connector.class": connector,
        "schema.history.internal.kafka.bootstrap.servers": broker.bootstrap_servers,
        "schema.history.internal.kafka.topic": "history",
        **connector_config(database, schema, server.port, server.user),
    }
    scenario = Scenario(NAME)
    schemas: dict[str, int] = {}

    def told() -> list[str]:
        notes = topics_of(broker.bootstrap_servers, scenario, {}).get(f"{NAME}.told", [])
        return [f"{value[1]['aggregate_type']} {value[1]['type']}" for _, value, _ in notes]

    def changed() -> bool:
        records = topics_of(broker.bootstrap_servers, scenario, {}).get(f"{NAME}.{schema}.orders", [])
        return any(value[1]["op"] == "u" for _, value, _ in records)

    with server.connect(NAME) as connection:
        cursor = connection.cursor()
        for statement in BEFORE:
            cursor.execute(statement)
        answer = httpx.put(f"{worker.url}/connectors/{NAME}/config", json=config, timeout=120)
        assert answer.is_success, answer.text
        wait_until(lambda: "Initial Snapshot COMPLETED" in told(), "the snapshot to end", 240, 1)
        cursor.execute(signal(schema))
        wait_until(lambda: "Incremental Snapshot COMPLETED" in told(), "the incremental snapshot to end", 240, 1)
        cursor.execute(AFTER)
        wait_until(changed, "the change", 240, 1)
    offsets = [json.loads(m.value()) for m in records_in(broker.bootstrap_servers, "kafka-connect-offset") if m.value()]
    topics = topics_of(broker.bootstrap_servers, scenario, schemas)
    print(database, {topic: len(records) for topic, records in topics.items()}, flush=True)
    return {"schemas": [json.loads(text) for text in schemas], "topics": topics, "offsets": offsets}


def main() -> None:
    """Record each database separately: the recordings of others stay."""
    for database, make in (("mariadb", MariaDbServer), ("postgresql", PostgresServer)):
        known = json.loads(gzip.decompress(RECORDED.read_bytes())) if RECORDED.exists() else {}
        known[database] = _recorded(database, make())
        keep(RECORDED, known)


if __name__ == "__main__":
    main()
