"""Converts headers of whole batches with a header converter, or with a converter used as one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from connect.api import (
    Converter,
    ConverterContext,
    DataError,
    Header,
    HeaderConverter,
    PluginType,
    RecordBatch,
    Schema,
)
from connect.config.connector import sub_properties
from connect.data.header_changes import mapped
from connect.data.headers import is_typed
from connect.errors import UnknownPlugin
from connect.plugins.registry import PluginRegistry
from tidegate.kit.config import parse

__all__ = ["DEFAULT", "HeaderConversion", "header_conversion"]

DEFAULT: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_KEPT: Final = 1000


class _Converting(HeaderConverter):
    """A converter of values that converts headers, one at a time."""

    def __init__(self, converter: Converter) -> None:
        super().__init__(converter.config, converter.context)
        self.converter = converter

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        import pyarrow as pa

        if value is None:
            return None
        try:
            if schema is None:
                column = pa.array([json.dumps(value, ensure_ascii=False)], pa.string())
            else:
                column = pa.array([value], schema.arrow_type)
            made: bytes | None = self.converter.from_connect(topic, schema, column)[0].as_py()
        except (DataError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DataError(f"header {name!r} of {topic}: {error}") from error
        return made

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        import pyarrow as pa

        try:
            (run,) = self.converter.to_connect(topic, pa.array([data], pa.binary()))
        except DataError as error:
            raise DataError(f"header {name!r} of {topic}: {error}") from error
        value = run.values[0].as_py(maps_as_pydicts="strict")
        if run.schema is None:
            return None, None if value is None else json.loads(value)
        return run.schema, value

    def close(self) -> None:
        self.converter.close()


class HeaderConversion:
    """Converts headers for a pipeline. Bytes from a source are already the log's and pass unchanged."""

    def __init__(self, converter: HeaderConverter) -> None:
        self.converter = converter
        self._read = lru_cache(maxsize=_KEPT)(converter.to_connect_header)

    @property
    def name(self) -> str:
        """The class name for errors."""
        inner = self.converter.converter if isinstance(self.converter, _Converting) else self.converter
        return type(inner).__name__

    def to_log(self, batch: RecordBatch) -> RecordBatch:
        """The batch with headers as bytes. Raises DataError with the invalid row."""
        if batch.headers is None or not is_typed(batch.headers):
            return batch

        def written(row: int, headers: tuple[Header, ...]) -> list[Header]:
            try:
                return [self._written(batch.topic, header) for header in headers]
            except DataError as error:
                raise DataError(str(error), rows=[row]) from error

        return mapped(batch, written)

    def _written(self, topic: str, header: Header) -> Header:
        if header.schema is None and (header.value is None or isinstance(header.value, bytes)):
            return header
        data = self.converter.from_connect_header(topic, header.key, header.schema, header.value)
        return Header(header.key, data)

    def from_log(self, batch: RecordBatch) -> RecordBatch:
        """The batch with headers as values. Raises DataError with the invalid row."""
        if batch.headers is None:
            return batch

        def read(row: int, headers: tuple[Header, ...]) -> list[Header]:
            try:
                return [Header(h.key, *reversed(self._read(batch.topic, h.key, h.value))) for h in headers]
            except DataError as error:
                raise DataError(str(error), rows=[row]) from error

        return mapped(batch, read)

    def close(self) -> None:
        self.converter.close()


def header_conversion(
    plugins: PluginRegistry, worker: Mapping[str, str], config: Mapping[str, str], *, connector: str
) -> HeaderConversion:
    """The connector's header converter, or else the worker's, each with its keys. Raises UnknownPlugin."""
    chosen = config if config.get("header.converter") else worker
    class_name = chosen.get("header.converter") or DEFAULT
    plugin = plugins.find(class_name, PluginType.HEADER_CONVERTER, PluginType.CONVERTER)
    if plugin is None:
        raise UnknownPlugin(f"header.converter={class_name}: no header converter goes by that name")
    values = sub_properties(chosen, "header.converter.")
    loaded = plugin.load()
    made = loaded(parse(loaded.config_class, values), ConverterContext(is_key=False, connector=connector))
    return HeaderConversion(made if isinstance(made, HeaderConverter) else _Converting(made))
