"""Telefonica's HeaderRouter: the examples and tables of its documentation."""

from __future__ import annotations

from typing import Any

import pytest

from connect.api import DataError, Header, PluginType, Record, RecordBatch, Schema, SchemaType
from connect.plugins.registry import load_plugins
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError

PLUGINS = load_plugins(entry_points=False)
ENTITY = {"fiware-service": "mycompany", "fiware-servicepath": "/sensors", "entityType": "TemperatureSensor"}


def topics(config: dict[str, str], *rows: dict[str, Any]) -> list[str]:
    plugin = PLUGINS.find("com.telefonica.HeaderRouter", PluginType.TRANSFORMATION)
    assert plugin is not None
    loaded = plugin.load()
    headers = [tuple(Header(name, value) for name, value in row.items()) for row in rows]
    text = Schema(SchemaType.STRING)
    records = [Record("raw", "x", text, headers=row, offset=n) for n, row in enumerate(headers)]
    made = loaded(parse(loaded.config_class, config)).apply(RecordBatch.from_records(records))
    return [batch.topic for batch in made for _ in range(len(batch))]


def raw(**headers: str) -> dict[str, bytes]:
    return {name: text.encode() for name, text in headers.items()}


@pytest.mark.parametrize(
    ("config", "headers", "topic"),
    [
        ({}, ENTITY, "mycompany.sensors_temperaturesensor"),
        ({"datamodel": "dm-by-entity-type-database"}, ENTITY, "mycompany.sensors_temperaturesensor"),
        ({"datamodel": "dm-by-entity-type-database-schema"}, ENTITY, "sensors.sensors_temperaturesensor"),
        ({"datamodel": "dm-by-fixed-entity-type-database-schema"}, ENTITY, "sensors.temperaturesensor"),
        ({"datamodel": "dm-postgis-errors"}, ENTITY, "mycompany.mycompany_error_log"),
        ({"datamodel": "dm-http-errors", "headers.schema": "test"}, ENTITY, "test.mycompany_error_log"),
        ({"headers.schema": "test_schema"}, ENTITY, "test_schema.sensors_temperaturesensor"),
        ({"suffix": "_historic"}, ENTITY, "mycompany.sensors_temperaturesensor_historic"),
        ({}, ENTITY | {"suffix": "_lastdata"}, "mycompany.sensors_temperaturesensor_lastdata"),
        ({"headers.service": "tenant1"}, ENTITY, "tenant1.sensors_temperaturesensor"),
        ({"headers.service": "tenant"}, ENTITY | {"tenant": "two"}, "two.sensors_temperaturesensor"),
        (
            {"datamodel": "dm-by-entity-type-database-schema"},
            ENTITY | {"fiware-datamodel": "dm-by-entity-type-database"},
            "mycompany.sensors_temperaturesensor",
        ),
        (
            {"datamodel": "dm-by-entity-type-database-schema"},
            ENTITY | {"fiware-datamodel": ""},
            "sensors.sensors_temperaturesensor",
        ),
        ({}, ENTITY | {"fiware-servicepath": "/"}, "mycompany._temperaturesensor"),
        ({}, ENTITY | {"fiware-servicepath": ""}, "mycompany._temperaturesensor"),
        ({}, {"fiware-service": "test", "entityType": "Sensor"}, "test._sensor"),
    ],
)
def test_headers_name_schema_and_table(config: dict[str, str], headers: dict[str, str], topic: str) -> None:
    assert topics(config, {name: text.encode() for name, text in headers.items()}) == [topic]


def test_rows_go_where_each_one_s_headers_say() -> None:
    rows = [ENTITY, ENTITY, ENTITY | {"entityType": "Lamp"}]
    assert topics({}, *rows) == ["mycompany.sensors_temperaturesensor"] * 2 + ["mycompany.sensors_lamp"]


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        ({"datamodel": "dm-by-entity-type-database-schema"}, "fiware-servicepath"),
        ({"datamodel": "dm-by-fixed-entity-type-database-schema"}, "fiware-servicepath"),
        ({}, "fiware-service"),
        ({}, "entityType"),
        ({"datamodel": "dm-postgis-errors"}, "fiware-service"),
    ],
)
def test_a_row_without_a_header_that_its_data_model_needs_is_an_error(config: dict[str, str], missing: str) -> None:
    lacking = {name: text for name, text in ENTITY.items() if name != missing}
    with pytest.raises(DataError, match=f"header {missing} is missing or empty") as caught:
        topics(config, ENTITY, lacking)
    assert caught.value.rows == (1,)


def test_a_data_model_that_there_is_not_is_refused() -> None:
    with pytest.raises(DataError, match="fiware-datamodel is 'x'"):
        topics({}, ENTITY | {"fiware-datamodel": "x"})
    with pytest.raises(ConfigError, match="datamodel"):
        topics({"datamodel": "dm-none"}, ENTITY)


def test_a_null_service_path_is_the_root() -> None:
    headers = {name: text.encode() for name, text in ENTITY.items()}
    assert topics({}, headers | {"fiware-servicepath": None}) == ["mycompany._temperaturesensor"]


def test_one_header_can_contain_the_whole_topic_name() -> None:
    rows = [raw(target_table="users"), {}, {"target_table": None}, raw(target_table="Rooms")]
    assert topics({"header.key": "target_table"}, *rows) == ["users", "raw", "raw", "Rooms"]
    with pytest.raises(ConfigError, match="header.key"):
        topics({"header.key": "target_table", "datamodel": "dm-postgis-errors"}, rows[0])
