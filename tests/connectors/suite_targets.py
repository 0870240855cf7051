"""Targets of sinks that several suites use: the connector, its keys, and how to read back the results."""

from __future__ import annotations

import io
import itertools
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from connect.api import Record, Schema, SchemaType
from connectors.azure.sink import AzureBlobStorageSinkConnector
from connectors.delta.sink import DeltaSinkConnector
from connectors.files.sink import FileStreamSinkConnector
from connectors.hdfs.sink import HdfsSinkConnector
from connectors.iceberg.sink import IcebergSinkConnector
from connectors.local.sink import LocalSinkConnector
from connectors.s3.sink import S3SinkConnector
from connectors.sftp.sink import SftpSinkConnector
from events.model.payloads import unframe
from tests.servers.azure import AzureServer
from tests.servers.hdfs import HdfsServer
from tests.servers.s3 import S3Server
from tests.support.delta import delta_rows, local_warehouse
from tests.support.events import EventsThread
from tests.support.iceberg import iceberg_rows, local_catalog
from tests.support.sftp import sftp_server

__all__ = [
    "AzureTarget",
    "DeltaTarget",
    "EventTarget",
    "FileTarget",
    "HdfsTarget",
    "IcebergTarget",
    "LocalTarget",
    "S3Target",
    "SftpTarget",
    "published",
]

_numbers = itertools.count()


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
        files = Path(properties["store.url"].removeprefix("file://")).rglob("*.parquet")
        return [number for path in files for number in pq.ParquetFile(path).read().column("id").to_pylist()]


class SftpTarget:
    """Files of an SFTP server that is started for each test."""

    connector_class = SftpSinkConnector
    exactly_once = True

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Iterator[Mapping[str, str]]:
        with sftp_server(tmp_path) as server:
            self.root = server.root
            yield {
                "store.url": f"{server.url}/lake",
                "format.class": "ParquetFormat",
                "flush.size": "4",
                **server.access,
            }

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        files = self.root.rglob("*.parquet")
        return [number for path in files for number in pq.ParquetFile(path).read().column("id").to_pylist()]


class IcebergTarget:
    """Rows of a table in a catalog on SQLite, with its files on this disk."""

    connector_class = IcebergSinkConnector
    exactly_once = True

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Mapping[str, str]:
        return local_catalog(tmp_path) | {
            "iceberg.tables": "suite.rows",
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.control.commit.interval-ms": "0",
        }

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        return iceberg_rows(properties, "suite.rows", "id").column("id").to_pylist()


class DeltaTarget:
    """Rows of a table on this disk."""

    connector_class = DeltaSinkConnector
    exactly_once = True

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Mapping[str, str]:
        return local_warehouse(tmp_path) | {
            "delta.tables": "suite.rows",
            "delta.tables.auto-create-enabled": "true",
            "delta.commit.interval-ms": "0",
        }

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        return delta_rows(properties, "suite.rows", "id").column("id").to_pylist()


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


class AzureTarget:
    connector_class = AzureBlobStorageSinkConnector
    exactly_once = True

    @pytest.fixture
    def azure_url(self, azure_server: AzureServer) -> str:
        """The address that the sink is given."""
        return azure_server.endpoint_url

    @pytest.fixture
    def properties(self, azure_server: AzureServer, azure_url: str, tmp_path: Path) -> Mapping[str, str]:
        self.server, self.container = azure_server, f"suite-{next(_numbers)}"
        azure_server.create_container(self.container)
        return {
            "azblob.account.name": azure_server.account,
            "azblob.account.key": azure_server.key,
            "azblob.container.name": self.container,
            "store.url": azure_url,
            "format.class": "JsonFormat",
            "flush.size": "4",
        }

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        blobs = self.server.blobs(self.container).values()
        return [json.loads(line)["id"] for blob in blobs for line in blob.splitlines()]


class HdfsTarget:
    connector_class = HdfsSinkConnector
    exactly_once = True
    topic: str

    @pytest.fixture
    def hdfs_url(self, hdfs_server: HdfsServer) -> str:
        """The address that the sink is given."""
        return hdfs_server.url

    @pytest.fixture
    def properties(self, hdfs_server: HdfsServer, hdfs_url: str, tmp_path: Path) -> Mapping[str, str]:
        self.http_url = hdfs_server.http_url
        name = f"{tmp_path.parent.name}-{tmp_path.name}"
        return {"hdfs.url": hdfs_url, "topics.dir": f"{name}/topics", "logs.dir": f"{name}/logs", "flush.size": "4"}

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        base = f"{self.http_url}/webhdfs/v1/{properties['topics.dir']}/{self.topic}"
        return [n for folder in self._names(base) for n in self._numbers(f"{base}/{folder}")]

    def _numbers(self, base: str) -> list[Any]:
        numbers = []
        for name in self._names(base):
            with urllib.request.urlopen(f"{base}/{name.replace('+', '%2B')}?op=OPEN", timeout=60) as content:
                numbers += [record["id"] for record in fastavro.reader(content)]
        return numbers

    def _names(self, base: str) -> list[str]:
        """The names in a folder; empty where it does not exist."""
        try:
            with urllib.request.urlopen(f"{base}?op=LISTSTATUS", timeout=60) as response:
                return [each["pathSuffix"] for each in json.load(response)["FileStatuses"]["FileStatus"]]
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise


_EVENT = Schema.struct(
    {"Order_Number__c": Schema(SchemaType.STRING), "Amount__c": Schema.decimal(2, optional=True)}, name="Order"
)


class EventTarget:
    """Rows become platform events of an events service, Order_Shipped__e."""

    topic: str

    @pytest.fixture
    def service_login(self, events_service: EventsThread, login: Mapping[str, str]) -> Mapping[str, str]:
        self.service, self.first = events_service, len(published(events_service))
        return login

    def record(self, n: int) -> Record:
        return Record(self.topic, {"Order_Number__c": str(n), "Amount__c": None}, _EVENT)

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        return [int(number) for number in published(self.service)[self.first :]]


def published(service: EventsThread) -> list[str]:
    """The order numbers of all events of the service, in their order."""
    bounds = service.run(service.server.log.bounds("Order_Shipped__e"))
    numbers: list[str] = []
    offset = bounds.start
    while offset < bounds.end:
        part = service.run(service.server.log.read("Order_Shipped__e", offset, 10**7))
        for record in part.records:
            schema_id, payload = unframe(record.value or b"")
            schema = fastavro.parse_schema(json.loads(service.schemas.by_id(schema_id) or ""))
            body: Any = fastavro.schemaless_reader(io.BytesIO(payload), schema, None)
            numbers.append(body["Order_Number__c"])
        offset = part.next_offset
    return numbers
