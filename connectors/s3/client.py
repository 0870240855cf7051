"""S3 as a store, through pyarrow's client."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

from connect.api import ConnectError, Password, RetriableConnectError, TopicPartition
from connectors.objects.store import Finished, Mark, Store
from connectors.s3.config import S3SinkConfig

__all__ = ["Found", "S3Access", "S3Objects", "S3Store"]

_BLOCK_BYTES: Final = 8 * 1024 * 1024
_IN_MEMORY_BYTES: Final = 32 * 1024 * 1024
_TIMEOUT_S: Final = 60
_ERROR: Final = re.compile(r"AWS Error (\w+)(?: \(HTTP status (\d+)\))? during \w+ operation")
"""How pyarrow's error messages begin; UNKNOWN is the SDK's name for error codes that it does not know."""
_FOR_GOOD: Final = frozenset(
    [
        "ACCESS_DENIED",
        "INCOMPLETE_SIGNATURE",
        "INVALID_ACCESS_KEY_ID",
        "INVALID_CLIENT_TOKEN_ID",
        "INVALID_OBJECT_STATE",
        "MISSING_AUTHENTICATION_TOKEN",
        "NO_SUCH_BUCKET",
        "OPT_IN_REQUIRED",
        "SIGNATURE_DOES_NOT_MATCH",
        "UNRECOGNIZED_CLIENT",
        "VALIDATION",
    ]
)
"""Errors of the AWS SDK (``S3Errors.h``, ``CoreErrors.h``) that a repeated request would get again."""
_STATUS_FOR_GOOD: Final = frozenset({"301", "400", "401", "403", "404", "405"})


class S3Access(Protocol):
    """The settings that a connection to a bucket needs, independent of the names of a configuration's keys."""

    @property
    def bucket(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def url(self) -> str | None: ...
    @property
    def access_key(self) -> str: ...
    @property
    def secret_key(self) -> Password: ...
    @property
    def path_style(self) -> bool: ...
    @property
    def retries(self) -> int: ...
    @property
    def client_options(self) -> Mapping[str, Any]: ...


class Found(NamedTuple):
    """An object of the bucket; ``modified_ms`` is since the epoch."""

    name: str
    modified_ms: int


class S3Objects:
    """Reads the bucket's objects."""

    def __init__(self, config: S3Access) -> None:
        self._bucket = config.bucket
        self._files = _file_system(config)

    def list(self, prefix: str) -> list[Found]:
        """All objects whose names begin with ``prefix``, sorted by name."""
        from pyarrow.fs import FileSelector, FileType

        folder = prefix.rpartition("/")[0]
        with _s3_errors("list", f"{self._bucket}/{prefix}"):
            selector = FileSelector(f"{self._bucket}/{folder}".rstrip("/"), allow_not_found=True, recursive=True)
            infos = self._files.get_file_info(selector)
            if not infos and self._files.get_file_info(self._bucket).type == FileType.NotFound:
                raise ConnectError(f"there is no bucket {self._bucket!r}, or it may not be seen with these credentials")
        cut = len(self._bucket) + 1
        found_objects = [Found(i.path[cut:], i.mtime_ns // 1_000_000) for i in infos if i.type == FileType.File]
        return sorted(each for each in found_objects if each.name.startswith(prefix))

    @contextmanager
    def open(self, name: str, *, seeks: bool, compression: str | None) -> Iterator[BinaryIO]:
        """Open an object as a file; one that needs seeking is downloaded first.

        The store's failures are raised as ConnectErrors, so every other error is caused by the data.
        """
        import pyarrow as pa

        path = f"{self._bucket}/{name}"
        with _s3_errors("read", path):
            opened = self._files.open_input_stream(path, compression=None, buffer_size=_BLOCK_BYTES)
        with opened:
            stream = cast("BinaryIO", _Stream(opened, path))
            if compression is not None:
                yield cast("BinaryIO", pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), compression))
            elif seeks:
                with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as local:
                    shutil.copyfileobj(stream, local, _BLOCK_BYTES)
                    local.seek(0)
                    yield cast("BinaryIO", local)
            else:
                yield stream


class _Stream(io.RawIOBase):
    """An object's bytes in order."""

    def __init__(self, opened: Any, path: str) -> None:
        self._opened, self._path = opened, path

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        with _s3_errors("read", self._path):
            data: bytes = self._opened.read(size if size is None or size >= 0 else None)
            return data


class S3Store(Store):
    """Objects of one bucket. An upload becomes visible when it is complete."""

    # A key has at most 1,024 bytes (Amazon S3 User Guide, "Naming Amazon S3 objects"); its parts have no limit of
    # their own.
    most_segment_bytes = 700
    most_folder_bytes = 700

    def __init__(self, config: S3SinkConfig) -> None:
        self._config = config
        self._files = _file_system(config)

    def commit(self, partition: TopicPartition, files: Sequence[Finished], mark: Mark) -> None:
        del partition, mark  # the names contain the partition, and the consumer group stores the offset
        for finished in files:
            self._upload(finished)

    @cached_property
    def _objects(self) -> S3Objects:
        return S3Objects(self._config)

    def names(self, folder: str, delimiter: str) -> Iterable[str]:
        return [listed.name for listed in self._objects.list(f"{folder}{delimiter}")]

    def reading(self, name: str, *, seeks: bool) -> AbstractContextManager[BinaryIO]:
        return self._objects.open(name, seeks=seeks, compression=None)

    def _upload(self, finished: Finished) -> None:
        name = f"{self._config.bucket}/{finished.name}"
        metadata = {"ACL": self._config.acl} if self._config.acl else None
        with (
            _s3_errors("write", name),
            finished.path.open("rb") as source,
            self._files.open_output_stream(name, compression=None, metadata=metadata) as target,
        ):
            while block := source.read(_BLOCK_BYTES):
                target.write(block)


@contextmanager
def _s3_errors(doing: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason, for_good = _classified(str(error), path)
        kind = ConnectError if for_good else RetriableConnectError
        raise kind(f"cannot {doing} s3://{path}: {reason}") from error


def _classified(text: str, path: str) -> tuple[str, bool]:
    """The server's message extracted from pyarrow's, and whether a retry would get the same error.

    pyarrow has no field for the error code. It is read from where pyarrow writes it: after the name of the object,
    which the user chose.
    """
    bucket, _, key = path.partition("/")
    text = text.partition(f"key '{key}' in bucket '{bucket}': ")[2] or text
    match = _ERROR.search(text)
    if match is None:
        return text.splitlines()[0] if text else "no reason is given", False
    code, status = match.groups()
    return text[match.start() :].splitlines()[0], code in _FOR_GOOD or (
        code == "UNKNOWN" and status in _STATUS_FOR_GOOD
    )


def _file_system(config: S3Access) -> Any:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    address: dict[str, Any] = {}
    if config.url:
        parts = urlsplit(config.url)
        address = {"scheme": parts.scheme, "endpoint_override": f"{parts.netloc}{parts.path.rstrip('/')}"}
        address["force_virtual_addressing"] = not config.path_style
    if config.access_key:
        address |= {"access_key": config.access_key, "secret_key": config.secret_key.reveal()}
    return S3FileSystem(
        region=config.region,
        connect_timeout=_TIMEOUT_S,
        request_timeout=_TIMEOUT_S,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=config.retries + 1),
        background_writes=False,
        # A small object is one request, which S3 does whole or not at all. As a multipart upload it is three, and a server
        # that dies at the third may say after its restart that it is done: versitygw 1.8.0 did, and the object was lost.
        allow_delayed_open=True,
        **address,
        **config.client_options,
    )
