"""The S3 connectors pass the suites that kill, stop and cut connections."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pytest

from connect.testing import SinkFaultSuite, SourceFaultSuite
from connectors.s3.source import S3SourceConnector
from tests.connectors.faults.parts import OnBothBrokers, OnS3
from tests.connectors.suite_targets import S3Target
from tests.servers.s3 import S3Server
from tests.support.buckets import Bucket, bucket_on

pytestmark = [pytest.mark.proof, pytest.mark.servers]


class TestS3Sink(OnS3, S3Target, OnBothBrokers, SinkFaultSuite):
    pass


@pytest.mark.long
class TestS3Source(OnS3, OnBothBrokers, SourceFaultSuite):
    connector_class = S3SourceConnector

    @pytest.fixture
    def bucket(self, s3_server: S3Server) -> Iterator[Bucket]:
        with bucket_on(s3_server) as made:
            for n in range(6):
                lines = [json.dumps({"id": n * 20 + line}) for line in range(20)]
                made.put(f"topics/objects/partition=0/objects+0+{n * 20:010d}.json", "\n".join(lines).encode() + b"\n")
            yield made

    @pytest.fixture
    def properties(self, bucket: Bucket, endpoint: str) -> Mapping[str, str]:
        properties = {
            **bucket.access,
            "format.class": "JsonFormat",
            "s3.poll.interval.ms": "50",
            "record.batch.max.size": "10",
        }
        return properties | {"store.url": endpoint}

    @pytest.fixture
    def expected(self) -> Collection[Any]:
        return range(120)
