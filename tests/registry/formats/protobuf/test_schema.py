import base64
from datetime import datetime

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import InvalidSchema
from registry.formats import SCHEMA_TYPES, parse
from registry.formats.protobuf.normalize import _number
from registry.formats.protobuf.schema import ProtobufSchema

ORDER = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Line { string sku = 1; }
message Order {
  message Part { message Deep { int32 n = 1; } optional int32 n = 1; }
  int64 id = 1; Part part = 2; map<string, Line> lines = 3; google.protobuf.Timestamp at = 4;
  oneof payment { string card = 5; bool cash = 6; }
  Kind kind = 7; repeated Part.Deep deep = 8;
  enum Kind { NONE = 0; BIG = 1; }
}
"""


def changes(old: str, new: str, references: dict[str, str] | None = None) -> list[str]:
    original, update = (ProtobufSchema.parse(f'syntax = "proto3"; {text}', references or {}) for text in (old, new))
    return [f"{change.kind} {change.path}" for change in update.changes_from(original)]


def test_types_are_listed_in_confluents_order() -> None:
    assert SCHEMA_TYPES == ("JSON", "PROTOBUF", "AVRO")


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("message M { int32 a = 1; }", "message M { string a = 1; }", "FIELD_SCALAR_KIND_CHANGED #/M/1"),
        ("message M { int32 a = 1; }", "message M { bool a = 1; }", None),
        ("message M { int32 a = 1; }", "message M { M a = 1; }", "FIELD_KIND_CHANGED #/M/1"),
        ("message M {} message N {}", "message M {}", "MESSAGE_REMOVED #/N"),
        ("message M { N a = 1; } message N {} message O {}", "message M { O a = 1; } message N {} message O {}",
         "FIELD_NAMED_TYPE_CHANGED #/M/1"),
        ("package a; message M {}", "package b; message M {}", "PACKAGE_CHANGED #/"),
        ("message M { oneof o { int32 a = 1; int32 b = 2; } }", "message M { oneof o { int32 a = 1; } }",
         "ONEOF_FIELD_REMOVED #/M/o/2"),
        ("message M { int32 a = 1; int32 b = 2; }", "message M { oneof o { int32 a = 1; int32 b = 2; } }",
         "MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o"),
    ],
)  # fmt: skip
def test_each_change_is_classified(old: str, new: str, change: str | None) -> None:
    assert changes(old, new) == ([] if change is None else changes(old, new))
    assert change is None or change in changes(old, new)


def test_a_referenced_type_is_compared_where_its_file_changed() -> None:
    text = 'syntax = "proto3"; import "a.proto"; message M { x.A a = 1; }'
    before, same, after = (
        ProtobufSchema.parse(text, {"a.proto": f'syntax = "proto3"; package x; message A {{ {field} a = 1; }}'})
        for field in ("int32", "int32", "string")
    )
    assert same.reading_problems(before) == []
    assert [change.kind for change in after.changes_from(before)] == [
        "FIELD_SCALAR_KIND_CHANGED",
        "FIELD_NAMED_TYPE_CHANGED",
    ]
    assert before != after


def test_messages_are_confluents() -> None:
    old, new = (ProtobufSchema.parse(f'syntax = "proto3"; message M {{ {t} a = 1; }}') for t in ("int32", "string"))
    assert new.reading_problems(old) == [
        '{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The kind of a SCALAR field at path \'#/M/1\' in the %s schema '
        'does not match its kind in the %s schema"}'
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "Syntax error in :1:6: unexpected label: hello"),
        ('syntax = "proto3";\nmessage M {\n  int32 a = x;\n}', "Syntax error in :3:14: expected an integer but was x"),
        ('syntax = "proto3"; message M { Nope a = 1; }', "Could not resolve type: Nope"),
        ('syntax = "proto3"; ' + "message M {" * 300 + "}" * 300, "nested too deep"),
        ('syntax = "proto3"; option (a) = ' + "{a:" * 300 + "1" + "}" * 300 + ";", "nested too deep"),
        ('syntax = "proto3"; option (a)' + ".b" * 300 + " = 1;", "nested too deep"),
        ('syntax = "proto3"; option (a) = ' + "[" * 300, "nested too deep"),
        ("message M { optional " + "map<string," * 3000 + "int32 a = 1; }", "deep"),
    ],
)
def test_an_invalid_file_says_where_and_why(text: str, words: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        ProtobufSchema.parse(text)
    assert words in str(caught.value)


def test_places_of_messages() -> None:
    schema = ProtobufSchema.parse(ORDER)
    assert schema.name == "shop.Line"
    for name, indexes in (
        ("shop.Line", [0]),
        ("shop.Order", [1]),
        ("shop.Order.Part", [1, 0]),
        ("shop.Order.Part.Deep", [1, 0, 0]),
    ):
        assert schema.message_indexes(name) == indexes
        assert schema.message_at(indexes) == name
    assert schema.message_at([]) == "shop.Line"
    with pytest.raises(KeyError):
        schema.message_indexes("shop.Nope")
    with pytest.raises(IndexError):
        schema.message_at([7])
    assert schema.top_level_fields >= {"sku", "id", "card"} - {"card"}


def test_messages_are_encoded_and_decoded_by_their_schema() -> None:
    order = ProtobufSchema.parse(ORDER).message_class("shop.Order")
    made = order(id=7, lines={"a": {"sku": "x"}}, at=datetime(2026, 1, 2), cash=True, kind=1, part={"n": 0})  # type: ignore[call-arg]
    assert order.FromString(made.SerializeToString()) == made
    assert made.HasField("part") and made.part.HasField("n")  # type: ignore[attr-defined]


def test_a_file_may_come_and_go_as_its_descriptor() -> None:
    schema = ProtobufSchema.parse(ORDER)
    serialized = schema.formatted("serialized")
    described = FileDescriptorProto.FromString(base64.b64decode(serialized))
    assert [message.name for message in described.message_type] == ["Line", "Order"]
    again = ProtobufSchema.parse(serialized)
    assert again.normalized().canonical == schema.normalized().canonical
    assert again.formatted("serialized") == serialized
    assert schema.formatted("unheard-of") == schema.formatted("") == schema.canonical


def test_extensions_may_be_left_out() -> None:
    schema = ProtobufSchema.parse(
        'syntax = "proto2"; option (a) = 1; option deprecated = true; message M { extensions 5 to 9; optional int32 a = 1 [(b) = 2]; '
        "extend M { optional int32 x = 5; } } extend M { optional int32 y = 6; }"
    )
    assert schema.formatted("ignore_extensions") == (
        'syntax = "proto2";\n\noption deprecated = true;\n\nmessage M {\n  optional int32 a = 1;\n}\n'
    )


def test_a_file_that_only_passes_another_on_is_that_other() -> None:
    schema = ProtobufSchema.parse('syntax = "proto3"; import public "o.proto";', {"o.proto": ORDER})
    assert schema.name == "shop.Line" and schema.message_indexes("shop.Order.Part") == [1, 0]


def test_errors_that_every_runtime_refuses_are_found_when_fields_are_checked() -> None:
    schema = ProtobufSchema.parse('syntax = "proto3"; message M { int32 a = 1; int64 a = 1; }')
    with pytest.raises(InvalidSchema):
        schema.check_fields()
    ProtobufSchema.parse(ORDER).check_fields()


def test_a_missing_import_is_named() -> None:
    schema = ProtobufSchema.parse('syntax = "proto3"; import "nope.proto"; message M {}')
    with pytest.raises(InvalidSchema, match="imports nope.proto, which is not among the references"):
        schema.message_class()


@pytest.mark.parametrize(("text", "number"), [("0x1F", "31"), ("010", "8"), ("-5", "-5"), ("1.2345", "1.234"), ("1e3", "1000"),
                                              ("inf", "inf"), ("nan", "nan"), ("1.0", "1"), ("q", "q")])  # fmt: skip
def test_numbers_of_options(text: str, number: str) -> None:
    assert _number(text) in (number, text)


PIECES = ["message", "M", "{", "}", "enum", "E", "=", "1", ";", "int32", "a", "oneof", "map<string, M>", "[", "]", "option", "(x)",
          '"s"', "syntax", '"proto3"', "import", "reserved", "to", "max", ",", "repeated", "optional", "extend", "service", "rpc",
          "returns", "(", ")", ".", "//", "/*", "*/", "\n", "group", "extensions", "'", "\\"]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=2), max_size=40), st.booleans())
def test_any_text_is_a_file_or_a_clear_error(pieces: list[str], proto3: bool) -> None:
    text = ('syntax = "proto3"; message M { ' if proto3 else "") + " ".join(pieces)
    try:
        schema = parse("PROTOBUF", text)
    except InvalidSchema:
        return
    assert parse("PROTOBUF", schema.canonical).canonical == schema.canonical
    assert schema.reading_problems(schema) == []
    try:
        schema.check_fields()
        schema.formatted("serialized")
    except InvalidSchema:
        pass


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_descriptor_or_a_clear_error(data: bytes) -> None:
    try:
        schema = parse("PROTOBUF", base64.b64encode(data).decode(), strict=False)
    except InvalidSchema:
        return
    assert isinstance(schema.canonical, str)
