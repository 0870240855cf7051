"""A folder of an object store (S3, Google Cloud Storage, Azure Blob): the one importer of obstore."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast
from urllib.parse import urlsplit

from connect.api import ConnectError, MissingExtra, RetriableConnectError
from connectors.folders.stores import Folder, StoredFile

if TYPE_CHECKING:
    from connectors.folders.config import FolderSourceConfig

__all__ = ["ObjectFolder"]

_BUFFER_BYTES: Final = 8 * 1024 * 1024
_CHUNK: Final = 1000
_STATUS: Final = re.compile(r"status(?: code)?:? (\d{3})")
_FOR_GOOD: Final = frozenset({"301", "400", "401", "403", "404", "405"})


class ObjectFolder(Folder):
    """Objects whose names begin with the path of the URI. A move is a copy and a deletion, as object stores have no other."""

    def __init__(self, config: FolderSourceConfig) -> None:
        super().__init__(config)
        parts = urlsplit(self.location)
        self._bucket, self._prefix = f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
        self._store = _store(self._bucket, config)

    def list(self, after: str | None = None) -> Iterator[StoredFile]:
        cut = len(self._prefix) + 1 if self._prefix else 0
        start = None if after is None else self._name(after)
        with _store_errors("list", self.location):
            for page in self._store.list(self._prefix or None, offset=start, chunk_size=_CHUNK):
                for each in page:
                    name = each["path"][cut:]
                    if name and (self.config.walks or "/" not in name):
                        yield StoredFile(name, each["size"], int(each["last_modified"].timestamp() * 1000))

    def stat(self, name: str) -> StoredFile | None:
        try:
            with _store_errors("look at", self.path(name)):
                at = self._store.head(self._name(name))
        except FileNotFoundError:
            return None
        return StoredFile(name, at["size"], int(at["last_modified"].timestamp() * 1000))

    @contextmanager
    def open(self, name: str, *, seeks: bool) -> Iterator[BinaryIO]:
        import obstore

        path = self.path(name)
        try:
            with _store_errors("open", path):
                file = obstore.open_reader(self._store, self._name(name), buffer_size=_BUFFER_BYTES)
        except FileNotFoundError as error:
            raise ConnectError(f"{path} is not there any more") from error
        yield cast("BinaryIO", _Reader(file, path))

    def move(self, name: str, folder_url: str, new_name: str) -> None:
        target = f"{self._inside(folder_url)}/{new_name}".lstrip("/")
        try:
            with _store_errors(f"move {self.path(name)} to", target):
                self._store.copy(self._name(name), target)
        except FileNotFoundError:
            return  # it was moved before, and deleted
        self.delete(name)

    def delete(self, name: str) -> None:
        try:
            with _store_errors("delete", self.path(name)):
                self._store.delete(self._name(name))
        except FileNotFoundError:
            return

    def check(self, folder_url: str | None = None) -> None:
        if folder_url is not None:
            self._inside(folder_url)
            return
        with _store_errors("list", self.location):
            next(iter(self._store.list(self._prefix or None, chunk_size=1)), None)

    def _name(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _inside(self, folder_url: str) -> str:
        if not folder_url.startswith(f"{self._bucket}/"):
            raise ConnectError(
                f"{folder_url} is not in {self._bucket}, where the files are: nothing is moved between buckets"
            )
        return urlsplit(folder_url).path.strip("/")


class _Reader:
    """An object as a file whose bytes are Python's, with the store's errors as ConnectErrors."""

    closed = False
    mode = "rb"

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path

    def read(self, size: int = -1) -> bytes:
        with _store_errors("read", self._path):
            return bytes(self._file.read(None if size is None or size < 0 else size))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def size(self) -> int:
        return int(self._file.size)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
        self._file.close()


def _store(bucket: str, config: FolderSourceConfig) -> Any:
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise MissingExtra(f"reading files of {bucket}", "objects") from error

    open_store: Any = from_url
    given: dict[str, Any] = {}
    options: dict[str, Any] = {}
    if bucket.startswith("s3://"):
        given = {"region": config.region}
        if config.access_key:
            given |= {"access_key_id": config.access_key, "secret_access_key": config.secret_key.reveal()}
    if config.endpoint:
        given["endpoint"] = config.endpoint
        options = {"allow_http": config.endpoint.startswith("http:")}
    with _store_errors("connect to", bucket):
        return open_store(bucket, config=given, client_options=options)


@contextmanager
def _store_errors(doing: str, path: str) -> Iterator[None]:
    """obstore's errors as ours. FileNotFoundError stays: callers know what it means."""
    from obstore.exceptions import BaseError

    try:
        yield
    except (FileNotFoundError, ConnectError):
        raise
    except (BaseError, OSError, ValueError) as error:
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        status = _STATUS.search(str(error))
        for_good = isinstance(error, ValueError | PermissionError) or (status is not None and status[1] in _FOR_GOOD)
        kind = ConnectError if for_good else RetriableConnectError
        raise kind(f"cannot {doing} {path}: {text}") from error
