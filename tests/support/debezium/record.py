"""Record Debezium's output for each scenario: ``python -m tests.support.debezium.record [NAME ...]`` (about a minute;
needs Java). With names, the recordings of other scenarios stay unchanged.

Values that differ between runs (times, positions, transaction numbers) are recorded unchanged; the tests ignore them.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
from confluent_kafka import Consumer, TopicPartition

from tests.servers.fetch import require
from tests.servers.kafka import KafkaBroker, KafkaConnect
from tests.servers.postgres import PostgresServer
from tests.support.debezium.scenarios import SCENARIOS, Scenario

RECORDED: Final = Path(__file__).with_name("debezium.json.gz")
"""``schemas``, each once, and by scenario the records by topic, whose schemas are numbers of these."""


def connector_config(server: PostgresServer, scenario: Scenario) -> dict[str, str]:
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


def known(path: Path, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """The recordings that are kept when these scenarios are recorded again (with no names, none are), and the numbers
    of the schemas in them.
    """
    if not names or not path.exists():
        return {"schemas": [], "scenarios": {}, "offsets": []}, {}
    recorded = json.loads(gzip.decompress(path.read_bytes()))
    return recorded, {json.dumps(schema, sort_keys=True): number for number, schema in enumerate(recorded["schemas"])}


def keep(path: Path, recorded: Mapping[str, Any]) -> None:
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps(recorded, ensure_ascii=False, separators=(",", ":")).encode())


def main(names: Sequence[str]) -> None:
    chosen = [scenario for scenario in SCENARIOS if not names or scenario.name in names]
    server = PostgresServer()
    server.start()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = KafkaBroker(folder / "kafka")
        broker.start()
        plugins = str(require("debezium-postgres") / "plugins")
        worker = KafkaConnect(folder / "connect", broker.bootstrap_servers, {"plugin.path": plugins})
        try:
            worker.start()
            recorded = _record(server, broker, worker, chosen, names)
        finally:
            worker.stop()
            broker.stop()
            server.stop()
    keep(RECORDED, recorded)


def _record(
    server: PostgresServer, broker: KafkaBroker, worker: KafkaConnect, chosen: Sequence[Scenario], names: Sequence[str]
) -> dict[str, Any]:
    with server.connect("postgres") as root:
        for scenario in chosen:
            root.execute(f"CREATE DATABASE {scenario.name}")
            with server.connect(scenario.name) as connection:
                connection.execute(scenario.before)
            config = {
                "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
                **connector_config(server, scenario),
            }
            answer = httpx.put(f"{worker.url}/connectors/{scenario.name}/config", json=config, timeout=60)
            assert answer.is_success, answer.text
        deadline = time.monotonic() + 90
        waiting = {s.name for s in chosen if s.after}
        while waiting:
            rows = root.execute("SELECT slot_name FROM pg_replication_slots WHERE active").fetchall()
            waiting -= {row[0] for row in rows}
            assert time.monotonic() < deadline, f"no stream yet: {waiting}"
            time.sleep(0.5)
    time.sleep(2)
    for scenario in chosen:
        with server.connect(scenario.name) as connection:
            for transaction in scenario.after:
                connection.execute(transaction)
    time.sleep(10)
    before, schemas = known(RECORDED, names)
    scenarios = {s.name: topics_of(broker.bootstrap_servers, s, schemas) for s in chosen}
    for scenario in chosen:
        status = httpx.get(f"{worker.url}/connectors/{scenario.name}/status").json()
        assert status["tasks"][0]["state"] == "RUNNING", (scenario.name, status)
    offsets = list(records_in(broker.bootstrap_servers, "kafka-connect-offset"))
    return {
        "schemas": [json.loads(text) for text in schemas],
        "scenarios": before["scenarios"] | scenarios,
        "offsets": before["offsets"] + [(json.loads(m.key()), json.loads(m.value())) for m in offsets if m.value()],
    }


def topics_of(bootstrap: str, scenario: Scenario, schemas: dict[str, int]) -> dict[str, list[Any]]:
    """The records of a scenario by topic; ``schemas`` gets those that are new."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "recorder"})
    delimiter = scenario.config.get("topic.delimiter", ".")
    names = sorted(
        t for t in consumer.list_topics().topics if t.startswith(scenario.name + delimiter) or t == scenario.name
    )
    consumer.close()
    return {name: [_kept(message, schemas) for message in records_in(bootstrap, name)] for name in names}


def _kept(message: Any, schemas: dict[str, int]) -> list[Any]:
    headers = [[k, v.decode()] for k, v in message.headers() or []]
    return [_dense(message.key(), schemas), _dense(message.value(), schemas), headers]


def _dense(raw: bytes | None, schemas: dict[str, int]) -> Any:
    """None for no key or a tombstone; else the number of its schema and its payload."""
    if raw is None or (made := json.loads(raw)) is None:
        return None
    return [schemas.setdefault(json.dumps(made["schema"], sort_keys=True), len(schemas)), made["payload"]]


def records_in(bootstrap: str, topic: str) -> Iterator[Any]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "recorder", "enable.partition.eof": True})
    for partition in consumer.list_topics(topic).topics[topic].partitions:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while True:
            message = consumer.poll(10)
            if message is None or (message.error() is not None):
                break
            yield message
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1:])
