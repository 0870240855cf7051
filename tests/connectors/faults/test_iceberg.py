"""The Iceberg sink passes the suite that kills, stops and cuts connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from connect.testing import SinkFaultSuite
from connectors.iceberg.sink import IcebergSinkConnector
from tests.connectors.faults.parts import OnBothBrokers, OnS3
from tests.servers.s3 import S3Server
from tests.support.buckets import bucket_on
from tests.support.iceberg import iceberg_rows, local_catalog

pytestmark = [pytest.mark.proof, pytest.mark.servers]


class IcebergSuite(OnS3, OnBothBrokers, SinkFaultSuite):
    """A catalog on SQLite; files in S3, whose connections are cut."""

    connector_class = IcebergSinkConnector
    exactly_once = True
    more: ClassVar[Mapping[str, str]] = {}

    @pytest.fixture
    def properties(self, s3_server: S3Server, endpoint: str, tmp_path: Path) -> Iterator[Mapping[str, str]]:
        with bucket_on(s3_server) as bucket:
            yield local_catalog(tmp_path) | {
                "iceberg.catalog.warehouse": f"s3://{bucket.name}/warehouse",
                "iceberg.catalog.s3.endpoint": endpoint,
                "iceberg.catalog.s3.access-key-id": s3_server.access_key,
                "iceberg.catalog.s3.secret-access-key": s3_server.secret_key,
                "iceberg.catalog.s3.region": s3_server.region,
                "iceberg.tables": "suite.rows",
                "iceberg.tables.auto-create-enabled": "true",
                "iceberg.control.commit.interval-ms": "100",
                **self.more,
            }

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        return iceberg_rows(self.direct(properties), "suite.rows", "id").column("id").to_pylist()

    def direct(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        """Not by way of the forwarder."""
        return {**properties, "iceberg.catalog.s3.endpoint": self.s3_url}

    @pytest.fixture(autouse=True)
    def _s3_url(self, s3_server: S3Server) -> None:
        self.s3_url = s3_server.endpoint_url


@pytest.mark.long
class TestIcebergSink(IcebergSuite):
    pass


@pytest.mark.long
class TestIcebergSinkByKey(IcebergSuite):
    """Rows are changed by their key."""

    more: ClassVar = {"iceberg.tables.upsert-mode-enabled": "true", "iceberg.tables.default-id-columns": "id"}
