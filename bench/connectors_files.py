"""Rows a second from Parquet files to an Avro topic, from there to Parquet in S3, and of ``tidegate verify sink`` over both sides, with Avro
and JSON files too: ``python -m bench.connectors_files [rows]``. Broker, worker, registry and S3 server (versitygw) are ours or local, one task each.

The rows have nine mixed columns, about 150 bytes. Memory is that of all the worker's processes, what they share counted once.
"""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.connect import Memory, Worker, our_worker
from bench.connectors_sinks import batch

from tests.servers.process import wait_until
from tests.servers.s3 import S3Server
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.buckets import Bucket, bucket_on
from tests.support.registry import RegistryThread

_FILE_ROWS = 250_000
_FLUSH = 100_000


def parquet_files(folder: Path, rows: int) -> None:
    for start in range(0, rows, _FILE_ROWS):
        values = batch(start, min(_FILE_ROWS, rows - start)).values
        pq.write_table(
            pa.Table.from_batches([pa.RecordBatch.from_struct_array(values)]), folder / f"{start:09d}.parquet"
        )


def stored(worker: Worker, bucket: Bucket, name: str, config: dict[str, str], rows: int) -> str:
    """Post the sink and wait until all rows are in the bucket; from the first file on."""

    def files() -> int:
        return int(bucket.client.list_objects_v2(Bucket=bucket.name, Prefix=f"{name}/").get("KeyCount", 0))

    before = worker.cpu_s()
    requested = worker.connector(name, config)
    with requested, Memory(worker.pid) as memory:
        wait_until(lambda: files() > 0, "the first file", timeout_s=120, pause_s=0.01)
        first, began = files() * _FLUSH, time.perf_counter()
        wait_until(lambda: files() * _FLUSH >= rows, "all files", timeout_s=600, pause_s=0.01)
        wall, cpu = time.perf_counter() - began, worker.cpu_s() - before
    return _shown((rows - first) / wall, cpu / rows * 1e6, memory.most)


def _shown(rate: float, cpu: float, megabytes: float) -> str:
    return f"{rate:10,.0f} rows/s {cpu:6.2f} CPU s per million rows, {megabytes:.0f} MB at most"


def verified(worker: Worker, name: str, rows: int) -> str:
    """``tidegate verify sink`` as a command of its own."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "tidegate.cli", "verify", "sink", name, "--json"]
    where = ["--bootstrap-servers", worker.bootstrap, "--connect", worker.url]
    done = subprocess.run([*command, *where], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    told = json.loads(done.stdout)
    assert told["records"] == rows, told
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _shown(rows / wall, cpu / rows * 1e6, after.ru_maxrss / 1024)


def main(rows: int) -> None:
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        (folder / "in").mkdir()
        parquet_files(folder / "in", rows)
        broker, s3 = TidegateBroker(folder / "broker"), S3Server(folder / "s3")
        for started in (broker, s3):
            started.start()
            running.callback(started.stop)
        registry = running.enter_context(RegistryThread())
        avro = {
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": registry.url,
        }
        worker = running.enter_context(our_worker(folder / "worker", broker.bootstrap_servers, registry=False))
        source = {
            "connector.class": "FileSource",
            "topic": "rows",
            "input.path": str(folder / "in"),
            "input.file.pattern": r".*\.parquet",
            "input.format": "parquet",
            "file.minimum.age.ms": "0",
            **avro,
        }
        with Memory(worker.pid) as memory:
            measured = worker.run_source(source, "rows", rows)
        shown = _shown(measured["rows/s"], measured["worker CPU s per 1M rows"], memory.most)
        print("Parquet to an Avro topic   ", shown, flush=True)
        with bucket_on(s3) as bucket:
            for name in ("Parquet", "Avro", "Json"):
                sink = {
                    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
                    "topics": "rows",
                    "topics.dir": name,
                    "format.class": f"{name}Format",
                    "flush.size": str(_FLUSH),
                    "consumer.override.auto.offset.reset": "earliest",
                    **bucket.access,
                    **avro,
                }
                print(f"Avro topic to {name:7} in S3", stored(worker, bucket, name, sink, rows), flush=True)
                with worker.connector(name, sink):
                    print("verify sink                ", verified(worker, name, rows), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
