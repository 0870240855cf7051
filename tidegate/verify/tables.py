"""Compares the tables of a database with the topics that a CDC connector fills from them.

The tables are read by the connector itself, with its configuration and its transforms, so both sides have the same form.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tidegate.backup.records import fetched_tables
from tidegate.backup.taking import READING
from tidegate.kit.errors import UsageError
from tidegate.verify.states import States

if TYPE_CHECKING:
    import pyarrow as pa

    from broker.client import ClientConfig
    from connect.api import Converter, RecordBatch
    from connect.plugins.registry import PluginRegistry

__all__ = ["CapturedTables", "repair_signal"]

_TABLE, _TOPIC = 0, 1
_KEPT: Final = ("r", "c", "u")
_Rows = list[tuple[str, bytes | None]]


class _Written(NamedTuple):
    """How far a topic's partition was read."""

    topic: str
    partition: int


class CapturedTables:
    """The tables of one connector and their topics. ``names`` are regular expressions of full table names; all without."""

    def __init__(
        self,
        plugins: PluginRegistry,
        worker: Mapping[str, str],
        config: Mapping[str, str],
        names: Sequence[str],
        kafka: ClientConfig,
    ) -> None:
        from connect.config.cloud_keys import with_cloud_keys
        from connect.plugins.config_providers import resolved
        from connect.task.assembly import converter

        plugin = plugins.connector(config.get("connector.class", ""))
        self._config = with_cloud_keys(resolved(worker, config), plugin.type)
        self._connector, self._plugins, self._kafka = plugin.load(), plugins, kafka
        if not hasattr(self._connector.task_class, "at_rest"):
            raise UsageError(
                f"{config.get('connector.class')} captures no tables: give a connector for changes of PostgreSQL, MySQL, "
                "MariaDB or SQLite"
            )
        self._names = list(names)
        self._keys, self._values = (
            converter(plugins, worker, self._config, is_key=is_key, connector=config["name"])
            for is_key in (True, False)
        )
        self._as_key, self._as_value = (  # they register no schema
            converter(plugins, worker, self._config, is_key=is_key, connector=config["name"], rehearsals=[])
            for is_key in (True, False)
        )
        self._read: dict[_Written, int] = {}
        self.topics: dict[str, str] = {}
        """The full name of the table behind each topic that was compared."""

    def read_tables(self, states: States, progress: Callable[[int, str], None]) -> int:
        """Read all tables as of one moment. Returns the number of rows."""
        states.clear(_TABLE)
        rows = 0
        for batch in self._snapshot():
            if batch.keys is None:
                raise UsageError(f"{batch.topic} has no keys: rows can't be found in it; set message.key.columns")
            keys = self._roundtrip(self._as_key, batch.topic, batch.key_schema, batch.keys)
            values = self._roundtrip(self._as_value, batch.topic, batch.value_schema, batch.values)
            states.put(_TABLE, batch.topic, _rows(keys, values))
            rows += len(batch)
            progress(rows, self.topics.get(batch.topic, batch.topic))
        return rows

    def _snapshot(self) -> Iterator[RecordBatch]:
        """The records that a snapshot of the tables makes now. The slot, the offsets and the history stay as they are."""
        from connect.bench import Bench
        from connect.config.connector import CommonConfig
        from connect.task.error_policy import ErrorPolicy
        from connect.transforms.chain import TransformChain
        from tidegate.kit.config import parse

        properties = {**self._connector.preview_properties(self._config), "notification.enabled.channels": ""}
        if self._names:
            properties["snapshot.include.collection.list"] = ",".join(self._names)
        common = parse(CommonConfig, self._config)
        policy = ErrorPolicy(common, common.name, 0, threading.Event())
        chain = TransformChain.configured(self._plugins, common, self._config)
        bench = Bench(self._connector, properties)
        try:
            for number, planned in enumerate(bench.plan()):
                with bench.task(planned, number) as running:
                    while not running.task.at_rest:
                        for batch in running.task.poll():
                            table = _table_of(batch)
                            for part in chain.apply(batch, policy.guarded):
                                if table is not None:
                                    self.topics[part.topic] = table
                                    yield part
                    with_rows = set(self.topics.values())
                    for topic, table in running.task.snapshot_topics.items():
                        if table not in with_rows:  # where no transform gives it another name
                            self.topics[topic] = table
        finally:
            chain.close()

    def _roundtrip(self, converter: Converter, topic: str, schema: Any, column: pa.Array) -> list[Any]:
        """Values in the form in which they are read from a topic. JSON and Protobuf have other types than the table."""
        from connect.converters.avro import AvroConverter

        if isinstance(converter, AvroConverter):
            values: list[Any] = column.to_pylist()
            return values
        return self._decoded(converter, topic, converter.from_connect(topic, schema, column))

    def _decoded(self, converter: Converter, topic: str, data: pa.Array) -> list[Any]:
        values: list[Any] = []
        for run in converter.to_connect(topic, data):
            texts = run.values.to_pylist()
            values += texts if run.schema is not None else [None if t is None else json.loads(t) for t in texts]
        return values

    def read_topics(self, states: States, progress: Callable[[int, str], None]) -> int:
        """Read the topics of the tables from where the last call ended to their ends. Returns the number of records."""
        from broker.client import TopicPartition
        from broker.client.blocking import Admin, BatchConsumer

        with Admin(self._kafka) as admin:
            listed = set(admin.list_topics())
            there = [topic for topic in self.topics if topic in listed]
            described = admin.describe_topics(there) if there else {}
            partitions = [TopicPartition(name, p.partition) for name in there for p in described[name].partitions]
            starts, ends = admin.beginning_offsets(partitions), admin.end_offsets(partitions, committed=True)
        records = 0
        with BatchConsumer(self._kafka.with_properties(READING)) as consumer:
            for tp in partitions:
                where = _Written(*tp)
                start = max(starts[tp], self._read.get(where, 0))
                for batch in fetched_tables(consumer, tp.topic, tp.partition, start, ends[tp]):
                    self._take(states, tp.topic, batch)
                    records += len(batch)
                    progress(records, str(tp))
                self._read[where] = ends[tp]
        return records

    def _take(self, states: States, topic: str, batch: pa.RecordBatch) -> None:
        keys = self._decoded(self._keys, topic, batch.column("key"))
        values = self._decoded(self._values, topic, batch.column("value"))
        pending: _Rows = []
        for key, value in zip(keys, values, strict=True):
            if isinstance(value, dict) and value.get("op") == "t":
                states.put(_TOPIC, topic, pending)
                states.clear(_TOPIC, topic)
                pending = []
            elif key is not None:
                pending += _rows([key], [value])
        states.put(_TOPIC, topic, pending)

    def close(self) -> None:
        for each in (self._keys, self._values, self._as_key, self._as_value):
            each.close()


