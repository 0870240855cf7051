"""Single numbers and booleans in the format of Kafka's own serializers: big-endian, fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.api import Converted, Converter, DataError, Schema, SchemaType, config

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BooleanConverter",
    "DoubleConverter",
    "FloatConverter",
    "IntegerConverter",
    "LongConverter",
    "ShortConverter",
]

_OF_JSON: Final = {bool: SchemaType.BOOLEAN, int: SchemaType.INT64, float: SchemaType.FLOAT64}


@config
class NumberConfig:
    """It has no keys."""


class _NumberConverter(Converter):
    config_class = NumberConfig
    name: ClassVar[str]
    type: ClassVar[SchemaType]
    format: ClassVar[str]
    """NumPy's, big-endian."""

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        import pyarrow as pa

        if values.null_count == len(values):
            return pa.nulls(len(values), pa.binary())
        if schema is None:
            values = self._of_texts(values)
        elif schema.type is not self.type or values.type != Schema(self.type).arrow_type:
            raise DataError(f"Failed to serialize to {self.name} (was {schema.name or schema.type.value})")
        import pyarrow.compute as pc

        numbers = (
            pc.fill_null(values, pa.scalar(0).cast(values.type)).to_numpy(zero_copy_only=False).astype(self.format)
        )
        size = numbers.dtype.itemsize
        fixed = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(size), len(numbers), [None, pa.py_buffer(numbers.tobytes())]
        ).cast(pa.binary())
        return pc.if_else(values.is_null(), None, fixed) if values.null_count else fixed

    def _of_texts(self, values: pa.Array) -> pa.Array:
        import json

        import pyarrow as pa

        numbers: list[Any] = []
        for row, text in enumerate(values.to_pylist()):
            value = None if text is None else json.loads(text)
            if value is not None and _OF_JSON.get(type(value)) is not self.type:
                raise DataError(f"Failed to serialize to {self.name} (was {type(value).__name__})", rows=[row])
            numbers.append(value)
        return pa.array(numbers, Schema(self.type).arrow_type)

    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        schema = Schema(self.type, optional=True)
        present = data.cast(pa.binary()).drop_null()
        size = np.dtype(self.format).itemsize
        lengths = pc.binary_length(data)
        wrong = np.flatnonzero(pc.fill_null(pc.not_equal(lengths, size), False).to_numpy(zero_copy_only=False))
        if len(wrong):
            what = f"Failed to deserialize {self.name}: Size of data of topic {topic} is not {size}"
            raise DataError(what, rows=wrong.tolist())
        if not len(present):
            return [Converted(schema, pa.nulls(len(data), schema.arrow_type))]
        start = np.frombuffer(present.buffers()[1], "int32", len(present) + 1, present.offset * 4)
        body = np.frombuffer(present.buffers()[2], self.format, len(present), int(start[0]))
        numbers = self._read(topic, data, body)
        rows = np.zeros(len(data), numbers.dtype)
        valid = data.is_valid().to_numpy(zero_copy_only=False)
        rows[valid] = numbers
        return [Converted(schema, pa.array(rows, schema.arrow_type, mask=~valid))]

    def _read(self, topic: str, data: pa.Array, body: Any) -> Any:
        return body.astype(body.dtype.newbyteorder("="))


class ShortConverter(_NumberConverter):
    """16-bit integers."""

    name, type, format = "short", SchemaType.INT16, ">i2"


class IntegerConverter(_NumberConverter):
    """32-bit integers."""

    name, type, format = "integer", SchemaType.INT32, ">i4"


class LongConverter(_NumberConverter):
    """64-bit integers."""

    name, type, format = "long", SchemaType.INT64, ">i8"


class FloatConverter(_NumberConverter):
    """32-bit floats."""

    name, type, format = "float", SchemaType.FLOAT32, ">f4"


class DoubleConverter(_NumberConverter):
    """64-bit floats."""

    name, type, format = "double", SchemaType.FLOAT64, ">f8"


class BooleanConverter(_NumberConverter):
    """A byte of 0 or 1."""

    name, type, format = "boolean", SchemaType.BOOLEAN, "u1"

    def _read(self, topic: str, data: pa.Array, body: Any) -> Any:
        import numpy as np

        if (body > 1).any():
            present = np.flatnonzero(data.is_valid().to_numpy(zero_copy_only=False))
            rows = present[np.flatnonzero(body > 1)].tolist()
            raise DataError(f"Failed to deserialize boolean: Unexpected byte received in topic {topic}", rows=rows)
        return body.astype(bool)
