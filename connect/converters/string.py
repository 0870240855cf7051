"""Text in an encoding, by default UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import TYPE_CHECKING

from connect.api import Converted, Converter, DataError, Schema, SchemaType, config, key
from connect.converters.java_text import java_texts

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StringConfig", "StringConverter"]


def _known_encoding(value: str) -> str | None:
    try:
        codecs.lookup(value)
    except LookupError:
        return "String must be the name of a character encoding, such as UTF-8"
    return None


@config
class StringConfig:
    """Keys of StringConverter."""

    encoding: str = key(
        "converter.encoding",
        default="UTF-8",
        check=_known_encoding,
        doc="The character encoding of the log's bytes.",
        importance="high",
    )


class StringConverter(Converter):
    """Writes text unchanged and other values in the format of Java's ``toString`` (``Struct{id=1}``, ``[1, 2]``). Reads
    everything as text.

    Bytes are written in base64; Kafka Connect writes the identity of a Java array. Values without a schema are written
    as JSON.
    """

    config_class = StringConfig
    config: StringConfig

    @property
    def _is_utf8(self) -> bool:
        return codecs.lookup(self.config.encoding).name in ("utf-8", "ascii")

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        import pyarrow as pa

        texts = values.cast(pa.string()) if schema is None else java_texts(schema, values)
        if self._is_utf8:
            return texts.cast(pa.binary())
        encoded = [None if text is None else text.encode(self.config.encoding) for text in texts.to_pylist()]
        return pa.array(encoded, pa.binary())

    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        import pyarrow as pa

        schema = Schema(SchemaType.STRING, optional=True)
        if self._is_utf8:
            try:
                return [Converted(schema, data.cast(pa.string()))]
            except pa.ArrowInvalid:
                pass
        texts: list[str | None] = []
        for row, value in enumerate(data.to_pylist()):
            try:
                texts.append(None if value is None else value.decode(self.config.encoding))
            except UnicodeDecodeError as error:
                text = (
                    f"a {'key' if self.context.is_key else 'value'} of {topic} is not {self.config.encoding}: {error}"
                )
                raise DataError(text, rows=[row]) from error
        return [Converted(schema, pa.array(texts, pa.string()))]
