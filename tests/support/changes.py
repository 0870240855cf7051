"""A captured table without a database: Debezium's schemas and records of a small table, for tests of change events."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro

from events.model.payloads import frame

__all__ = ["KEY", "VALUE", "decoded", "record", "source"]

_TEXT, _NUMBER = ["null", "string"], ["null", "long"]
_COLUMNS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": _TEXT, "default": None},
    {"name": "street", "type": _TEXT, "default": None},
    {"name": "city", "type": _TEXT, "default": None},
    {
        "name": "balance",
        "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}],
        "default": None,
    },
    {
        "name": "seen",
        "type": ["null", {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}],
        "default": None,
    },
    {"name": "born", "type": ["null", {"type": "int", "connect.name": "io.debezium.time.Date"}], "default": None},
    {"name": "note", "type": _TEXT, "default": None},
    {"name": "gone", "type": ["null", "boolean"], "default": None},
]
_ROW = {"type": "record", "name": "Value", "fields": _COLUMNS}
_SOURCE = {
    "type": "record",
    "name": "Source",
    "namespace": "io.debezium.connector.postgresql",
    "fields": [
        *({"name": name, "type": "string"} for name in ("version", "connector", "name", "db", "schema", "table")),
        {"name": "ts_ms", "type": "long"},
        {"name": "sequence", "type": _TEXT, "default": None},
        {"name": "txId", "type": _NUMBER, "default": None},
        {"name": "lsn", "type": _NUMBER, "default": None},
    ],
}
_BLOCK = {
    "type": "record",
    "name": "block",
    "namespace": "event",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "total_order", "type": "long"},
        {"name": "data_collection_order", "type": "long"},
    ],
}
VALUE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.customers",
    "fields": [
        {"name": "before", "type": ["null", _ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": _SOURCE},
        {"name": "transaction", "type": ["null", _BLOCK], "default": None},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": _NUMBER, "default": None},
    ],
}
KEY = {
    "type": "record",
    "name": "Key",
    "namespace": "shop.public.customers",
    "fields": [{"name": "id", "type": "long"}],
}


def source(transaction: int = 7, **more: Any) -> dict[str, Any]:
    """A source block; ``transaction`` is its number, and its commit's place."""
    about = {"version": "3.5", "connector": "postgresql", "name": "shop", "db": "shop", "schema": "public"}
    return (
        about
        | {"table": "customers", "ts_ms": 1_700_000_000_000, "txId": transaction}
        | (
            {"sequence": json.dumps([str(transaction * 10), str(transaction * 10 + 1)]), "lsn": transaction * 10 + 1}
            | more
        )
    )


def record(schema: Mapping[str, Any], schema_id: int, value: Mapping[str, Any]) -> bytes:
    """Avro in Confluent's framing."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(dict(schema)), dict(value))
    return frame(schema_id, out.getvalue())


def decoded(schema_json: str, payload: bytes) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """An event as a Pub/Sub API subscriber decodes it: its values, and the names in its bitmaps.

    Bits are read from the text of the hexadecimal number, starting at its right end, as Salesforce's guide describes.
    """
    schema = fastavro.parse_schema(json.loads(schema_json))
    values: Any = fastavro.schemaless_reader(io.BytesIO(payload), schema, None)
    fields = json.loads(schema_json)["fields"]
    named: dict[str, list[str]] = {}
    for kind in ("nulledFields", "diffFields", "changedFields"):
        names: list[str] = []
        for text in values["ChangeEventHeader"][kind]:
            position, _, bitmap = text.rpartition("-")
            among, prefix = fields, ""
            if position:
                compound = fields[int(position)]
                among = next(member for member in compound["type"] if member != "null")["fields"]
                prefix = compound["name"] + "."
            bits = "".join(f"{int(digit, 16):04b}" for digit in bitmap.removeprefix("0x"))
            names += [prefix + field["name"] for field, bit in zip(among, reversed(bits), strict=False) if bit == "1"]
        named[kind] = names
    return values, named
