"""The Spark sink under kill -9: task hosts, the worker, Spark's JVM and the brokers die at random while jobs append to files and tables.

In the end each record is one row. A seed's remainder by three says whether of files, of Iceberg or of Delta. Three seeds write JSON,
the next three Avro by schemas of a registry, which is killed too. Every fifth seed runs its jobs on a standalone cluster, whose
executors and workers are killed as well.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import psutil
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from tests.connectors.spark.clusters import executors, pack
from tests.proofs import effort, seeds
from tests.proofs.sink_kills import Killer, Rows, run
from tests.servers.process import wait_until
from tests.servers.spark import SparkCluster
from tests.support.spark import QUICK_CONF, delta_table, iceberg_table

pytestmark = [pytest.mark.proof, pytest.mark.long, pytest.mark.servers, pytest.mark.timeout(3600)]

SEEDS = seeds(6, 50)
STRIKES, ROWS = effort(3, 8), effort(3_000, 20_000)
_READ: Final[dict[str, Callable[[Path], pa.Table]]] = {
    "parquet": lambda folder: ds.dataset(folder, format="parquet").to_table(),
    "iceberg": lambda folder: iceberg_table(folder).scan().to_arrow(),
    "delta": delta_table,
}


def kill_spark(_: random.Random) -> None:
    """The JVM of the driver, if it runs: a process below this one."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "org.apache.spark.deploy.SparkSubmit" in process.cmdline():
                process.kill()


@contextlib.contextmanager
def spark(seed: int, folder: Path) -> Iterator[tuple[Mapping[str, str], Mapping[str, Killer]]]:
    """Where the jobs of a seed run, as settings of the connector, and what can be killed there."""
    if seed % 5:
        yield {"spark.master": "local[2]"}, {"Spark": kill_spark}
        return
    folder.mkdir()
    cluster = SparkCluster(folder)

    def running() -> list[psutil.Process]:
        return executors([worker.pid for worker in cluster.workers])

    def kill_executors(chance: random.Random) -> None:
        wait_until(lambda: bool(running()), "an executor", 120, pause_s=0.2)
        time.sleep(chance.uniform(0, 2))
        for executor in running():
            with contextlib.suppress(psutil.NoSuchProcess):
                executor.kill()

    def kill_worker(chance: random.Random) -> None:
        worker = chance.choice(cluster.workers)
        worker.kill()
        time.sleep(chance.uniform(0, 1))
        worker.start()

    parties = {"Spark": kill_spark, "executor": kill_executors, "Spark worker": kill_worker}
    try:
        cluster.start()
        packed = {f"spark.conf.{name}": value for name, value in pack(folder).items()}
        yield {"spark.master": cluster.url, **packed}, parties
    finally:
        cluster.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_one_row(seed: int, tmp_path: Path) -> None:
    with spark(seed, tmp_path / "spark") as (where, parties):
        run_seed(seed, tmp_path, where, parties)


def run_seed(seed: int, tmp_path: Path, where: Mapping[str, str], parties: Mapping[str, Killer]) -> None:
    format_ = list(_READ)[seed % len(_READ)]
    avro = seed // len(_READ) % 2 == 1
    values = {
        "spark.value.format": "json",
        "spark.value.schema": "payload STRUCT<id: BIGINT, n: BIGINT>",
        "spark.sql": "SELECT payload.id AS id, payload.n AS n FROM rows",
    }
    target = tmp_path / "lake" / "rows"
    config = {
        "connector.class": "SparkSink",
        "job.interval.ms": "500",
        "spark.output.format": format_,
        "spark.output.path": str(target),
        **({"spark.sql": "SELECT id, n FROM rows"} if avro else values),
        **where,
        **{f"spark.conf.{name}": value for name, value in QUICK_CONF.items()},
    }

    def rows() -> Rows:
        table = _READ[format_](target)
        return Counter(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))

    run(
        seed,
        tmp_path,
        config,
        parties,
        rows,
        strikes=STRIKES,
        rows=ROWS,
        patience_s=600,
        avro=avro,
    )
