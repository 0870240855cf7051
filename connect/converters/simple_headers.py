"""SimpleHeaderConverter: header values as text, with types inferred when read."""

from __future__ import annotations

from typing import Any

from connect.api import DataError, HeaderConverter, Schema, SchemaType, config
from connect.data.java.value_texts import to_text
from connect.data.java.values import parse_string

__all__ = ["SimpleHeaderConverter"]


@config
class SimpleHeaderConfig:
    """It has no keys."""


class SimpleHeaderConverter(HeaderConverter):
    """Schemas are not written.

    Reading infers the narrowest number, a boolean, a date, an array or a map, otherwise text.
    """

    config_class = SimpleHeaderConfig

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        try:
            text = to_text(schema, value)
        except DataError as error:
            raise DataError(f"header {name!r} of {topic}: {error}") from error
        return None if text is None else text.encode("utf-8", "replace")

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return None, None
        try:
            return parse_string(data.decode("utf-8", "replace"))
        except (DataError, ValueError, ArithmeticError, RecursionError):
            return Schema(SchemaType.BYTES), data
