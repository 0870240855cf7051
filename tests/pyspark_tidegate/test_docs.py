"""The examples of docs/how-to/spark/README.md and data-source.md run as they stand there, and the tables have every option."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyspark_tidegate import options, write_options
from tests.pyspark_tidegate.test_reading import FLIGHT, Topic
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's gateway leaves connections to its JVM to the garbage collector.
pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

HERE = Path(__file__).parents[2] / "docs/how-to/spark"
PAGE = (HERE / "data-source.md").read_text()
START = (HERE / "README.md").read_text()


@pytest.mark.proof
def test_the_examples_run(
    spark: SparkSession,
    broker: BrokerThread,
    registry: RegistryThread,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Topic(broker, registry, name="flights").write(FLIGHT, [{"id": 7, "month": 4}])
    Topic(broker, registry, name="departures")
    read, stream, write, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)  # the last: test_connect.py

    def here(example: str) -> str:
        example = example.replace("127.0.0.1:9092", broker.bootstrap_servers).replace(
            "http://127.0.0.1:8081", registry.url
        )
        return example.replace('"checkpoint")', f'"{folder}/checkpoint")').replace(
            '"flights.parquet"', f'"{folder}/flights.parquet"'
        )

    (start,) = re.findall(r"```python\n(.*?)```", START, re.DOTALL)
    exec(here(start), {})
    assert re.search(r"\| *7\| *4\|", capsys.readouterr().out)
    names: dict[str, object] = {"spark": spark}
    exec(here(read), names)
    assert re.search(r"\| *7\| *4\|", capsys.readouterr().out)
    exec(here(stream), names)
    query = names["query"]
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert spark.read.parquet(f"{folder}/flights.parquet").collect() == [(7, 4)]
    exec(here(write), names)
    exec(here(read.replace("flights", "departures")), names)
    assert re.search(r"\| *7\| *4\| *UA\|", capsys.readouterr().out)


def test_the_tables_have_every_option() -> None:
    reading, writing = PAGE.split("## Write")
    for part, known in ((reading, options._KNOWN), (writing, write_options._KNOWN)):
        rows = re.findall(r"^\| (`.*?) \|", part, re.MULTILINE)
        told = {name.lower() for row in rows for name in re.findall(r"`([\w.]+)`", row)}
        assert told - {"kafka.bootstrap.servers", "schema.registry.url"} == set(known) - {
            "path",
            "checkpointlocation",
            "queryname",
        }
