"""BinaryDataConverter passes bytes through and leaves everything else to its delegate."""

from __future__ import annotations

import pyarrow as pa
import pytest

from connect.api import ConverterContext, DataError, PluginType, Schema, SchemaType
from connect.converters.binary_data import BinaryDataConfig
from connect.plugins.registry import load_plugins
from tidegate.kit.config import parse, validate

BEAT = Schema.struct({"ts_ms": Schema(SchemaType.INT64)}, name="io.debezium.connector.common.Heartbeat")
JSON = {
    "delegate.converter.type": "org.apache.kafka.connect.json.JsonConverter",
    "delegate.converter.type.schemas.enable": "false",
}


def converter(name="BinaryData", **config):
    plugin = load_plugins(entry_points=False).find(f"io.debezium.converters.{name}Converter", PluginType.CONVERTER)
    return plugin.load()(parse(BinaryDataConfig, config), ConverterContext(is_key=False))


@pytest.mark.parametrize("name", ["BinaryData", "ByteBuffer", "ByteArray"])
def test_bytes_pass_under_all_its_names(name):
    column = pa.array([b"a", None], pa.binary())
    made = converter(name, **JSON)
    assert made.from_connect("t", Schema(SchemaType.BYTES, optional=True), column).to_pylist() == [b"a", None]
    (run,) = made.to_connect("t", column)
    assert run.values.to_pylist() == [b"a", None] and run.schema == Schema(SchemaType.BYTES, optional=True)


def test_the_rest_goes_to_the_delegate():
    beats = pa.array([{"ts_ms": 5}], BEAT.arrow_type)
    assert converter(**JSON).from_connect("t", BEAT, beats).to_pylist() == [b'{"ts_ms":5}']
    price = pa.array([1], pa.decimal128(38, 2))
    assert converter(**JSON).from_connect("t", Schema.decimal(2), price).to_pylist() == [b'"ZA=="']


def test_without_a_delegate_the_rest_is_an_error_and_tombstones_are_not():
    with pytest.raises(DataError, match="common.Heartbeat for topic t: use bytes, or set delegate.converter.type"):
        converter().from_connect("t", BEAT, pa.array([{"ts_ms": 5}], BEAT.arrow_type))
    assert converter().from_connect("t", BEAT, pa.nulls(2, BEAT.arrow_type)).to_pylist() == [None, None]


def test_the_delegate_and_its_keys_are_judged():
    config = {**JSON, "delegate.converter.type.schemas.enable": "maybe"}
    wrong = {value.key.name for value in validate(BinaryDataConfig, config) if value.errors}
    assert wrong == {"delegate.converter.type.schemas.enable"}
    wrong = {
        value.key.name for value in validate(BinaryDataConfig, {"delegate.converter.type": "no.Such"}) if value.errors
    }
    assert wrong == {"delegate.converter.type"}
