"""Protobuf messages as columns; Google's runtime writes the messages that are read."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from registry.formats.protobuf.schema import ProtobufSchema
from registry.serde import CorruptRecord, UnknownSchema, UnsupportedSchema, decode_protobuf, frame, protobuf_type

RICH = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/type/date.proto";
enum Kind { NONE = 0; BOOK = 1; }
message Order {
  int64 id = 1;
  optional int32 rank = 2;
  uint64 big = 3;
  string name = 4;
  bytes data = 5;
  Kind kind = 6;
  repeated string tags = 7;
  map<string, Line> lines = 8;
  google.protobuf.Timestamp at = 9;
  google.protobuf.Duration took = 10;
  google.protobuf.StringValue note = 11;
  google.protobuf.Struct extra = 12;
  google.type.Date day = 13;
  oneof payment { string card = 14; double cash = 15; }
  repeated Line parts = 16;
  message Line { uint32 count = 1; Line2 inner = 2; }
  message Line2 { bool flag = 1; }
}
message Other { string text = 1; }
"""


def framed(schema: ProtobufSchema, message: object, *, schema_id: int = 7, name: str | None = None) -> bytes:
    """A message as Confluent's serializer frames it: the first of a file has the short form of its indexes."""
    indexes = schema.message_indexes(name or type(message).DESCRIPTOR.full_name)
    short = indexes == [0]
    numbers = [] if short else [len(indexes), *indexes]
    return frame(schema_id, bytes([0] if short else [n * 2 for n in numbers]) + message.SerializeToString())


@pytest.fixture(scope="module")
def rich() -> ProtobufSchema:
    return ProtobufSchema.parse(RICH)


def full_order(schema: ProtobufSchema) -> object:
    order = schema.message_class()(
        id=1, rank=0, big=2**64 - 1, name="n", data=b"d", kind=1, tags=["a", "b"], card="visa",
        at={"seconds": 1_700_000_000, "nanos": 250_001_999}, took={"seconds": 2}, note={"value": ""},
        day={"year": 2024, "month": 2, "day": 29},
        parts=[{"count": 1}, {"count": 2, "inner": {"flag": True}}],
    )  # fmt: skip
    order.lines["x"].count = 3
    order.extra.update({"a": [1, None]})
    return order


def test_every_kind_of_field_has_a_column(rich: ProtobufSchema) -> None:
    rows = pa.array([framed(rich, full_order(rich)), None, framed(rich, rich.message_class()())])
    column = decode_protobuf(rows, {7: rich}.__getitem__, rich)
    assert column.type == protobuf_type(rich)
    column.validate(full=True)
    full, missing, empty = column.to_pylist()
    assert full == {
        "id": 1, "rank": 0, "big": 2**64 - 1, "name": "n", "data": b"d", "kind": "BOOK", "tags": ["a", "b"],
        "lines": [("x", {"count": 3, "inner": None})],
        "at": dt.datetime(2023, 11, 14, 22, 13, 20, 250_001, tzinfo=dt.UTC), "took": dt.timedelta(seconds=2), "note": "",
        "extra": '{"a": [1.0, null]}', "day": dt.date(2024, 2, 29), "card": "visa", "cash": None,
        "parts": [{"count": 1, "inner": None}, {"count": 2, "inner": {"flag": True}}],
    }  # fmt: skip
    assert missing is None
    assert empty == {
        "id": 0, "rank": None, "big": 0, "name": "", "data": b"", "kind": "NONE", "tags": [], "lines": [], "at": None,
        "took": None, "note": None, "extra": None, "day": None, "card": None, "cash": None, "parts": [],
    }  # fmt: skip


def test_fields_are_matched_by_number_and_enums_may_have_new_symbols() -> None:
    writer = ProtobufSchema.parse(
        'syntax = "proto3"; message A { int64 n = 1; string gone = 2; Kind kind = 3; } enum Kind { X = 0; NEW = 5; }'
    )
    reader = ProtobufSchema.parse(
        'syntax = "proto3"; message A { int64 number = 1; Kind kind = 3; string more = 4; } enum Kind { X = 0; }'
    )
    rows = pa.array([framed(writer, writer.message_class()(n=3, gone="g", kind=5))])
    column = decode_protobuf(rows, {7: writer}.__getitem__, reader)
    assert column.to_pylist() == [{"number": 3, "kind": "5", "more": ""}]


def test_inner_messages_are_read_by_name_and_others_are_refused(rich: ProtobufSchema) -> None:
    line = rich.message_class("shop.Order.Line")(count=4)
    rows = pa.array([framed(rich, line)])
    column = decode_protobuf(rows, {7: rich}.__getitem__, rich, "shop.Order.Line")
    assert column.to_pylist() == [{"count": 4, "inner": None}]
    with pytest.raises(CorruptRecord, match="row 0: the record is a message shop.Order.Line, and shop.Order is read"):
        decode_protobuf(rows, {7: rich}.__getitem__, rich)


def test_types_imported_from_a_reference_are_read() -> None:
    schema = ProtobufSchema.parse(
        'syntax = "proto3"; import "line.proto"; message A { Line line = 1; }',
        {"line.proto": 'syntax = "proto3"; message Line { int32 count = 1; }'},
    )
    rows = pa.array([framed(schema, schema.message_class()(line={"count": 2}))])
    assert decode_protobuf(rows, {7: schema}.__getitem__, schema).to_pylist() == [{"line": {"count": 2}}]


def test_broken_records_name_their_row(rich: ProtobufSchema) -> None:
    good = framed(rich, full_order(rich))
    for data, words in (
        (b"\x01" + good[1:], "not in Confluent framing"),
        (good[:3], "cut off"),
        (good[:5], "cut off"),
        (good[:-1], "not a message shop.Order"),
        (frame(7, b"\x02\x28") + good[6:], "no message at"),
    ):
        with pytest.raises(CorruptRecord, match=rf"row 1: .*{words}"):
            decode_protobuf(pa.array([good, data]), {7: rich}.__getitem__, rich)
    with pytest.raises(UnknownSchema, match="row 1"):
        decode_protobuf(pa.array([good, frame(8, b"\x00")]), {7: rich}.__getitem__, rich)


def test_messages_that_contain_themselves_are_refused_by_name() -> None:
    tree = ProtobufSchema.parse('syntax = "proto3"; message Tree { repeated Tree children = 1; }')
    with pytest.raises(UnsupportedSchema, match="the message Tree contains itself"):
        protobuf_type(tree)
