"""Values that all databases' forms need: times in another unit, what stands for nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import Schema, SchemaType

__all__ = ["in_unit", "zero_of"]


def in_unit(micros: pa.Array, unit: str) -> pa.Array:
    """Microseconds (int64) in milliseconds (``ms``, rounded down), as they are (``us``) or in nanoseconds (``ns``, at the bounds
    of 64 bits where they do not fit)."""
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
    """What stands in a required field for a value that the log does not have: the type's nothing, as Debezium writes it."""
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
