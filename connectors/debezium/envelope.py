"""Debezium's schemas around a row: envelope, key, transaction block, heartbeat, logical message.

Source: debezium.io, "Change events"; names and versions as Debezium 3.5 writes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from connect.api import Field, Schema, SchemaType

__all__ = [
    "ENUM",
    "HEARTBEAT_KEY",
    "HEARTBEAT_VALUE",
    "TRANSACTION_BLOCK",
    "TRANSACTION_KEY",
    "TRANSACTION_VALUE",
    "envelope",
    "message_envelope",
    "source_block",
    "topic_name",
]

_S: Final = Schema(SchemaType.STRING)
_I64: Final = Schema(SchemaType.INT64)
_S_OPT, _I64_OPT = _S.as_optional(), _I64.as_optional()
ENUM: Final = "io.debezium.data.Enum"

TRANSACTION_BLOCK: Final = Schema.struct(
    {"id": _S, "total_order": _I64, "data_collection_order": _I64}, name="event.block", version=1, optional=True
)
TRANSACTION_KEY: Final = Schema.struct(
    {"id": _S}, name="io.debezium.connector.common.TransactionMetadataKey", version=1
)
TRANSACTION_VALUE: Final = Schema.struct(
    {
        "status": _S,
        "id": _S,
        "event_count": _I64_OPT,
        "data_collections": Schema.array(
            Schema.struct(
                {"data_collection": _S, "event_count": _I64}, name="event.collection", version=1, optional=True
            ),
            optional=True,
        ),
        "ts_ms": _I64,
    },
    name="io.debezium.connector.common.TransactionMetadataValue",
    version=1,
)
HEARTBEAT_KEY: Final = Schema.struct({"serverName": _S}, name="io.debezium.connector.common.ServerNameKey", version=1)
HEARTBEAT_VALUE: Final = Schema.struct({"ts_ms": _I64}, name="io.debezium.connector.common.Heartbeat", version=1)
_SNAPSHOT: Final = Schema(
    SchemaType.STRING,
    optional=True,
    name=ENUM,
    version=1,
    default="false",
    parameters={"allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},
)


def source_block(name: str, more: Sequence[Field], *, version: int = 1) -> Schema:
    """The source struct of a connector: what all have, then its own fields."""
    common = {
        "version": _S,
        "connector": _S,
        "name": _S,
        "ts_ms": _I64,
        "snapshot": _SNAPSHOT,
        "db": _S,
        "sequence": _S_OPT,
        "ts_us": _I64_OPT,
        "ts_ns": _I64_OPT,
    }
    return Schema.struct([*(Field(n, s) for n, s in common.items()), *more], name=name, version=version)


def envelope(name: str, row: Schema, source: Schema) -> Schema:
    """The envelope of a table's change events; ``row`` is the optional struct of its rows."""
    times = [Field(n, _I64_OPT) for n in ("ts_ms", "ts_us", "ts_ns")]
    fields = [
        Field("before", row),
        Field("after", row),
        Field("source", source),
        Field("transaction", TRANSACTION_BLOCK),
        Field("op", _S),
        *times,
    ]
    return Schema.struct(fields, name=name, version=2)


def topic_name(*parts: str, delimiter: str = ".") -> str:
    """A topic name joined from its parts; characters that Kafka does not allow become underscores."""
    return re.sub(r"[^a-zA-Z0-9._-]", "_", delimiter.join(parts))


def message_envelope(prefix_block: Schema, source: Schema, name: str) -> Schema:
    """The envelope of logical decoding messages, with op ``m``."""
    fields = [
        Field("op", _S),
        Field("ts_ms", _I64_OPT),
        Field("source", source),
        Field("transaction", TRANSACTION_BLOCK),
        Field("message", prefix_block),
    ]
    return Schema.struct(fields, name=name, version=1)
