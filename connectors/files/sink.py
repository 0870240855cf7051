"""The file stream sink: each record's value is a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from connect.api import ConnectError, Dataset, OffsetChanges, Problem, RecordBatch, SinkConnector, SinkTask
from connect.formats import java_texts
from connectors.files.config import FileStreamSinkConfig, file_problem

__all__ = ["FileStreamSinkConnector", "FileStreamSinkTask"]


class FileStreamSinkTask(SinkTask[FileStreamSinkConfig]):
    """Appends to the file. After a restart, records that were not committed may be written twice."""

    def start(self) -> None:
        path = self.config.file
        self._output: BinaryIO = sys.stdout.buffer
        if path is not None:
            try:
                self._output = Path(path).open("ab")  # noqa: SIM115 - closed with the task
            except OSError as error:
                raise ConnectError(f"cannot write to file {path}: {error.strerror}") from error
            self.resources.callback(self._output.close)

    def dataset(self, topic: str) -> Dataset | None:
        del topic
        return Dataset.of_location(str(Path(self.config.file).absolute())) if self.config.file is not None else None

    def put(self, batches: Sequence[RecordBatch]) -> None:
        from connectors.files.lines import join_lines

        for batch in batches:
            self._output.write(join_lines(java_texts(batch)))

    def flush(self) -> None:
        self._output.flush()
        if self.config.file is not None:
            os.fsync(self._output.fileno())

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        where = self.config.file or "standard output"
        return [f"line to {where}: {text}" for batch in batches for text in java_texts(batch).to_pylist()]


class FileStreamSinkConnector(SinkConnector[FileStreamSinkConfig]):
    config_class = FileStreamSinkConfig
    task_class = FileStreamSinkTask

    @classmethod
    def check(cls, config: FileStreamSinkConfig) -> Iterable[Problem]:
        problem = file_problem(config.file)
        return [problem] if problem else []

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        return True  # a file accepts records from any offset
