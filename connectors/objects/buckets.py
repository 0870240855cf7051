"""Buckets and containers of object stores (S3, Google Cloud Storage, Azure Blob): the one importer of obstore."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

from connect.api import ConnectError, MissingExtra, RetriableConnectError, TopicPartition
from connectors.objects.store import Finished, Mark, Store

__all__ = ["Bucket", "BucketObjects", "BucketStore", "StoredObject"]

_BUFFER_BYTES: Final = 8 * 1024 * 1024
_PART_BYTES: Final = 8 * 1024 * 1024
_PARTS_AT_ONCE: Final = 4
_PAGE: Final = 1000
_RETRY_S: Final = 60
_STATUS: Final = re.compile(r"status(?: code)?:? (\d{3})")
_FOR_GOOD: Final = frozenset({"301", "400", "401", "403", "404", "405"})


class StoredObject(NamedTuple):
    """``modified_ms`` is since the epoch."""

    name: str
    length: int
    modified_ms: int


class Bucket:
    """A bucket or container by its URL (``s3://bucket``, ``gs://bucket``, ``az://container``). Nothing is asked before the first call.

    Raises ConnectError with the path and the reason, or RetriableConnectError if a repeated call may succeed. A missing object
    is a FileNotFoundError.
    """

    def __init__(
        self, url: str, settings: Mapping[str, Any], client: Mapping[str, Any], *, retries: int | None = None
    ) -> None:
        """``settings`` and ``client`` are obstore's; ``retries`` says how often a failed request is repeated."""
        try:
            from obstore.store import from_url
        except ImportError as error:
            raise MissingExtra(f"files of {url}", "objects") from error

        self.url = url
        more: dict[str, Any] = {}
        if retries is not None:
            more["retry_config"] = {"max_retries": retries, "retry_timeout": timedelta(seconds=_RETRY_S)}
        open_store: Any = from_url
        try:
            self._store: Any = open_store(url, config=dict(settings), client_options=dict(client), **more)
        except Exception as error:  # of the settings: nothing was asked yet
            raise ConnectError(f"cannot connect to {url}: {_reason(error)}") from error

    def list(self, folder: str, after: str | None = None) -> Iterator[StoredObject]:
        """The objects in a folder and below it, empty for all; with ``after`` those with greater names. Sorted by name."""
        with _errors("list", f"{self.url}/{folder}"):
            for page in self._store.list(folder or None, offset=after, chunk_size=_PAGE):
                for each in page:
                    yield _stored(each)

    def check(self, folder: str) -> None:
        """Raise ConnectError if the bucket cannot be listed."""
        with _errors("list", f"{self.url}/{folder}"):
            next(iter(self._store.list(folder or None, chunk_size=1)), None)

    def stat(self, name: str) -> StoredObject:
        with _errors("look at", f"{self.url}/{name}"):
            return _stored(self._store.head(name))

    def open(self, name: str) -> BinaryIO:
        """An object to read, anywhere in it."""
        import obstore

        path = f"{self.url}/{name}"
        with _errors("open", path):
            return cast("BinaryIO", _Reader(obstore.open_reader(self._store, name, buffer_size=_BUFFER_BYTES), path))

    def put(self, name: str, file: Path) -> None:
        """Upload a file; an object of that name is replaced, and is the whole file or the former one at any time."""
        with _errors("write", f"{self.url}/{name}"):
            self._store.put(name, file, chunk_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE)

    def copy(self, name: str, target: str) -> None:
        with _errors(f"copy {self.url}/{name} to", target):
            self._store.copy(name, target)

    def delete(self, name: str) -> None:
        """Delete an object; none is fine."""
        try:
            with _errors("delete", f"{self.url}/{name}"):
                self._store.delete(name)
        except FileNotFoundError:
            return


class BucketStore(Store):
    """Complete files as objects, for sinks.

    Names hold the first offset and an upload replaces an object at once, so files that are made again after a crash replace
    themselves: no commit needs a condition, a rename or an append.
    """

    # Google's and Amazon's names have at most 1,024 bytes, Azure's 1,024 characters
    most_segment_bytes = 700
    most_folder_bytes = 700

    def __init__(self, bucket: Bucket, kind: str) -> None:
        """``kind`` is what the provider calls a bucket."""
        self._bucket, self._kind = bucket, kind

    def folder_problem(self, folder: str, delimiter: str) -> str | None:
        if any(ord(character) < 32 or ord(character) == 127 for character in folder):
            return f"{folder!r} cannot name a folder: it holds a control character"
        return super().folder_problem(folder, delimiter)

    def commit(self, partition: TopicPartition, files: Sequence[Finished], mark: Mark) -> None:
        del partition, mark  # the names contain the partition, and the consumer group stores the offset
        for finished in files:
            try:
                self._bucket.put(finished.name, finished.path)
            except FileNotFoundError as error:  # of an object that is written
                raise ConnectError(f"there is no {self._kind} {self._bucket.url}") from error

    def names(self, folder: str, delimiter: str) -> Iterable[str]:
        prefix = f"{folder}{delimiter}"
        listed = (each.name for each in self._bucket.list(prefix.rpartition("/")[0]))
        return sorted(name for name in listed if name.startswith(prefix))

    def reading(self, name: str, *, seeks: bool) -> AbstractContextManager[BinaryIO]:
        try:
            return closing(self._bucket.open(name))
        except FileNotFoundError as error:
            raise ConnectError(f"{self._bucket.url}/{name} is not there any more") from error


class BucketObjects:
    """Objects of a bucket, for sources."""

    def __init__(self, bucket: Bucket, kind: str) -> None:
        """``kind`` is what the provider calls a bucket."""
        self._bucket, self._kind = bucket, kind

    def list(self, prefix: str) -> Iterator[StoredObject]:
        try:
            for each in self._bucket.list(prefix.rpartition("/")[0]):
                if each.name.startswith(prefix):
                    yield each
        except FileNotFoundError as error:
            raise ConnectError(f"there is no {self._kind} {self._bucket.url}") from error

    @contextmanager
    def open(self, name: str, *, seeks: bool, compression: str | None) -> Iterator[BinaryIO]:
        """Open an object as a file, which always seeks unless it is compressed."""
        del seeks
        try:
            file = self._bucket.open(name)
        except FileNotFoundError as error:
            raise ConnectError(f"{self._bucket.url}/{name} is not there any more") from error
        with closing(file):
            if compression is None:
                yield file
            else:
                import pyarrow as pa

                yield cast("BinaryIO", pa.CompressedInputStream(pa.PythonFile(file, mode="r"), compression))


class _Reader:
    """An object as a file whose bytes are Python's, with the store's errors as ConnectErrors."""

    closed = False
    mode = "rb"

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path

    def read(self, size: int = -1) -> bytes:
        with _errors("read", self._path):
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


def _stored(each: Any) -> StoredObject:
    return StoredObject(each["path"], each["size"], int(each["last_modified"].timestamp() * 1000))


def _reason(error: Exception) -> str:
    """The server's words: its status, code and message where it sent those, else the first line of the error."""
    text = str(error).strip()
    answer = text.partition("non-2xx status code: ")[2]
    code, message = (re.search(f"<{tag}>([^<\\n]*)", answer) for tag in ("Code", "Message"))
    if code is not None and message is not None:
        return f"{answer.partition(': ')[0]}, {code[1]}: {html.unescape(message[1])}"
    return text.splitlines()[0] if text else type(error).__name__


@contextmanager
def _errors(doing: str, path: str) -> Iterator[None]:
    """obstore's errors as ours. FileNotFoundError stays: callers know what it means."""
    from obstore.exceptions import BaseError

    try:
        yield
    except (FileNotFoundError, ConnectError):
        raise
    except (BaseError, OSError, ValueError) as error:
        status = _STATUS.search(str(error))
        for_good = isinstance(error, ValueError | PermissionError) or (status is not None and status[1] in _FOR_GOOD)
        kind = ConnectError if for_good else RetriableConnectError
        raise kind(f"cannot {doing} {path}: {_reason(error)}") from error