def _table_of(batch: RecordBatch) -> str | None:
    """The full name of the table that a batch of a snapshot is of, from its source block; None for other records."""
    if not len(batch) or batch.value_schema is None or "source" not in batch.value_schema.field_names:
        return None
    source = batch.values.field("source").slice(0, 1).to_pylist()[0]
    if not source or not source.get("table"):
        return None
    return f"{source.get('schema') or source.get('db')}.{source['table']}"


def _rows(keys: Sequence[Any], values: Sequence[Any]) -> _Rows:
    return [(_text(key), _content(value)) for key, value in zip(keys, values, strict=True)]


def _text(key: Any) -> str:
    return json.dumps(key, ensure_ascii=False, default=str, sort_keys=True, separators=(",", ":"))


def _content(value: Any) -> bytes | None:
    """A row as bytes: that after the change for a change event, else the value without what transforms add (``__...``)."""
    if isinstance(value, dict):
        if {"op", "after", "source"} <= value.keys():
            value = value["after"] if value["op"] in _KEPT else None
        elif str(value.get("__deleted", "")).lower() == "true":
            value = None
        else:
            value = {name: cell for name, cell in value.items() if not name.startswith("__")}
    return None if value is None else _text(value).encode()


def repair_signal(config: Mapping[str, str], tables: Sequence[str], signal_id: str) -> tuple[str, bytes, bytes]:
    """The topic, key and value of a signal that has tables read again. Raises UsageError where the connector reads none."""
    channels = [name.strip() for name in config.get("signal.enabled.channels", "source").split(",")]
    prefix = config.get("topic.prefix") or config.get("database.server.name") or ""
    if "kafka" not in channels:
        raise UsageError(
            f"the connector takes no signals from a topic: set signal.enabled.channels={','.join([*channels, 'kafka'])}, or "
            "send the signal execute-snapshot another way (docs/how-to/connectors/cdc-signals.md)"
        )
    names = [name.replace(".", r"\.") for name in tables]
    signal = {"id": signal_id, "type": "execute-snapshot", "data": {"data-collections": names, "type": "incremental"}}
    return config.get("signal.kafka.topic") or f"{prefix}-signal", prefix.encode(), json.dumps(signal).encode()
