"""The file stream source: each line of a file, as it grows, is a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from connect.api import (
    ConnectError,
    Dataset,
    OffsetChanges,
    Problem,
    RecordBatch,
    Schema,
    SchemaType,
    SourceConnector,
    SourceTask,
)
from connectors.files.client import FileTail, InputTail, Tail
from connectors.files.config import FileStreamSourceConfig, file_problem

__all__ = ["FileStreamSourceConnector", "FileStreamSourceTask"]

_LINE: Final = Schema(SchemaType.STRING)
_IDLE_S: Final = 0.2


class FileStreamSourceTask(SourceTask[FileStreamSourceConfig]):
    """Offset ``{"position": bytes}`` in partition ``{"filename": path}``; the standard input has neither.

    A last line without a line end is delivered once its line end is written.
    """

    def start(self) -> None:
        self._partition = {"filename": self.config.file} if self.config.file is not None else None
        self._tail: Tail = (
            InputTail() if self._partition is None else FileTail(Path(str(self.config.file)), self._begin())
        )
        self.resources.callback(self._tail.close)

    def dataset(self, topic: str) -> Dataset | None:
        del topic
        return Dataset.of_location(str(Path(self.config.file).absolute())) if self.config.file is not None else None

    def _begin(self) -> int:
        offset = self.context.offset({"filename": self.config.file}) or {}
        position = offset.get("position", 0)
        if not isinstance(position, int) or position < 0:
            raise ConnectError(f"offset {dict(offset)} is not one of a file: position should be a number of bytes")
        return position

    def poll(self) -> Sequence[RecordBatch]:
        start = self._tail.position
        block = self._tail.read()
        if not block:
            self.context.stopping.wait(_IDLE_S)
            return []
        batches = self._batches(block, start)
        self._tail.take(len(block))
        return batches

    def _batches(self, block: bytes, start: int | None) -> list[RecordBatch]:
        from connectors.files.lines import split_lines

        lines, ends = split_lines(block)
        batches = []
        most = max(1, self.config.batch_size)  # the original accepts numbers below 1 as well
        for first in range(0, len(lines), most):
            last = min(first + most, len(lines))
            offset = {"position": start + int(ends[last - 1])} if start is not None else None
            batches.append(
                RecordBatch(
                    self.config.topic,
                    lines.slice(first, last - first),
                    _LINE,
                    source_partition=self._partition,
                    source_offset=offset,
                )
            )
        return batches


class FileStreamSourceConnector(SourceConnector[FileStreamSourceConfig]):
    """One file, one task."""

    config_class = FileStreamSourceConfig
    task_class = FileStreamSourceTask

    @classmethod
    def check(cls, config: FileStreamSourceConfig) -> Iterable[Problem]:
        problem = file_problem(config.file)
        return [problem] if problem else []

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        if not properties.get("file"):
            raise ConnectError(
                "Offsets cannot be modified if the 'file' configuration is unspecified. This is because stdin is used for "
                "input and offsets are not tracked."
            )
        for partition, offset in offsets:
            if offset is None:
                continue  # an offset of a file may be deleted whatever it contains
            if "position" not in offset:
                raise ConnectError("Offset objects should either be null or contain the key 'position'")
            position = offset["position"]
            if not isinstance(position, int) or isinstance(position, bool):
                raise ConnectError("The value for the 'position' key in the offset is expected to be a Long value")
            if position < 0:
                raise ConnectError("The value for the 'position' key in the offset should be a non-negative value")
            if "filename" not in partition:
                raise ConnectError("Partition objects should contain the key 'filename'")
        return True

    @classmethod
    def exactly_once(cls, config: FileStreamSourceConfig) -> bool:
        return config.file is not None  # standard input cannot be read again
