"""A DataFrame to a topic of Avro in one Spark: our data source beside Spark's Kafka sink with ``to_avro``.

``python -m bench spark_write``; ROWS=5000000 for more. Both write the same rows to a fresh topic of Apache Kafka, with values in
Confluent's framing and no keys. Spark's sink is given larger batches (``kafka.batch.size``, ``kafka.linger.ms``), with which it is faster.
The second case takes the rows to Python and drops them there: no Python sink can cost less.
"""

from __future__ import annotations

import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.broker.sides import apache_broker
from bench.paired import Case, Measured, measure, show
from bench.spark_read import COLUMNS, PARTITIONS, ROWS, SCHEMA, cpu_s, session
from broker.client import ClientConfig, NewTopic, TopicPartition
from broker.client.blocking import Admin
from registry.client import RegistryClient
from tests.support.registry import RegistryThread


def main(folder: Path, runs: int, console: Console) -> None:
    with ExitStack() as stack:
        bootstrap = stack.enter_context(apache_broker(folder / "kafka")).bootstrap
        registry = stack.enter_context(RegistryThread())
        admin = stack.enter_context(Admin(ClientConfig(bootstrap)))
        client = stack.enter_context(RegistryClient.from_properties({"schema.registry.url": registry.url}))
        spark = session(folder)

        from pyspark.sql import functions as f
        from pyspark.sql.avro.functions import to_avro

        rows = spark.range(0, ROWS, numPartitions=PARTITIONS).selectExpr(*COLUMNS)

        def timed(write: Any) -> Measured:
            topic = f"flights-{uuid.uuid4().hex[:8]}"
            admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
            schema_id = client.register(f"{topic}-value", SCHEMA)
            used, began = cpu_s(), time.perf_counter()
            write(topic, schema_id)
            took, used = time.perf_counter() - began, cpu_s() - used
            ends = admin.end_offsets([TopicPartition(topic, n) for n in range(PARTITIONS)])
            assert sum(ends.values()) == ROWS
            admin.delete_topics([topic])
            return {"rows/s": ROWS / took, "CPU µs/row": used / ROWS * 1e6}

        def save(frame: Any, format_: str, topic: str, options: dict[str, str]) -> None:
            writer = frame.write.format(format_).option("kafka.bootstrap.servers", bootstrap).option("topic", topic)
            writer.options(**options).mode("append").save()

        def ours() -> Measured:
            options = {"schema.registry.url": registry.url, "use.latest.version": "true"}
            return timed(lambda topic, _: save(rows, "tidegate", topic, options))

        def theirs() -> Measured:
            def write(topic: str, schema_id: int) -> None:
                header = f.unhex(f.lit(f"00{schema_id:08x}"))
                value = f.concat(header, to_avro(f.struct(*rows.columns), SCHEMA)).alias("value")
                save(rows.select(value), "kafka", topic, {"kafka.batch.size": "262144", "kafka.linger.ms": "5"})

            return timed(write)

        def dropped() -> Measured:
            def count(batches: Any) -> Any:
                import pyarrow as pa

                yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})

            count.__module__ = "__main__"  # pickled by value: workers need not have the bench
            used, began = cpu_s(), time.perf_counter()
            made = sum(row["rows"] for row in rows.mapInArrow(count, "rows BIGINT").collect())
            took, used = time.perf_counter() - began, cpu_s() - used
            assert made == ROWS
            return {"rows/s": ROWS / took, "CPU µs/row": used / ROWS * 1e6}

        ours(), theirs(), dropped()  # all are warm
        cases = (
            Case(f"{ROWS:,} rows to a topic, local[2]", ours, theirs),
            Case("rows dropped in Python for ours", dropped, theirs),
        )
        show("Spark writes a topic", {case.name: measure(case, runs, console) for case in cases}, console)
        spark.stop()
