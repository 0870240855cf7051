"""Records that are left out by their bytes are no hits."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from registry.client import AvroSchema
from tidegate.console.prefilter import may_show
from tidegate.records.decoding import decoder
from tidegate.records.shown import value_text

TEXTS = st.text(st.sampled_from('abknsß\u212a\u017fİ\ufb01"\\ \n019eE+-._é'), max_size=12)
NUMBERS = st.integers() | st.floats(allow_nan=True) | st.decimals(allow_nan=False, allow_infinity=False, places=9)
JSON = st.recursive(
    TEXTS | NUMBERS | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def as_bytes(value, *, ascii_only):
    return json.dumps(
        value,
        default=lambda number: float(number) if isinstance(number, Decimal) else str(number),
        ensure_ascii=ascii_only,
    ).encode()


VALUES = (
    st.none() | st.binary(max_size=12) | TEXTS.map(str.encode) | st.builds(as_bytes, JSON, ascii_only=st.booleans())
)


@given(VALUES, st.data())
@example(b"1E5", None)
@example(b"0.00000001", None)
@example(b'{"base64": "QUJD"}', None)
def test_no_part_of_what_is_shown_is_missed(data, chosen):
    shown = value_text(decoder(None)(data)).casefold()
    parts = {
        shown[start:end] for start in range(len(shown)) for end in range(start + 1, min(len(shown), start + 6) + 1)
    }
    for part in sorted(parts):
        may = may_show(part, None)
        assert may is None or may(data), (part, shown)


class Client:
    """The registry of one schema."""

    def __init__(self, schema):
        self._schema = AvroSchema.parse(json.dumps(schema))

    def any_schema(self, schema_id):
        return self._schema

    schema = any_schema


def test_strings_of_avro_are_looked_for_in_its_bytes():
    from registry.serde import record_from_json

    schema = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "customer", "type": "string"},
            {"name": "count", "type": "long"},
            {"name": "note", "type": ["null", "string"]},
        ],
    }
    client = Client(schema)
    value = {"customer": "Straße Zürich", "count": 12345, "note": None}
    data = record_from_json(client.schema(7), value, 7)
    assert may_show("zürich", client)(data) and may_show("STRASSE", client)(data)
    assert not may_show("bergen", client)(data)
    for unsure in ("12345", "customer", "null", "count"):
        may = may_show(unsure, client)
        assert may is None or may(data), unsure
    assert not may_show("bergen", client)(b'{"city": "Oslo"}') and may_show("oslo", client)(b'{"city": "Oslo"}')


@pytest.mark.parametrize("text", ["", ".", "{ }", "base64", "undecod"])
def test_some_texts_can_not_be_looked_for(text):
    assert may_show(text, None) is None
