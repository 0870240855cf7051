"""Record what Debezium's connector for MariaDB writes for each scenario: ``python -m tests.support.debezium.record_mariadb [NAME ...]`` (some minutes;
Java). Of others than those named what was recorded stays."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import httpx

from tests.servers.fetch import require
from tests.servers.kafka import KafkaBroker, KafkaConnect
from tests.servers.mariadb import MariaDbServer
from tests.support.debezium.mariadb_scenarios import MARIADB_SCENARIOS, statements
from tests.support.debezium.record import keep, known, records_in, topics_of
from tests.support.debezium.scenarios import Scenario

__all__ = ["RECORDED", "connector_config"]

RECORDED: Final = Path(__file__).with_name("mariadb.json.gz")
"""As that of PostgreSQL, and ``history`` by scenario: the records of the schema history."""


def connector_config(server: MariaDbServer, scenario: Scenario) -> dict[str, str]:
    number = 5000 + [s.name for s in MARIADB_SCENARIOS].index(scenario.name)
    return {
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": "",
        "database.server.id": str(number),
        "database.include.list": scenario.name,
        "topic.prefix": scenario.name,
        "poll.interval.ms": "50",
        **scenario.config,
    }


def main(names: Sequence[str]) -> None:
    server = MariaDbServer()
    server.start()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = KafkaBroker(folder / "kafka")
        broker.start()
        plugins = str(require("debezium-mariadb") / "plugins")
        worker = KafkaConnect(folder / "connect", broker.bootstrap_servers, {"plugin.path": plugins})
        try:
            worker.start()
            recorded = _record(server, broker, worker, names)
        finally:
            worker.stop()
            broker.stop()
            server.stop()
    keep(RECORDED, recorded)


def run(server: MariaDbServer, database: str, listed: list[str] | tuple[str, ...]) -> None:
    """Statements one after the other, over one connection."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        for statement in listed:
            cursor.execute(statement)


def _record(server: MariaDbServer, broker: KafkaBroker, worker: KafkaConnect, names: Sequence[str]) -> dict[str, Any]:
    chosen = [scenario for scenario in MARIADB_SCENARIOS if not names or scenario.name in names]
    for scenario in chosen:
        run(server, "", [f"CREATE DATABASE {scenario.name} CHARACTER SET utf8mb4"])
        run(server, scenario.name, statements(scenario.before))
    histories = {}
    before, schemas = known(RECORDED, names)
    scenarios: dict[str, Any] = {}
    for scenario in chosen:  # one after the other: little memory
        config = {
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "schema.history.internal.kafka.bootstrap.servers": broker.bootstrap_servers,
            "schema.history.internal.kafka.topic": f"history-{scenario.name}",
            **connector_config(server, scenario),
        }
        url = f"{worker.url}/connectors/{scenario.name}"
        answer = httpx.put(f"{url}/config", json=config, timeout=120)
        assert answer.is_success, answer.text
        deadline = time.monotonic() + 180
        with server.connect("", user="root") as root, root.cursor() as cursor:
            while scenario.after:
                cursor.execute("SHOW PROCESSLIST")
                if any("Binlog" in str(row[4]) for row in cursor.fetchall()):
                    break
                assert time.monotonic() < deadline, (scenario.name, httpx.get(f"{url}/status").text)
                time.sleep(0.5)
        time.sleep(3 if scenario.after else 20)
        run(server, scenario.name, scenario.after)
        time.sleep(8)
        status = httpx.get(f"{url}/status").json()
        assert status["tasks"][0]["state"] == "RUNNING", (scenario.name, status)
        scenarios[scenario.name] = topics_of(broker.bootstrap_servers, scenario, schemas)
        histories[scenario.name] = [
            json.loads(m.value()) for m in records_in(broker.bootstrap_servers, f"history-{scenario.name}")
        ]
        print(scenario.name, {topic: len(records) for topic, records in scenarios[scenario.name].items()}, flush=True)
        httpx.delete(url, timeout=60)
        with server.connect("", user="root") as root, root.cursor() as cursor:
            for _ in range(100):
                cursor.execute("SHOW PROCESSLIST")
                if not any("Binlog" in str(row[4]) for row in cursor.fetchall()):
                    break
                time.sleep(0.2)
    offsets = list(records_in(broker.bootstrap_servers, "kafka-connect-offset"))
    return {
        "schemas": [json.loads(text) for text in schemas],
        "scenarios": before["scenarios"] | scenarios,
        "history": before.get("history", {}) | histories,
        "offsets": before["offsets"] + [(json.loads(m.key()), json.loads(m.value())) for m in offsets if m.value()],
    }


if __name__ == "__main__":
    main(sys.argv[1:])
