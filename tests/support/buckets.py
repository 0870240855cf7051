"""A separate bucket for each test, on a real S3 server, and Amazon's client to read it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.servers.s3 import S3Server

__all__ = ["Bucket", "bucket_on"]

_numbers = itertools.count()


class Bucket:
    def __init__(self, server: S3Server, client: Any) -> None:
        self.server, self.client = server, client
        self.name = f"bucket-{next(_numbers)}"
        client.create_bucket(Bucket=self.name)

    @property
    def access(self) -> dict[str, str]:
        """The keys of Confluent's connectors that reach it."""
        return {
            "s3.bucket.name": self.name,
            "s3.region": self.server.region,
            "store.url": self.server.endpoint_url,
            "aws.access.key.id": self.server.access_key,
            "aws.secret.access.key": self.server.secret_key,
            "s3.part.retries": "0",
        }

    def put(self, name: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.name, Key=name, Body=data)

    def objects(self) -> dict[str, bytes]:
        listed = self.client.list_objects_v2(Bucket=self.name).get("Contents", [])
        return {
            each["Key"]: self.client.get_object(Bucket=self.name, Key=each["Key"])["Body"].read() for each in listed
        }


@contextmanager
def bucket_on(server: S3Server) -> Iterator[Bucket]:
    boto3 = pytest.importorskip("boto3")
    client = boto3.client(
        "s3",
        endpoint_url=server.endpoint_url,
        region_name=server.region,
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
    )
    try:
        yield Bucket(server, client)
    finally:
        client.close()
