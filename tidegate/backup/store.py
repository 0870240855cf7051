"""The place of a backup: a folder or a prefix in an object store. A file is there whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from tidegate.kit.errors import TidegateError, UsageError

if TYPE_CHECKING:
    import pyarrow.fs

__all__ = ["BackupStore"]

_UNFINISHED: Final = ".unfinished"
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


class BackupStore:
    """Files by their path below the place. Raises TidegateError with the path and the reason."""

    def __init__(self, location: str) -> None:
        """A path, a URI that pyarrow understands (``s3://bucket/prefix?region=...&endpoint_override=...``, ``gs://``), or
        ``az://container/prefix``.
        """
        import pyarrow as pa
        from pyarrow.fs import FileSystem, LocalFileSystem

        self.location = location
        self._azure: _Azure | None = None
        try:
            if location.startswith("az://"):
                self._azure = _Azure(location)
                self._system, self._root = self._azure.system(), self._azure.root
            elif "://" in location:
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
            if self._azure is not None:
                with self._azure.writing(path) as upload:
                    yield upload
                return
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


class _Azure:
    """``az://container/prefix?account_name=...&endpoint=...``; keys come from the environment. pyarrow's own URIs take the account's
    key as their password, where everybody sees it.

    Raises ValueError for what is not known.
    """

    def __init__(self, location: str) -> None:
        parts = urlsplit(location)
        given = dict(parse_qsl(parts.query))
        self._account = given.pop("account_name", "") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "")
        self._endpoint = given.pop("endpoint", "")
        self._container = parts.netloc
        self.root = f"{parts.netloc}{parts.path}".rstrip("/")
        if given:
            raise ValueError(f"{', '.join(given)}: there are account_name and endpoint")
        if not self._account:
            raise ValueError("give ?account_name=, or AZURE_STORAGE_ACCOUNT_NAME in the environment")

    def system(self) -> pyarrow.fs.FileSystem:
        from pyarrow.fs import AzureFileSystem

        endpoint = urlsplit(self._endpoint)
        address: dict[str, str] = {}
        if endpoint.netloc:
            for service in ("blob", "dfs"):
                address |= {
                    f"{service}_storage_authority": endpoint.netloc,
                    f"{service}_storage_scheme": endpoint.scheme,
                }
        return AzureFileSystem(self._account, account_key=os.environ.get("AZURE_STORAGE_ACCOUNT_KEY"), **address)

    @contextmanager
    def writing(self, path: str) -> Iterator[IO[bytes]]:
        """pyarrow would show an empty blob until the stream is closed, so a whole file is uploaded by the client of the sinks."""
        from connectors.objects.buckets import Bucket

        settings = {"account_name": self._account}
        if self._endpoint:
            settings["endpoint"] = f"{self._endpoint.rstrip('/')}/{self._account}"
        allow_http = {"allow_http": self._endpoint.startswith("http:")}
        with tempfile.TemporaryDirectory(prefix="tidegate-backup-") as folder:
            whole = Path(folder) / "whole"
            with whole.open("wb") as stream:
                yield stream
            Bucket(f"az://{self._container}", settings, allow_http).put(path.removeprefix(f"{self._container}/"), whole)
