"""The CSV of the Bulk API 2.0 preserves every value, in both directions."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import ConnectError, DataError, Record, RecordBatch, Schema, SchemaType
from connectors.salesforce.bulk_csv import NULL, from_csv, rows_of, text_columns, to_csv
from connectors.salesforce.schemas import object_schema

FIELDS = {
    "Id": "id",
    "Name": "string",
    "Note__c": "textarea",
    "Ok__c": "boolean",
    "Count__c": "int",
    "Rate__c": "double",
    "Born__c": "date",
    "Seen__c": "datetime",
    "At__c": "time",
}
SCHEMA = object_schema("Thing__c", [{"name": name, "type": kind} for name, kind in FIELDS.items()])
NAMES = list(FIELDS)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12) | st.sampled_from(
    ['"', "a\nb", "a\r\nb", ",", '""', " x ", "null", "NaN", "true", "é€😀", "1e5"]
)
times = st.times().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=None))
instants = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(4000, 12, 31), timezones=st.just(dt.UTC)).map(
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
)
values = st.fixed_dictionaries(
    {
        "Id": st.text("0aA", min_size=1, max_size=18),
        "Name": st.none() | texts,
        "Note__c": st.none() | texts,
        "Ok__c": st.none() | st.booleans(),
        "Count__c": st.none() | st.integers(-(2**31), 2**31 - 1),
        "Rate__c": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "Born__c": st.none() | st.dates(dt.date(1700, 1, 1), dt.date(4000, 12, 31)),
        "Seen__c": st.none() | instants,
        "At__c": st.none() | times,
        "_ObjectType": st.none(),
        "_EventType": st.none(),
    }
)


@settings(max_examples=20, deadline=None)
@given(st.lists(values, min_size=1, max_size=5))
def test_written_values_are_read_back(rows):
    batch = RecordBatch.from_records([Record("t", row, SCHEMA) for row in rows])
    table = text_columns(batch).select(NAMES)
    data = to_csv(table)
    assert [dict(row) for row in csv.DictReader(io.StringIO(data.decode(), newline=""))] == [
        {name: cell or "" for name, cell in row.items()} for row in table.to_pylist()
    ]
    columns = from_csv(data, SCHEMA, NAMES)
    assert [{name: columns[name][n].as_py() for name in NAMES} for n in range(len(rows))] == [
        {name: row[name] for name in NAMES} for row in rows
    ]


def test_cells_are_as_salesforce_writes_them():
    schema = Schema.struct(
        {
            "at": Schema.timestamp(),
            "amount": Schema.decimal(2),
            "raw": Schema(SchemaType.BYTES),
            "ok": Schema(SchemaType.BOOLEAN),
            "many": Schema.array(Schema(SchemaType.STRING), optional=True),
            "empty": Schema(SchemaType.STRING),
        }
    )
    at = dt.datetime(2024, 2, 29, 23, 59, 1, 5000, tzinfo=dt.UTC)
    row = {"at": at, "amount": decimal.Decimal("1.50"), "raw": b"\xff", "ok": True, "many": ["x"], "empty": ""}
    table = text_columns(RecordBatch.from_records([Record("t", row, schema)]))
    assert table.to_pylist() == [
        {"at": "2024-02-29T23:59:01.005Z", "amount": "1.50", "raw": "/w==", "ok": "true", "empty": None}
    ]


def test_json_records_need_no_schema_and_may_lack_fields():
    rows = [{"Name": "a", "n": 1.5}, {"Ok": False, "deep": {"x": 1}}, None, {"Name": None}]
    table = text_columns(RecordBatch.from_records([Record("t", row) for row in rows]))
    assert table.column("Name").to_pylist() == ["a", "", "", None]
    assert table.column("n").to_pylist()[0] == "1.5"
    assert table.column("Ok").to_pylist()[1] == "false"
    with pytest.raises(DataError, match="JSON objects"):
        text_columns(RecordBatch.from_records([Record("t", [1])]))


@settings(max_examples=30, deadline=None)
@given(
    st.binary(max_size=80) | st.text('Id,Name"\n\r;#N/A', max_size=60).map(lambda text: b"Id,Name\n" + text.encode())
)
def test_any_answer_is_read_or_refused(data):
    for read in (lambda: from_csv(data, SCHEMA, ["Id", "Name", "Count__c"][: 2 + len(data) % 2]),):
        try:
            read()
        except ConnectError as error:
            assert "results" in str(error)
    try:
        for row in rows_of(data.decode(errors="replace")):
            json.dumps(row, default=str)
    except ConnectError as error:
        assert "results" in str(error)


def test_a_value_of_another_type_names_its_column():
    with pytest.raises(ConnectError, match="column Ok__c"):
        from_csv(b'"Id","Ok__c"\n"1","maybe"\n', SCHEMA, ["Id", "Ok__c"])
    assert NULL == "#N/A"
