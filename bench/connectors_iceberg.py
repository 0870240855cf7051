"""Rows a second into an Iceberg table: ``python -m bench.connectors_iceberg [rows]``, the sink's task without a worker, beside
pyiceberg's own append of the same Arrow columns; ``python -m bench.connectors_iceberg changes [changes] [rows]``, changes by key
into a table of rows, beside pyiceberg's upsert of a hundredth of them.

``python -m bench.connectors_iceberg worker [rows] [tasks]`` runs the sink in a worker over Apache Kafka, with two tasks or as many.
Beside it runs Iceberg's own sink in Kafka Connect (``python -m tests.servers fetch iceberg-connect``). Both read JSON with schemas.
Ours reads Avro too: Confluent's converter can't be had from Maven Central.

The catalog is SQLite, the files are on this disk; rows as in ``bench.connectors_sinks``.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
from bench.connect import Memory, Worker, kafka_worker, our_worker
from bench.connectors_sinks import CONVERTERS, batch

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin, BatchProducer
from connect.api import Converter, ConverterContext, Origin, RecordBatch, Schema, SchemaType, TopicPartition
from connect.bench import Bench
from connect.converters.avro import AvroConverter, AvroConverterConfig
from connect.converters.json import JsonConfig, JsonConverter
from connectors.iceberg.sink import IcebergSinkConnector
from tests.servers.fetch import require
from tests.servers.kafka import FOR_SPEED, KafkaBroker
from tests.servers.process import wait_until
from tests.support.iceberg import iceberg_catalog, iceberg_table, local_catalog
from tidegate.kit.config import parse

_PUT_ROWS = 40_000
_PARTITIONS = 2
"""And as many tasks: a sink in a worker may use both cores."""


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def shown(name: str, rows: int, wall: float, cpu: float, more: str = "") -> None:
    print(f"{name:32} {rows / wall:12,.0f} rows/s {cpu / rows * 1e6:6.2f} CPU s per million rows {more}", flush=True)


def properties(folder: Path, topic: str = "events", **more: str) -> dict[str, str]:
    return {
        **local_catalog(folder),
        "topics": topic,
        "iceberg.tables": "bench.events",
        "iceberg.tables.auto-create-enabled": "true",
        **more,
    }


def total(config: dict[str, str]) -> int:
    """The rows of the table; none where there is no table."""
    try:
        snapshot = iceberg_table(config, config["iceberg.tables"]).current_snapshot()
    except Exception:
        return 0
    return (
        int(snapshot.summary.get("total-records") or 0) if snapshot is not None and snapshot.summary is not None else 0
    )


def appended(rows: int) -> None:
    batches = [batch(start, min(_PUT_ROWS, rows - start)) for start in range(0, rows, _PUT_ROWS)]
    for _ in range(3):
        with tempfile.TemporaryDirectory() as name:
            config = properties(Path(name))
            with Bench(IcebergSinkConnector, config).sink(TopicPartition("events", 0)) as running:
                began, before = time.perf_counter(), cpu_s()
                for each in batches:
                    running.task.put([each])
                running.task.flush()
                shown("ours, task alone", rows, time.perf_counter() - began, cpu_s() - before)
            assert total(config) == rows
            with iceberg_catalog(config) as catalog:
                table = catalog.load_table("bench.events")
                plain = catalog.create_table("bench.plain", table.schema())
                began, before = time.perf_counter(), cpu_s()
                columns = pa.concat_tables([each.table() for each in batches])
                plain.append(columns.cast(table.schema().as_arrow()))
                shown("pyiceberg's append, all at once", rows, time.perf_counter() - began, cpu_s() - before)


ROW = Schema.struct({"id": Schema(SchemaType.INT64), "n": Schema(SchemaType.INT64), "note": Schema(SchemaType.STRING)})


def keyed(ids: np.ndarray, n: int, first: int) -> RecordBatch:
    columns = [pa.array(ids), pa.array(np.full(len(ids), n)), pa.array([f"note for event {i}" for i in ids.tolist()])]
    values = pa.StructArray.from_arrays(columns, fields=list(ROW.arrow_type))
    offsets = pa.array(range(first, first + len(ids)), pa.int64())
    return RecordBatch("events", values, ROW, origin=Origin("events", 0), offsets=offsets)


def changed(changes: int, rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        config = properties(Path(name)) | {
            "iceberg.tables.default-id-columns": "id",
            "iceberg.tables.upsert-mode-enabled": "true",
            "iceberg.tables.auto-create-props.write.target-file-size-bytes": str(16 * 1024 * 1024),
        }
        with Bench(IcebergSinkConnector, config).sink(TopicPartition("events", 0)) as running:
            offset = 0

            def put(ids: np.ndarray, n: int) -> None:
                """Put rows in batches as a worker does, and commit them."""
                nonlocal offset
                for start in range(0, len(ids), _PUT_ROWS):
                    some = ids[start : start + _PUT_ROWS]
                    running.task.put([keyed(some, n, offset)])
                    offset += len(some)
                running.task.flush()

            for start in range(0, rows, 1_000_000):
                put(np.arange(start, min(start + 1_000_000, rows)), 0)
            for kind, ids in (
                ("newest keys", np.arange(rows - changes // 2, rows + changes - changes // 2)),
                ("random keys", np.random.default_rng(1).permutation(rows)[:changes]),
            ):
                began, before = time.perf_counter(), cpu_s()
                put(ids, 1)
                shown(f"ours, {kind}", changes, time.perf_counter() - began, cpu_s() - before)
        print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")
        table = iceberg_table(config, "bench.events")
        some = keyed(np.random.default_rng(2).permutation(rows)[: changes // 100], 2, 0).table()
        began, before = time.perf_counter(), cpu_s()
        table.upsert(some.cast(table.schema().as_arrow()), join_cols=["id"])
        shown(f"pyiceberg's upsert of {len(some):,}", len(some), time.perf_counter() - began, cpu_s() - before)


def fill(bootstrap: str, rows: int, converters: Mapping[str, Converter]) -> None:
    """A topic for each converter, with the same rows."""
    from broker.client.columns import encode_batches

    config = ClientConfig(bootstrap)
    with Admin(config) as admin, BatchProducer(config) as producer:
        admin.create_topics(
            [NewTopic("control-iceberg", 1, 1), *(NewTopic(name, _PARTITIONS, 1) for name in converters)]
        )
        for (number, start), (topic, converter) in product(enumerate(range(0, rows, _PUT_ROWS)), converters.items()):
            each = batch(start, min(_PUT_ROWS, rows - start))
            values = converter.from_connect(topic, each.value_schema, each.values)
            for made in encode_batches(None, values, max_bytes=500_000):
                producer.send_batch(topic, number % _PARTITIONS, made)
        producer.flush()


def drained(worker: Worker, config: dict[str, str], rows: int, name: str) -> None:
    before, began = worker.cpu_s(), time.perf_counter()
    with worker.connector(f"sink-{name}", config), Memory(worker.pid) as memory:
        wait_until(lambda: total(config) >= rows, "all rows", timeout_s=900, pause_s=0.2)
        shown(name, rows, time.perf_counter() - began, worker.cpu_s() - before, f"{memory.most:,.0f} MB at most")
    assert total(config) == rows


def in_a_worker(rows: int, tasks: int) -> None:
    """From the connector's creation until all rows are in the table, with a commit each five seconds."""
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        kafka = KafkaBroker(folder / "kafka", heap="1G", jvm=FOR_SPEED)
        kafka.start()
        running.callback(kafka.stop)
        plugins = {"plugin.path": str(require("iceberg-connect") / "plugins")}
        ours = running.enter_context(our_worker(folder / "ours", kafka.bootstrap_servers))
        theirs = running.enter_context(kafka_worker(folder / "theirs", kafka.bootstrap_servers, plugins))
        made = ConverterContext(is_key=False)
        json = JsonConverter(parse(JsonConfig, {"schemas.enable": "true"}), made)
        avro = AvroConverter(parse(AvroConverterConfig, {"schema.registry.url": ours.registry}), made)
        fill(kafka.bootstrap_servers, rows, {"events": json, "avro": avro})
        shared = {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "tasks.max": str(tasks),
            "iceberg.control.commit.interval-ms": "5000",
            "consumer.override.auto.offset.reset": "earliest",
        }
        for run in range(2):
            for name, worker, topic in (
                ("ours", ours, "events"),
                ("Iceberg's", theirs, "events"),
                ("ours, Avro", ours, "avro"),
            ):
                lake = folder / f"{name[:4]}-{topic}-{run}"
                lake.mkdir()
                config = (
                    properties(lake, topic) | shared | CONVERTERS["Avro" if topic == "avro" else "JSON with schemas"]
                )
                if worker is theirs:
                    config |= {"iceberg.kafka.bootstrap.servers": kafka.bootstrap_servers}
                    config |= {
                        "iceberg.kafka.auto.offset.reset": "earliest",
                        "iceberg.catalog.jdbc.schema-version": "V1",
                    }
                drained(worker, config, rows, f"{name} {run}")


def main() -> None:
    asked = sys.argv[1:]
    if asked[:1] == ["worker"]:
        in_a_worker(int(asked[1]) if len(asked) > 1 else 1_000_000, int(asked[2]) if len(asked) > 2 else _PARTITIONS)
    elif asked[:1] == ["changes"]:
        changes = int(asked[1]) if len(asked) > 1 else 1_000_000
        changed(changes, int(asked[2]) if len(asked) > 2 else 10_000_000)
    else:
        appended(int(asked[0]) if asked else 1_000_000)


if __name__ == "__main__":
    main()
