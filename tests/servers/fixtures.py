"""The servers as pytest fixtures, started once a session when first asked for.

A server that is not on this machine skips its tests with one line that says how to get it; where ``CI`` is set it fails them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.azure import AzureServer
from tests.servers.fetch import ServerMissing
from tests.servers.hdfs import HdfsServer
from tests.servers.iceberg import IcebergRestServer
from tests.servers.kafka import KafkaBroker, KafkaConnect, kafka_tool
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.servers.s3 import S3Server
from tests.servers.tidegate_broker import TidegateBroker

__all__ = [
    "apache_connect",
    "apache_kafka",
    "azure_server",
    "hdfs_server",
    "iceberg_rest",
    "kafka_tools",
    "mariadb_server",
    "or_skip",
    "postgres_server",
    "s3_server",
    "tidegate_broker",
]


def or_skip(make: Callable[[], Any]) -> Any:
    """The result of ``make``; if its server is missing, a skip, or a failure in CI."""
    try:
        return make()
    except ServerMissing as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def _running(make: Callable[[], Any]) -> Iterator[Any]:
    server = or_skip(make)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _folder(factory: pytest.TempPathFactory, name: str) -> Path:
    return factory.mktemp(name)


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A running Apache Kafka broker, shared by the session: use topics and groups of your own."""
    yield from _running(lambda: KafkaBroker(_folder(tmp_path_factory, "kafka")))


@pytest.fixture(scope="session")
def apache_connect(apache_kafka: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaConnect]:
    """A running Kafka Connect worker over ``apache_kafka``, with the file connectors."""
    bootstrap = apache_kafka.bootstrap_servers
    yield from _running(lambda: KafkaConnect(_folder(tmp_path_factory, "connect"), bootstrap))


@pytest.fixture(scope="session")
def tidegate_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TidegateBroker]:
    """A running broker of ours, shared by the session: use topics and groups of your own."""
    yield from _running(lambda: TidegateBroker(_folder(tmp_path_factory, "tidegate")))


@pytest.fixture(scope="session")
def kafka_tools() -> Callable[..., str]:
    """``kafka_tools("kafka-topics", "--list", ...)`` runs Kafka's own tool and returns what it printed."""
    from tests.servers.fetch import require

    or_skip(lambda: require("kafka"))
    return kafka_tool


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running PostgreSQL, shared by the session: use tables or databases of your own."""
    yield from _running(PostgresServer)


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDbServer]:
    """A running MariaDB, shared by the session: use tables or databases of your own."""
    yield from _running(MariaDbServer)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A running S3 server, shared by the session: use buckets of your own."""
    yield from _running(lambda: S3Server(_folder(tmp_path_factory, "s3")))


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """A running server with Azure's Blob API, shared by the session: use containers of your own."""
    yield from _running(lambda: AzureServer(_folder(tmp_path_factory, "azure")))


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """A running HDFS, shared by the session: use folders of your own."""
    yield from _running(lambda: HdfsServer(_folder(tmp_path_factory, "hdfs")))


@pytest.fixture(scope="session")
def iceberg_rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergRestServer]:
    """A REST catalog of Iceberg, shared by the session: use namespaces of your own."""
    yield from _running(lambda: IcebergRestServer(_folder(tmp_path_factory, "iceberg")))
