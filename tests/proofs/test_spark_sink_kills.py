"""The Spark sink under kill -9: task hosts, the worker, Spark's JVM and the brokers die at random while jobs append to files and tables.

In the end each record is one row. A seed's remainder by three says whether of files, of Iceberg or of Delta. Three seeds write JSON,
the next three Avro by schemas of a registry, which is killed too.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from tests.proofs import effort, seeds
from tests.proofs.sink_kills import Rows, run
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


@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_one_row(seed: int, tmp_path: Path) -> None:
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
        "spark.master": "local[2]",
        **{f"spark.conf.{name}": value for name, value in QUICK_CONF.items()},
    }

    def rows() -> Rows:
        table = _READ[format_](target)
        return Counter(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))

    run(
        seed,
        tmp_path,
        config,
        {"Spark": kill_spark},
        rows,
        strikes=STRIKES,
        rows=ROWS,
        patience_s=600,
        avro=avro,
    )
