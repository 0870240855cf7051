"""The Spark sink passes the suite that kills, stops and cuts off."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.testing import SinkFaultSuite
from connectors.spark.sink import SparkSinkConnector
from tests.connectors.faults.parts import OnBothBrokers
from tests.support.spark import delta_table, iceberg_table

pytestmark = [pytest.mark.proof, pytest.mark.servers]


@pytest.mark.long
class TestSparkSink(OnBothBrokers, SinkFaultSuite):
    """Spark reads the log by itself: it has no connection that could be led through a forwarder."""

    connector_class = SparkSinkConnector
    exactly_once = True

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Mapping[str, str]:
        return {
            "spark.output.path": str(tmp_path / "out"),
            "spark.value.format": "json",
            "spark.value.schema": "payload STRUCT<id: BIGINT>",
            "spark.master": "local[1]",
            "job.interval.ms": "100",
        }

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        rows = []
        for path in Path(properties["spark.output.path"]).glob("part-*.parquet"):
            try:
                rows += [row["id"] for row in pq.ParquetFile(path).read().column("payload").to_pylist()]
            except FileNotFoundError:  # a run that is repeated puts its files in the place of those
                continue
        return rows


class OfTables(OnBothBrokers, SinkFaultSuite):
    connector_class = SparkSinkConnector
    exactly_once = True
    format: str

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Mapping[str, str]:
        return {
            "spark.output.format": self.format,
            "spark.output.path": str(tmp_path / "out"),
            "spark.value.format": "json",
            "spark.value.schema": "payload STRUCT<id: BIGINT>",
            "spark.master": "local[1]",
            "spark.conf.spark.databricks.delta.snapshotPartitions": "1",
            "job.interval.ms": "100",
        }

    def table(self, folder: Path) -> pa.Table:
        raise NotImplementedError

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        try:
            return [row["id"] for row in self.table(Path(properties["spark.output.path"]))["payload"].to_pylist()]
        except (FileNotFoundError, KeyError, ValueError):  # no table yet, or none with rows
            return []


@pytest.mark.long
class TestSparkSinkToIceberg(OfTables):
    format = "iceberg"

    def table(self, folder: Path) -> pa.Table:
        return iceberg_table(folder).scan().to_arrow()


@pytest.mark.long
class TestSparkSinkToDelta(OfTables):
    format = "delta"

    def table(self, folder: Path) -> pa.Table:
        return delta_table(folder)
