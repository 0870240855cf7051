"""Sinks' targets that more than one suite writes to: the connector, its keys, and how to read back what arrived."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from connect.api import Record, Schema, SchemaType
from connectors.files.sink import FileStreamSinkConnector
from connectors.local.sink import LocalSinkConnector
from connectors.s3.sink import S3SinkConnector
from tests.servers.s3 import S3Server

__all__ = ["FileTarget", "LocalTarget", "S3Target"]


class FileTarget:
    connector_class = FileStreamSinkConnector
    topic: str

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Mapping[str, str]:
        return {"file": str(tmp_path / "out")}

    def record(self, n: int) -> Record:
        return Record(self.topic, str(n), Schema(SchemaType.STRING))

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        path = Path(properties["file"])
        return [int(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


class LocalTarget:
    connector_class = LocalSinkConnector
    exactly_once = True

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Mapping[str, str]:
        return {"store.url": f"file://{tmp_path}", "format.class": "ParquetFormat", "flush.size": "4"}

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        found = Path(properties["store.url"].removeprefix("file://")).rglob("*.parquet")
        return [number for path in found for number in pq.ParquetFile(path).read().column("id").to_pylist()]


class S3Target:
    connector_class = S3SinkConnector
    exactly_once = True

    @pytest.fixture
    def endpoint(self, s3_server: S3Server) -> str:
        """The address that the sink is given."""
        return s3_server.endpoint_url

    @pytest.fixture
    def properties(self, s3_server: S3Server, endpoint: str, tmp_path: Path) -> Mapping[str, str]:
        (s3_server.store / "suite").mkdir(exist_ok=True)
        self.folder = s3_server.store / "suite" / tmp_path.name
        return {
            "s3.bucket.name": "suite",
            "s3.region": s3_server.region,
            "store.url": endpoint,
            "aws.access.key.id": s3_server.access_key,
            "aws.secret.access.key": s3_server.secret_key,
            "format.class": "JsonFormat",
            "flush.size": "4",
            "topics.dir": tmp_path.name,
        }

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        return [
            json.loads(line)["id"] for path in self.folder.rglob("*.json") for line in path.read_text().splitlines()
        ]
