"""Connect schemas and columns for them, as hypothesis strategies."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import string

from hypothesis import strategies as st

from connect.api import Field, Schema, SchemaType

__all__ = ["schemas", "values_of"]

_NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=8)
_PLAIN = [t for t in SchemaType if t not in (SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT)]


def _scalars():
    plain = st.sampled_from(_PLAIN).map(Schema)
    logical = st.sampled_from(
        [Schema.date(), Schema.time(), Schema.timestamp(), Schema.decimal(2, 9), Schema.decimal(0)]
    )
    return st.builds(
        lambda schema, optional: dataclasses.replace(schema, optional=optional), plain | logical, st.booleans()
    )


def _nested(inner):
    fields = st.lists(st.tuples(_NAMES, inner), max_size=4, unique_by=lambda pair: pair[0])
    structs = st.builds(
        lambda members, optional, n: Schema.struct(
            [Field(name, schema) for name, schema in members], optional=optional, name=f"ns.R{n}"
        ),
        fields,
        st.booleans(),
        st.integers(0, 10**9),
    )
    arrays = st.builds(lambda items, optional: Schema.array(items, optional=optional), inner, st.booleans())
    maps = st.builds(
        lambda values, optional: Schema.map(Schema(SchemaType.STRING), values, optional=optional), inner, st.booleans()
    )
    return structs | arrays | maps


schemas = st.recursive(_scalars(), _nested, max_leaves=6)

_INTS = {SchemaType.INT8: 7, SchemaType.INT16: 15, SchemaType.INT32: 31, SchemaType.INT64: 63}


def values_of(schema: Schema):
    """Values in the Python form of a schema."""
    made = _present(schema)
    return st.none() | made if schema.optional else made


def _present(schema: Schema):
    if schema.name == "org.apache.kafka.connect.data.Decimal":
        limit = 10 ** (9 if schema.scale else 30) - 1
        return st.integers(-limit, limit).map(lambda n: decimal.Decimal(n).scaleb(-schema.scale))
    if schema.name == "org.apache.kafka.connect.data.Date":
        return st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))
    if schema.name == "org.apache.kafka.connect.data.Time":
        millis = st.integers(0, 86_399_999)
        return millis.map(lambda n: (dt.datetime.min + dt.timedelta(milliseconds=n)).time())
    if schema.name == "org.apache.kafka.connect.data.Timestamp":
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        return st.integers(-(10**12), 10**13).map(lambda n: epoch + dt.timedelta(milliseconds=n))
    if schema.type in _INTS:
        return st.integers(-(1 << _INTS[schema.type]), (1 << _INTS[schema.type]) - 1)
    if schema.type is SchemaType.STRUCT:
        return st.fixed_dictionaries({member.name: values_of(member.schema) for member in schema.fields})
    if schema.type is SchemaType.ARRAY:
        return st.lists(values_of(schema.value_schema), max_size=3)
    if schema.type is SchemaType.MAP:
        keys = st.text(max_size=4)
        return st.lists(st.tuples(keys, values_of(schema.value_schema)), max_size=3, unique_by=lambda pair: pair[0])
    return {
        SchemaType.BOOLEAN: st.booleans(),
        SchemaType.STRING: st.text(max_size=10),
        SchemaType.BYTES: st.binary(max_size=10),
        SchemaType.FLOAT32: st.floats(width=32, allow_nan=False),
        SchemaType.FLOAT64: st.floats(allow_nan=False),
    }[schema.type]
