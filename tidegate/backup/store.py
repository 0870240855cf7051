"""The place of a backup: a folder or a prefix in an object store. A file is there whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from tidegate.kit.errors import TidegateError, UsageError

if TYPE_CHECKING:
    import pyarrow.fs

__all__ = ["BackupStore"]

_UNFINISHED: Final = ".unfinished"
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


class BackupStore:
    """Files by their path below the place. Raises TidegateError with the path and the reason."""

    def __init__(self, location: str) -> None:
        """A path, or a URI that pyarrow understands: ``s3://bucket/prefix?region=...&endpoint_override=...``, ``gs://``."""
        import pyarrow as pa
        from pyarrow.fs import FileSystem, LocalFileSystem

        self.location = location
        try:
            if "://" in location:
                self._system, self._root = FileSystem.from_uri(location)
            else:
                self._system, self._root = LocalFileSystem(), str(Path(location).absolute())
        except (pa.ArrowInvalid, OSError, ValueError) as error:
            raise UsageError(f"{location!r} is no place for a backup: {error}") from error
        self._local = isinstance(self._system, LocalFileSystem)

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    @contextmanager
    def _told(self, doing: str, name: str) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise TidegateError(f"{doing} {name} in {self.location}: {error}") from error

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """A stream for a new file, which replaces one of that name when the block ends without an error."""
        path = self._path(name)
        with self._told("writing", name):
            if not self._local:
                with self._system.open_output_stream(path) as stream:
                    yield stream
                return
            folder = Path(path).parent
            folder.mkdir(parents=True, exist_ok=True)
            # records and secrets: for the owner only
            with os.fdopen(os.open(path + _UNFINISHED, _NEW, 0o600), "wb") as stream:
                yield stream
            self._system.move(path + _UNFINISHED, path)

    def reading(self, name: str) -> pyarrow.fs.NativeFile:
        """A file that can be read at any position."""
        with self._told("reading", name):
            return self._system.open_input_file(self._path(name))

    def size(self, name: str) -> int:
        with self._told("looking at", name):
            return int(self._system.get_file_info(self._path(name)).size or 0)

    def write_json(self, name: str, document: Any) -> None:
        with self.writing(name) as stream:
            stream.write(json.dumps(document, indent=1, ensure_ascii=False).encode())

    def read_json(self, name: str) -> Any:
        """None where there is no such file."""
        with self._told("reading", name):
            try:
                with self._system.open_input_stream(self._path(name)) as stream:
                    return json.loads(stream.read())
            except FileNotFoundError:
                return None
            except ValueError as error:
                raise TidegateError(f"{name} in {self.location} is no JSON: {error}") from error

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, in order."""
        from pyarrow.fs import FileSelector, FileType

        with self._told("listing", folder):
            selector = FileSelector(self._path(folder), allow_not_found=True)
            files = [info for info in self._system.get_file_info(selector) if info.type is FileType.File]
        return sorted(info.base_name for info in files if not info.base_name.endswith(_UNFINISHED))

    def delete(self, name: str) -> None:
        from pyarrow.fs import FileType

        with self._told("deleting", name):
            if self._system.get_file_info(self._path(name)).type is FileType.File:
                self._system.delete_file(self._path(name))
