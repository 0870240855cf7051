"""Stores the schema history: in a Kafka topic, a file or memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from connect.api import ConnectError, RetriableConnectError
from connectors.mysql.config import MySqlConfig

__all__ = ["FileHistory", "History", "KafkaHistory", "MemoryHistory", "history_of"]


class History(Protocol):
    """Stores records in order."""

    def read(self) -> Iterator[dict[str, Any]]: ...

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Returns when all records are stored durably."""
        ...


class MemoryHistory:
    """Lost when the task ends: every start needs a snapshot of the structure."""

    def __init__(self) -> None:
        self._records: list[dict[str, Any]] = []

    def read(self) -> Iterator[dict[str, Any]]:
        return iter(self._records)

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._records += [dict(record) for record in records]


class FileHistory:
    """A file with one record per line."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def read(self) -> Iterator[dict[str, Any]]:
        if not self._path.exists():
            return
        with self._path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _parsed(line, f"line {number} of {self._path}")

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            file.flush()
            os.fsync(file.fileno())


def _parsed(raw: str | bytes, where: str) -> dict[str, Any]:
    try:
        made = json.loads(raw)
    except ValueError as error:
        raise ConnectError(f"the schema history holds what is no JSON ({where}): {error}") from error
    if not isinstance(made, dict):
        raise ConnectError(f"the schema history holds what is no record ({where})")
    return made


@contextmanager
def _kafka_errors(topic: str) -> Iterator[None]:
    """A log that is unreachable now is retriable."""
    try:
        yield
    except (ConnectError, GeneratorExit):
        raise
    except Exception as error:
        raise RetriableConnectError(f"the schema history in topic {topic} could not be reached: {error}") from error


def _known(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without the class names of Java's serializers."""
    return {name: value for name, value in properties.items() if not name.startswith(("key.", "value."))}


class KafkaHistory:
    """A topic with one partition, without compaction and with unlimited retention.

    ``worker`` is the worker's client configuration.
    """

    def __init__(self, config: MySqlConfig, worker: Any) -> None:
        from broker.client import ClientConfig

        self._topic = config.history_topic or f"{config.prefix}.schema-history"
        writing = _known({**config.history_client_1x, **config.history_client})
        reading = _known({**config.history_reader_1x, **config.history_reader}) or writing

        def client(properties: dict[str, str]) -> Any:
            if config.history_servers and config.history_servers != worker.bootstrap_servers:
                return ClientConfig(config.history_servers, properties)
            return worker.with_properties(properties) if properties else worker

        self._writer, self._reader = client(writing), client(reading)

    def _create(self) -> None:
        from broker.client import NewTopic
        from broker.client.blocking import Admin

        kept = {"cleanup.policy": "delete", "retention.ms": str(2**63 - 1), "retention.bytes": "-1"}
        with Admin(self._writer) as admin:
            if self._topic not in admin.list_topics(internal=True):
                admin.create_topics([NewTopic(self._topic, 1, -1, kept)], exist_ok=True)

    def read(self) -> Iterator[dict[str, Any]]:
        with _kafka_errors(self._topic):
            yield from self._read()

    def _read(self) -> Iterator[dict[str, Any]]:
        from broker.client import TopicPartition
        from broker.client.blocking import Admin, BatchConsumer

        partition = TopicPartition(self._topic, 0)
        with Admin(self._reader) as admin:
            if self._topic not in admin.list_topics(internal=True):
                return
            end = admin.end_offsets([partition])[partition]
            start = admin.beginning_offsets([partition])[partition]
        if start >= end:
            return
        with BatchConsumer(self._reader) as consumer:
            consumer.assign([partition])
            consumer.seek(partition, start)
            while consumer.position(partition) < end:
                for fetched in consumer.fetch():
                    for record in fetched.records():
                        if record.value is not None:
                            yield _parsed(record.value, f"offset {record.offset} of topic {self._topic}")

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        with _kafka_errors(self._topic):
            self._append(records)

    def _append(self, records: Sequence[Mapping[str, Any]]) -> None:
        from broker.client.blocking import BatchProducer

        self._create()
        with BatchProducer(self._writer.with_properties({"acks": "all"})) as producer:
            waiting = [
                producer.enqueue(self._topic, None, json.dumps(record, ensure_ascii=False).encode(), partition=0)
                for record in records
            ]
            for record in waiting:
                record.result(60)


def history_of(config: MySqlConfig, worker: Any) -> History:
    match config.history_kind:
        case "file":
            assert config.history_file is not None
            return FileHistory(config.history_file)
        case "memory":
            return MemoryHistory()
    return KafkaHistory(config, worker)
