"""The Delta sink passes the suite that kills, stops and cuts connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from connect.testing import SinkFaultSuite
from connectors.delta.sink import DeltaSinkConnector
from tests.connectors.faults.parts import OnBothBrokers, OnS3
from tests.servers.s3 import S3Server
from tests.support.buckets import bucket_on
from tests.support.delta import delta_rows

pytestmark = [pytest.mark.proof, pytest.mark.servers]


class DeltaSuite(OnS3, OnBothBrokers, SinkFaultSuite):
    """Tables in S3, whose connections are cut."""

    connector_class = DeltaSinkConnector
    exactly_once = True
    more: ClassVar[Mapping[str, str]] = {}

    @pytest.fixture
    def properties(self, s3_server: S3Server, endpoint: str) -> Iterator[Mapping[str, str]]:
        with bucket_on(s3_server) as bucket:
            yield {
                "delta.warehouse": f"s3://{bucket.name}/lake",
                "delta.storage.aws_endpoint_url": endpoint,
                "delta.storage.aws_access_key_id": s3_server.access_key,
                "delta.storage.aws_secret_access_key": s3_server.secret_key,
                "delta.storage.aws_region": s3_server.region,
                "delta.tables": "suite.rows",
                "delta.tables.auto-create-enabled": "true",
                "delta.commit.interval-ms": "100",
                **self.more,
            }

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        return delta_rows(self.direct(properties), "suite.rows", "id").column("id").to_pylist()

    def direct(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        """Not by way of the forwarder."""
        return {**properties, "delta.storage.aws_endpoint_url": self.s3_url}

    @pytest.fixture(autouse=True)
    def _s3_url(self, s3_server: S3Server) -> None:
        self.s3_url = s3_server.endpoint_url


@pytest.mark.long
class TestDeltaSink(DeltaSuite):
    """The code that it shares with the Iceberg sink is proven there too."""


@pytest.mark.long
class TestDeltaSinkByKey(DeltaSuite):
    """Rows are changed by their key."""

    more: ClassVar = {"delta.tables.upsert-mode-enabled": "true", "delta.tables.default-id-columns": "id"}
