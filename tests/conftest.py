"""Fixtures that every test may ask for."""

from tests.servers.fixtures import (  # noqa: F401 - pytest finds fixtures by their names here
    apache_connect,
    apache_kafka,
    hdfs_server,
    kafka_tools,
    postgres_server,
    s3_server,
    tidegate_broker,
)
