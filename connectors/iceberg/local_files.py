"""Files on this machine's disk that are durable once they are closed: a commit must not survive a power cut without them."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

__all__ = ["SyncedFileIO"]


class SyncedFileIO(PyArrowFileIO):
    """pyiceberg's file access, except that local files and their folders are synced."""

    def new_output(self, location: str) -> PyArrowFile:
        scheme, netloc, path = self.parse_location(location, self.properties)
        if scheme != "file":
            return super().new_output(location)
        return _SyncedFile(location, path, self.fs_by_scheme(scheme, netloc))


class _SyncedFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> OutputStream:
        return _SyncedStream(super().create(overwrite), Path(self._path))


class _SyncedStream:
    """A stream of pyarrow's to a file at ``path``."""

    def __init__(self, stream: Any, path: Path) -> None:
        self._stream, self._path = stream, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, data: bytes) -> int:
        return int(self._stream.write(data))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._stream.closed:
            return
        self._stream.close()
        for path in (self._path, self._path.parent):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
