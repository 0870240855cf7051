"""Values that the originals accept in any case."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.hdfs.config import HdfsSinkConfig
from connectors.jdbc.config import JdbcSourceConfig
from connectors.postgres.config import PostgresConfig
from tidegate.kit.config import parse, validate

POSTGRES = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "p"}
JDBC = {"connection.url": "jdbc:sqlite:x", "mode": "bulk", "topic.prefix": "p"}
HDFS = {"hdfs.url": "hdfs://h:1", "flush.size": "1"}


@pytest.mark.parametrize(
    ("config", "overrides", "key", "value"),
    [
        (PostgresConfig, POSTGRES, "database.sslmode", "REQUIRE"),
        (PostgresConfig, POSTGRES, "plugin.name", "PGOUTPUT"),
        (JdbcSourceConfig, JDBC, "timestamp.granularity", "MICROS_LONG"),
        (HdfsSinkConfig, HDFS, "behavior.on.null.values", "IGNORE"),
    ],
)
def test_an_enumeration_is_taken_in_any_case(config: Any, overrides: dict[str, str], key: str, value: str) -> None:
    judged = validate(config, overrides | {key: value})
    assert [(each.key.name, each.errors) for each in judged if each.errors] == []


def test_the_case_of_a_value_does_not_change_its_meaning() -> None:
    assert parse(JdbcSourceConfig, JDBC | {"timestamp.granularity": "Nanos_String"}).time_form == "nanos_string"
