"""Value conversions for all databases: units of time, and substitutes for missing values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import Schema, SchemaType

__all__ = ["in_unit", "zero_of"]


def in_unit(micros: pa.Array, unit: str) -> pa.Array:
    """Microseconds (int64) converted to milliseconds (``ms``, rounded down), left as they are (``us``) or converted to
    nanoseconds (``ns``; values that do not fit become the limit of 64 bits).
    """
    if unit == "ms":
        if micros.null_count:
            filled = pc.fill_null(micros, 0)
            made = np.floor_divide(filled.to_numpy(zero_copy_only=False), 1000)
            return pa.array(made, pa.int64(), mask=micros.is_null().to_numpy(zero_copy_only=False))
        return pa.array(np.floor_divide(micros.to_numpy(zero_copy_only=False), 1000), pa.int64())
    if unit == "ns":
        try:
            return pc.multiply_checked(micros, 1000)
        except pa.ArrowInvalid:
            low, high = -(2**63), 2**63 - 1
            return pa.array(
                [None if v is None else min(max(v * 1000, low), high) for v in micros.to_pylist()], pa.int64()
            )
    return micros


def zero_of(schema: Schema) -> Any:
    """The value of a required field for which the log has none: zero or empty, depending on the type, as Debezium
    writes it.
    """
    if schema.default is not None:
        return schema.default
    match schema.type:
        case SchemaType.STRING:
            return ""
        case SchemaType.BOOLEAN:
            return False
        case SchemaType.BYTES:
            return Decimal(0).scaleb(-schema.scale) if "scale" in schema.parameters else b""
        case SchemaType.ARRAY | SchemaType.MAP:
            return []
        case SchemaType.STRUCT:
            return {f.name: None if f.schema.optional else zero_of(f.schema) for f in schema.fields}
    return 0
