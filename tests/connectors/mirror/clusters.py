"""Two clusters in this process, and connectors between them that run as in a worker, but without one."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from broker.client import ClientConfig, KafkaRecord, NewTopic, TopicPartition
from broker.client.blocking import Admin, BatchConsumer, BatchProducer
from connect.plugins.registry import PluginRegistry, load_plugins
from connect.stores.offsets import canonical
from connect.task.assembly import assembled
from connect.task.control import TaskControl
from connect.task.parts import TaskParts
from tests.servers.process import wait_until
from tests.support.broker import BrokerThread, settings
from tests.support.connect import FakeContext
from tidegate.kit.config import parse

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
MIRROR = "org.apache.kafka.connect.mirror."
OFFSETS = "worker-offsets"


class Cluster:
    """One of the clusters, with its clients."""

    def __init__(self, directory: Path, **overrides: str) -> None:
        self._broker = BrokerThread(settings(directory, **overrides))
        self.admin: Admin

    def __enter__(self) -> Cluster:
        self._broker.__enter__()
        self.config = ClientConfig(self.servers)
        self.admin = Admin(self.config).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.admin.stop()
        self._broker.__exit__(*error)

    @property
    def servers(self) -> str:
        return self._broker.bootstrap_servers

    def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        self.admin.create_topics(
            [NewTopic(topic, partitions, 1, {name.replace("_", "."): value for name, value in configs.items()})]
        )

    def produce(self, topic: str, count: int, partition: int = 0, first: int = 0) -> None:
        with BatchProducer(self.config.with_properties({"linger.ms": "5"})) as producer:
            for n in range(first, first + count):
                value = None if n % 10 == 9 else f"value {n}".encode()
                headers = [("n", str(n).encode()), ("none", None)] if n % 3 == 0 else []
                producer.enqueue(topic, f"key {n}".encode(), value, headers, partition=partition, timestamp_ms=1000 + n)
            producer.flush()

    def records(self, topic: str, partition: int = 0) -> list[KafkaRecord]:
        topic_partition = TopicPartition(topic, partition)
        if topic not in self.admin.list_topics(internal=True):
            return []
        end = self.admin.end_offsets([topic_partition])[topic_partition]
        records: list[KafkaRecord] = []
        with BatchConsumer(self.config.with_properties({"isolation.level": "read_committed"})) as consumer:
            consumer.assign([topic_partition])
            consumer.seek_to_beginning(topic_partition)
            while consumer.position(topic_partition) < end:
                records += [record for part in consumer.fetch(200) for record in part.records()]
        return records

    def count(self, topic: str, partition: int = 0) -> int:
        if topic not in self.admin.list_topics(internal=True):
            return 0
        topic_partition = TopicPartition(topic, partition)
        return self.admin.end_offsets([topic_partition])[topic_partition]


class Mirrored:
    """A connector with its tasks over two clusters; positions outlive a stop."""

    def __init__(
        self, source: Cluster, target: Cluster, connector: str, *, exactly_once: bool = False, **overrides: str
    ) -> None:
        self._plugins: PluginRegistry = load_plugins(["connectors"], entry_points=False)
        self._plugin = self._plugins.connector(MIRROR + connector)
        self.properties = {
            "name": "mirror",
            "connector.class": self._plugin.name,
            "source.cluster.alias": "west",
            "target.cluster.alias": "east",
            "source.cluster.bootstrap.servers": source.servers,
            "target.cluster.bootstrap.servers": target.servers,
            "key.converter": BYTES,
            "value.converter": BYTES,
            "consumer.poll.timeout.ms": "100",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
            "heartbeats.topic.replication.factor": "1",
            "sync.topic.acls.enabled": "false",
            **{name.replace("__", "-").replace("_", "."): value for name, value in overrides.items()},
        }
        self.worker = {
            "bootstrap.servers": target.servers,
            "offset.flush.interval.ms": "100",
            "offset.storage.file.filename": "kept here",
            "key.converter": BYTES,
            "value.converter": BYTES,
        }
        self._target, self._exactly_once = target, exactly_once
        if exactly_once:
            del self.worker["offset.storage.file.filename"]
            self.worker |= {"exactly.once.source.support": "enabled", "group.id": "w", "offset.storage.topic": OFFSETS}
            target.create(OFFSETS)
        self.positions: dict[bytes, Mapping[str, Any]] = {}
        self.context = FakeContext(self.properties)
        self.context.name = "mirror"

    def __enter__(self) -> Mirrored:
        loaded = self._plugin.load()
        self.context.reconfigured.clear()
        self.connector = loaded(parse(loaded.config_class, self.properties), self.properties, self.context)
        self.connector.start()
        self._tasks: list[tuple[TaskControl, threading.Thread]] = []
        self.failures: list[BaseException] = []
        self.run_tasks()
        return self

    def run_tasks(self, most: int = 4) -> None:
        """Replace the running tasks by those that the connector plans now."""
        self.stop_tasks()
        self.context.reconfigured.clear()
        self.planned = list(self.connector.task_properties(most))
        for number, properties in enumerate(self.planned):
            control = TaskControl()
            thread = threading.Thread(target=self._run, args=(number, properties, control), daemon=True)
            thread.start()
            self._tasks.append((control, thread))

    def _run(self, number: int, properties: Mapping[str, str], control: TaskControl) -> None:
        if self._exactly_once:
            self.positions = {
                record.key: json.loads(record.value)
                for record in self._target.records(OFFSETS)
                if record.key and record.value
            }
        loaded = self._plugin.load()
        known = {canonical(json.loads(key)[1]): (key, offset) for key, offset in self.positions.items()}
        entries = [
            {"partition": json.loads(key)[1], "offset": offset, "key": key.decode()} for key, offset in known.values()
        ]
        parts = TaskParts(
            connector="mirror",
            task=number,
            task_class=loaded.task_class,
            task_config=parse(loaded.config_class, properties),
            properties=properties,
            config=self.properties,
            worker=self.worker,
            plugins=self._plugins,
            control=control,
            offsets=entries,
            on_state=lambda state, error: None,
            on_topic=lambda _: None,
            on_flow=lambda _: None,
            on_progress=lambda _: None,
            ask_worker=lambda question: entries if question == "offsets" else None,
            keep_offsets=self.positions.update,
        )
        try:
            assembled(parts).run()
        except Exception as error:
            self.failures.append(error)

    def stop_tasks(self) -> None:
        for control, _ in self._tasks:
            control.stop()
        for _, thread in self._tasks:
            thread.join(60)
            assert not thread.is_alive()
        self._tasks.clear()

    def until(self, condition: Any, what: str) -> None:
        def done() -> bool:
            if self.failures:
                raise self.failures[0]
            return bool(condition())

        wait_until(done, what)

    def __exit__(self, *_: object) -> None:
        self.stop_tasks()
        self.context.stopping.set()
        self.connector.stop()
