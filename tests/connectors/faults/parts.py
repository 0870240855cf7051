"""Helpers that several connectors' suites share: the Kafka they run on, access to their servers, the expected rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pytest

from connect.testing import Forwarder, SourceFaultSuite
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.servers.s3 import S3Server

__all__ = [
    "ROWS",
    "CapturedRows",
    "NumberedRows",
    "OnBothBrokers",
    "OnMariaDb",
    "OnPostgres",
    "OnS3",
    "ThroughForwarder",
]

ROWS = 120


class OnBothBrokers:
    @pytest.fixture(scope="class", params=["tidegate_broker", pytest.param("apache_kafka", marks=pytest.mark.long)])
    @classmethod
    def bootstrap_servers(cls, request: pytest.FixtureRequest) -> str:
        return str(request.getfixturevalue(request.param).bootstrap_servers)


class ThroughForwarder:
    """The connector reaches its server through one forwarder."""

    @pytest.fixture
    def parties(self, server_port: int) -> Iterator[Sequence[Forwarder]]:
        with Forwarder.to(server_port) as forwarder:
            yield [forwarder]

    @pytest.fixture
    def port(self, parties: Sequence[Forwarder]) -> int:
        return parties[0].port


class OnS3(ThroughForwarder):
    @pytest.fixture
    def server_port(self, s3_server: S3Server) -> int:
        return s3_server.port

    @pytest.fixture
    def endpoint(self, port: int) -> str:
        return f"http://127.0.0.1:{port}"


class OnPostgres(ThroughForwarder):
    @pytest.fixture
    def server_port(self, postgres_server: PostgresServer) -> int:
        return postgres_server.port


class NumberedRows(OnBothBrokers, SourceFaultSuite):
    """The source has rows 1 to ROWS."""

    @pytest.fixture
    def expected(self) -> Collection[Any]:
        return range(1, ROWS + 1)


class CapturedRows(NumberedRows):
    """Told in Debezium's envelope, with records of other kinds between them."""

    def identity(self, topic: str, key: Any, value: Any) -> Any:
        return value["after"]["id"] if "after" in value else None


class OnMariaDb(ThroughForwarder):
    @pytest.fixture
    def server_port(self, mariadb_server: MariaDbServer) -> int:
        return mariadb_server.port
