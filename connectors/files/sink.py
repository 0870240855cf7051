"""The file stream sink: each record's value is a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from connect.api import ConnectError, OffsetChanges, RecordBatch, Schema, SchemaType, SinkConnector, SinkTask
from connectors.files.config import FileStreamSinkConfig

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FileStreamSinkConnector", "FileStreamSinkTask"]


class FileStreamSinkTask(SinkTask[FileStreamSinkConfig]):
    """Appends, so a restart may write records again that were not committed."""

    def start(self) -> None:
        path = self.config.file
        try:
            self._output: BinaryIO = Path(path).open("ab") if path is not None else sys.stdout.buffer  # noqa: SIM115
        except OSError as error:
            raise ConnectError(f"cannot write to file {path}: {error.strerror}") from error

    def put(self, batches: Sequence[RecordBatch]) -> None:
        from connectors.files.lines import join_lines

        for batch in batches:
            self._output.write(join_lines(_texts(batch)))

    def flush(self) -> None:
        self._output.flush()
        if self.config.file is not None:
            os.fsync(self._output.fileno())

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        where = self.config.file or "standard output"
        return [f"line to {where}: {text}" for batch in batches for text in _texts(batch).to_pylist()]

    def stop(self) -> None:
        if self.config.file is not None:
            self._output.close()


class FileStreamSinkConnector(SinkConnector[FileStreamSinkConfig]):
    config_class = FileStreamSinkConfig
    task_class = FileStreamSinkTask

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        return True  # a file takes any line, from whatever offset


def _texts(batch: RecordBatch) -> pa.StringArray:
    """Values as text: strings, whole numbers and JSON texts (values without schema) as columns, others one by one."""
    import pyarrow as pa

    schema = batch.value_schema
    if schema is None or (schema.name is None and schema.type is SchemaType.STRING):
        return batch.values
    if schema.name is None and schema.type in (SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64):
        return batch.values.cast(pa.string())
    return pa.array([_java_text(record.value, schema) for record in batch.records()], pa.string())


def _java_text(value: Any, schema: Schema | None) -> str:
    """What Java's ``toString`` says of a value, in so far as people read it: ``Struct{id=1,name=x}``, ``[1, 2]``, ``true``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if schema is not None and schema.type is SchemaType.STRUCT:
        members = ((field, value.get(field.name)) for field in schema.fields)
        shown = [f"{field.name}={_java_text(member, field.schema)}" for field, member in members if member is not None]
        return f"Struct{{{','.join(shown)}}}"
    if isinstance(value, dict):
        items = schema.value_schema if schema is not None else None
        return "{" + ", ".join(f"{name}={_java_text(member, items)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        items = schema.value_schema if schema is not None else None
        return "[" + ", ".join(_java_text(member, items) for member in value) + "]"
    return str(value)
