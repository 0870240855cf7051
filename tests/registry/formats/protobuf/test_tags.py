"""Tags in Protobuf schemas: Confluent's options, addressed by paths of messages and fields."""

from __future__ import annotations

import pytest

from registry.errors import InvalidSchema
from registry.formats.entities import Entity
from registry.formats.protobuf.tags import tagged, with_tags

SCHEMA = """syntax = "proto3";
package shop;

import "confluent/meta.proto";

message Order {
  option (confluent.message_meta).tags = "OLD";

  string buyer = 1 [
    deprecated = true,
    (confluent.field_meta).tags = "A",
    (confluent.field_meta).doc = "who"
  ];
  Line line = 2;

  oneof pay {
    string card = 3;
    string iban = 4;
  }

  message Line {
    string sku = 1;
  }
}
"""


def field(path: str) -> Entity:
    return Entity(path, "sr_field")


def record(path: str) -> Entity:
    return Entity(path, "sr_record")


def test_tags_are_found_where_they_are() -> None:
    assert tagged(SCHEMA) == {record("Order"): ["OLD"], field("Order.buyer"): ["A"]}


def test_tags_are_added_and_taken_away() -> None:
    add = {
        record(".Order"): ["NEW"],
        record("Order.Line"): ["L"],
        field("Order.buyer"): ["A", "PII"],
        field("Order.Line.sku"): ["S"],
        field("Order.card"): ["PII"],
        field("Order.pay.iban"): ["PII"],
    }
    changed = with_tags(SCHEMA, add, {record(".Order"): ["OLD"], field("Order.buyer"): ["NONE"]})
    assert tagged(changed) == {
        record("Order"): ["NEW"],
        field("Order.card"): ["PII"],
        field("Order.iban"): ["PII"],
        field("Order.buyer"): ["A", "PII"],
        record("Order.Line"): ["L"],
        field("Order.Line.sku"): ["S"],
    }
    assert 'doc: "who"' in changed and "deprecated = true" in changed
    assert '(confluent.message_meta) = {\n    tags: [\n      "NEW"\n    ]\n  }' in changed
    bare = with_tags(changed, {}, dict(tagged(changed).items()))
    assert tagged(bare) == {}
    assert "message_meta" not in bare, "an option that says nothing more is gone"
    assert 'doc: "who"' in bare


@pytest.mark.parametrize("entity", [field("Order.price"), record("Line"), field("buyer"), record("")], ids=str)
def test_a_path_that_leads_nowhere_is_named(entity: Entity) -> None:
    with pytest.raises(InvalidSchema, match=f"No matching path '{entity.path}'"):
        with_tags(SCHEMA, {entity: ["T"]}, {})
