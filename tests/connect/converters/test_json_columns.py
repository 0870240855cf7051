"""Reading JSON in columns gives the same result as reading it row by row."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from connect.api import ConverterContext, DataError, Schema, SchemaType
from connect.converters.json import JsonConfig, JsonConverter
from connect.converters.json_columns import common_envelope, read_columns
from connect.data.json_text import json_texts
from connect.data.json_values import from_json
from tests.support.schemas import schemas, values_of

FLAT = Schema.struct({"id": Schema(SchemaType.INT64), "name": Schema(SchemaType.STRING, optional=True)})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_columns_and_rows_are_read_alike(data):
    schema = data.draw(schemas)
    assume(schema.type is SchemaType.STRUCT)
    values = pa.array(data.draw(st.lists(values_of(schema), min_size=1, max_size=5)), schema.arrow_type).drop_null()
    assume(len(values))
    texts = json_texts(schema, values)
    columns = read_columns(schema, texts.cast(pa.binary()))
    if columns is not None:
        assert columns.equals(from_json(schema.as_optional(), [json.loads(t) for t in texts.to_pylist()], "a value"))


def test_an_array_of_decimals_may_be_empty_in_every_row():
    schema = Schema.struct({"a": Schema.array(Schema.decimal(2, 9))})
    texts = pa.array([b'{"a":[]}', b'{"a":[]}'], pa.binary())
    columns = read_columns(schema, texts)
    assert columns is not None and columns.to_pylist() == [{"a": []}, {"a": []}]


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5), st.just([]), st.just({})
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.fixed_dictionaries({}, optional={"id": ODD, "name": ODD, "more": ODD}), min_size=1, max_size=4))
def test_values_that_do_not_fit_are_left_to_the_other_reader(rows):
    texts = pa.array([json.dumps(row, allow_nan=False) for row in _finite(rows)], pa.binary())
    columns = read_columns(FLAT, texts)
    try:
        expected = from_json(FLAT.as_optional(), [json.loads(text) for text in texts.to_pylist()], "a value")
    except DataError:
        assert columns is None
    else:
        assert columns is None or columns.equals(expected)


def _finite(rows):
    odd = (float("inf"), float("-inf"))
    return [{k: str(v) if v in odd or v != v else v for k, v in row.items()} for row in rows]


@pytest.mark.parametrize(
    "rows",
    [
        [b'{"id":1}', b'{"id":2}{"id":3}'],
        [b'{"id":1}{"id":3}', b"{}"],
        [b'{"id":1},"x":{}}', b'{"id":1}'],
        [b'{"id":1,"name":"\\ud800"}'],
        [b'{"id":1,\n"name":"a"}'],
        [b'{"id":1,"id":2}'],
        [b'{"id":1.0}'],
        [b'{"id":1e3}'],
        [b'{"id":"1"}'],
        [b'{"id":99999999999999999999}'],
        [b'{"name":"a"}'],
        [b'{"id":1,"name":5}'],
        [b'{"id":1,}'],
    ],
)
def test_misleading_rows_are_left_to_the_other_reader(rows):
    assert read_columns(FLAT, pa.array(rows, pa.binary())) is None


def test_an_envelope_is_common_when_all_rows_have_it():
    converter = JsonConverter(JsonConfig(), ConverterContext(is_key=False))
    values = pa.array([{"id": 1, "name": '"payload":{'}, {"id": 2, "name": None}], FLAT.arrow_type)
    written = converter.from_connect("t", FLAT, values)
    prefix = common_envelope(written)
    assert prefix is None or prefix.endswith(b'"payload":')
    (run,) = converter.to_connect("t", written)
    assert run.schema == FLAT and run.values.equals(values)
    other = pa.concat_arrays([written, pa.array([b'{"schema":null,"payload":1}'], pa.binary())])
    assert common_envelope(other) is None
    assert [len(run.values) for run in converter.to_connect("t", other)] == [2, 1]


def test_a_wrong_row_among_alike_ones_is_named():
    converter = JsonConverter(JsonConfig(), ConverterContext(is_key=False))
    written = converter.from_connect("t", FLAT, pa.array([{"id": n, "name": "a"} for n in range(3)], FLAT.arrow_type))
    wrong = [written[0].as_py(), written[1].as_py().replace(b'"id":1', b'"id":"x"'), written[2].as_py()]
    with pytest.raises(DataError) as caught:
        converter.to_connect("t", pa.array(wrong, pa.binary()))
    assert caught.value.rows == (1,)


def test_a_fixed_schema_reads_payloads_alone():
    content = '{"type":"struct","fields":[{"field":"a","type":"int32","default":7}]}'
    settings_ = JsonConfig(content=content)
    (run,) = JsonConverter(settings_, ConverterContext(is_key=False)).to_connect("t", pa.array([b'{"a":1}', b"{}"]))
    assert run.values.to_pylist() == [{"a": 1}, {"a": 7}]
    kept = JsonConfig(content=content.replace('"int32",', '"int32","optional":true,'), replace_null=False)
    (run,) = JsonConverter(kept, ConverterContext(is_key=False)).to_connect("t", pa.array([b"{}"]))
    assert run.values.to_pylist() == [{"a": None}]
