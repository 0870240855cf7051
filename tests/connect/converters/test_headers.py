from __future__ import annotations

import decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import DataError, Header, Record, RecordBatch, Schema, SchemaType
from connect.converters.headers import header_conversion
from connect.data.headers import column_of, header_lists
from connect.data.java.value_texts import to_text
from connect.data.java.values import parse_string
from connect.plugins.registry import load_plugins

PLUGINS = load_plugins(entry_points=False)
TEXT, NUMBER = Schema(SchemaType.STRING), Schema(SchemaType.INT64)


def batch(*headers):
    return RecordBatch.from_records([Record("t", "v", TEXT, headers=headers)])


def conversion(name=None, **more):
    config = {"header.converter": name} if name else {}
    return header_conversion(PLUGINS, {}, {**config, **more}, connector="c")


def headers(made):
    (record,) = made.records()
    return [(header.key, header.value) for header in record.headers]


def test_values_are_written_as_text_and_read_as_what_the_text_looks_like():
    header_values = [
        Header("n", 7, NUMBER),
        Header("map", {"a": 1}, Schema.map(TEXT, NUMBER)),
        Header("price", decimal.Decimal("1.50"), Schema.decimal(2)),
        Header("plain", {"x": [1, None]}),
        Header("null", None, TEXT),
        Header("raw", b"\xff"),
    ]
    simple = conversion()
    written = simple.to_log(batch(*header_values))
    assert headers(written) == [
        ("n", b"7"), ("map", b'{"a":1}'), ("price", b"1.50"), ("plain", b'{"x":[1,null]}'), ("null", None), ("raw", b"\xff"),
    ]  # fmt: skip
    (record,) = simple.from_log(written.slice(0, 1)).records()
    assert [header.schema and header.schema.type for header in record.headers][:2] == [SchemaType.INT8, SchemaType.MAP]
    assert record.headers[0].value == 7 and record.headers[3].schema.type is SchemaType.STRING


@pytest.mark.parametrize(
    ("name", "header", "data"),
    [
        ("org.apache.kafka.connect.json.JsonConverter", Header("h", 7, NUMBER),
         b'{"schema":{"type":"int64","optional":false},"payload":7}'),
        ("org.apache.kafka.connect.storage.StringConverter", Header("h", "é", TEXT), "é".encode()),
        ("org.apache.kafka.connect.converters.LongConverter", Header("h", 7, NUMBER), (7).to_bytes(8, "big")),
    ],
)  # fmt: skip
def test_headers_can_be_converted_by_other_converters(name, header, data):
    made = conversion(name)
    written = made.to_log(batch(header))
    assert headers(written) == [("h", data)]
    (record,) = made.from_log(written).records()
    assert record.headers[0].value == header.value


def test_a_header_that_cannot_be_converted_is_its_rows_fault():
    rows = RecordBatch.from_records(
        [Record("t", "v", TEXT, headers=(Header("h", value, schema),)) for value, schema in ((7, NUMBER), ("x", TEXT))]
    )
    with pytest.raises(DataError, match="header 'h' of t") as caught:
        conversion("org.apache.kafka.connect.converters.LongConverter").to_log(rows)
    assert caught.value.rows == (1,)


def test_numbers_beyond_columns_stay_as_text():
    schema, value = parse_string("1e400")
    assert schema.scale == -400
    assert header_lists(column_of([[Header("h", value, schema)]]))[0][0].value == "1E+400"


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=20) | st.text('[]{}:,"\\ 01-e.tru', max_size=15))
def test_any_text_is_read(text):
    schema, value = parse_string(text)
    assert value is None or to_text(schema, value) is not None
    column = column_of([[Header("h", value, schema)]])
    assert column is None or isinstance(column, pa.ListArray)


def test_values_that_are_equal_keep_their_types_and_signs():
    cells = [
        Header("h", True, Schema(SchemaType.BOOLEAN)),
        Header("h", 1, Schema(SchemaType.INT64)),
        Header("h", 1.0, Schema(SchemaType.FLOAT64)),
        Header("h", 0.0, Schema(SchemaType.FLOAT64)),
        Header("h", -0.0, Schema(SchemaType.FLOAT64)),
        Header("h", "1", Schema(SchemaType.STRING)),
        Header("h", "x" * 1000, Schema(SchemaType.STRING)),
    ] * 2
    (read,) = header_lists(column_of([cells]))
    assert [repr(header.value) for header in read] == [repr(header.value) for header in cells]
