"""Fixtures that every test may ask for."""

import pytest

from tests.servers.fixtures import (  # noqa: F401 - pytest finds fixtures by their names here
    apache_connect,
    apache_kafka,
    hdfs_server,
    kafka_tools,
    postgres_server,
    s3_server,
    tidegate_broker,
)

_LONG = ("tests/examples/", "tests/docs/", "tests/tidegate/", "tests/connectors/spark/", "tests/conformance/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long go first, so that no process is left with one of them when the other is done."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONG))
