"""Servers work with clients by other authors, and say what is wrong when they cannot start.

HDFS and Kafka Connect take long to start; the tests that use them cover them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers.fetch import BY_NAME_ONLY, NAMES, ServerMissing, fetch, pins, require
from tests.servers.kafka import KafkaBroker
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import ServerFailed, ServerProcess
from tests.servers.s3 import S3Server


def test_every_server_is_pinned() -> None:
    assert {*NAMES, *BY_NAME_ONLY} == set(pins())


def test_an_unknown_server_is_refused_by_name() -> None:
    with pytest.raises(ServerMissing, match="no server is called 'cassandra'"):
        fetch("cassandra")


def test_a_missing_server_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIDEGATE_SERVERS", str(tmp_path))
    with pytest.raises(ServerMissing, match="python -m tests.servers fetch kafka"):
        require("kafka")


def test_a_server_that_dies_at_its_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    dying = ServerProcess("dying", ["sh", "-c", "echo out of tea; exit 3"], log=tmp_path / "log", ready=lambda: False)
    with pytest.raises(ServerFailed, match=r"dying ended with status 3(.|\n)*out of tea"):
        dying.start()


def test_kafka_tools_talk_to_the_broker(apache_kafka: KafkaBroker, kafka_tools: Callable[..., str]) -> None:
    address = ("--bootstrap-server", apache_kafka.bootstrap_servers)
    kafka_tools("kafka-topics", *address, "--create", "--topic", "servers-test", "--partitions", "2")
    assert "servers-test" in kafka_tools("kafka-topics", *address, "--list").split()


def test_postgres_has_logical_replication(postgres_server: PostgresServer) -> None:
    with postgres_server.connect() as connection:
        assert connection.execute("show wal_level").fetchone() == ("logical",)


def test_mariadb_logs_rows(mariadb_server: MariaDbServer) -> None:
    with mariadb_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select @@log_bin, @@binlog_format")
        assert cursor.fetchone() == (1, "ROW")


def test_s3_stores_an_object(s3_server: S3Server) -> None:
    boto3 = pytest.importorskip("boto3")
    client = boto3.client(
        "s3",
        endpoint_url=s3_server.endpoint_url,
        region_name=s3_server.region,
        aws_access_key_id=s3_server.access_key,
        aws_secret_access_key=s3_server.secret_key,
    )
    client.create_bucket(Bucket="servers-test")
    client.put_object(Bucket="servers-test", Key="a/b", Body=b"tea")
    assert client.get_object(Bucket="servers-test", Key="a/b")["Body"].read() == b"tea"
    client.close()
