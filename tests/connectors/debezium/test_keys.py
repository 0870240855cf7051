"""Every key of Debezium's connectors is known: applied, limited to one value, or accepted with a reason why it has no
effect.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.config.connector import LineageConfig
from connectors.debezium.accepted import given_without_effect
from connectors.mysql.config import MariaDbConfig, MySqlConfig
from connectors.postgres.config import PostgresConfig
from tidegate.kit.config import families_of, keys_of, parse, unknown_keys, validate

CLASSES = {"postgres": PostgresConfig, "mysql": MySqlConfig}
GIVEN = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t"}
_LISTED = Path(__file__).with_name("original_keys.txt").read_text().splitlines()


@pytest.mark.parametrize("kind", CLASSES)
def test_every_key_of_the_original_is_known(kind: str) -> None:
    names = [name for of, _, name in (line.partition(" ") for line in _LISTED) if of == kind]
    assert len(names) > 110
    known = (
        [*keys_of(CLASSES[kind]), *keys_of(LineageConfig)],
        [prefix for prefix, _ in families_of(CLASSES[kind])],
    )
    assert unknown_keys(names, *known) == []


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("event.processing.failure.handling.mode", "warn", "Must be fail"),
        ("sourceinfo.struct.maker", "x.Own", "SourceInfoStructMaker"),
        ("transaction.metadata.factory", "x.Own", "DefaultTransactionMetadataFactory"),
        ("snapshot.query.mode", "custom", "snapshot.select.statement.overrides"),
        ("snapshot.mode.custom.name", "mine", "left out"),
        ("database.sslfactory", "x.Factory", "NonValidatingFactory"),
        ("source.struct.version", "v1", "v2"),
        ("column.mask.hash.ROT13.with.salt.x", "public.t.a", "SHA-256"),
        ("column.mask.with.x.chars", "public.t.a", "column.mask.with.N.chars"),
        ("errors.max.retries", "-2", "at least -1"),
    ],
)
def test_invalid_values_are_refused_with_the_valid_ones(key: str, value: str, said: str) -> None:
    (error,) = [e for entry in validate(PostgresConfig, GIVEN | {key: value}) for e in entry.errors]
    assert said in error


def test_names_of_older_versions_and_of_the_cloud_are_the_same_keys() -> None:
    made = parse(
        MariaDbConfig,
        {
            **GIVEN,
            "table.includelist": "a.b",
            "sanitize.field.names": "true",
            "database.history.consumer.security.protocol": "SSL",
        },
    )
    assert made.table_include == ["a.b"] and made.field_names == "avro"
    assert made.history_reader_1x == {"security.protocol": "SSL"}
    assert parse(PostgresConfig, {**GIVEN, "slot.drop_on_stop": "true"}).slot_drop


def test_keys_without_effect_are_told_of_where_they_say_something() -> None:
    config = {"query.fetch.size": "0", "binlog.buffer.size": "7"}
    assert given_without_effect(MySqlConfig, config) == ["binlog.buffer.size"]
