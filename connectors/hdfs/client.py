"""HDFS as a store: the one importer of hdfs-native."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from connect.api import ConnectError, RetriableConnectError
from connectors.objects.renaming import RenamingStore

__all__ = ["HdfsStore"]

_SETTINGS: Final = {"dfs.client.failover.max.attempts": "3"}
"""The worker retries temporary failures, so the client need not retry for minutes by itself (15 attempts)."""
_BLOCK_BYTES: Final = 4 * 1024 * 1024
_IN_MEMORY_BYTES: Final = 32 * 1024 * 1024
_REMOTE: Final = re.compile(r'(?:Fatal)?RPCError\("[\w.$]*?(\w+)", "')
_LOCAL: Final = re.compile(r"(\w+)\(")
_FOR_GOOD: Final = frozenset(
    [
        "AccessControlException",
        "DSQuotaExceededException",
        "HadoopIllegalArgumentException",
        "IllegalArgumentException",
        "InvalidPathException",
        "InvalidToken",
        "MaxDirectoryItemsExceededException",
        "NSQuotaExceededException",
        "ParentNotDirectoryException",
        "PathComponentTooLongException",
        "QuotaByStorageTypeExceededException",
        "QuotaExceededException",
    ]
)
"""Exceptions of the name node that a retry would get again.

StandbyException is not among them: while name nodes are switching roles, one of them becomes active soon.
"""
_LOCAL_FOR_GOOD: Final = frozenset(
    {"InvalidArgument", "InvalidPath", "NoSASLMechanism", "UnsupportedErasureCodingPolicy", "UnsupportedFeature"}
)


class HdfsStore(RenamingStore):
    """Files below the root of the file system at ``url``."""

    names_end_offset = True

    def __init__(self, url: str, topics_dir: str, logs_dir: str, conf_dir: str = "") -> None:
        super().__init__(topics_dir, logs_dir)
        self._url = url
        with self._hdfs_errors("connect to", ""):
            self._client = _client(url, conf_dir)

    def check(self) -> None:
        with self._hdfs_errors("look at", ""):
            self._client.get_file_info("/")

    def _bring(self, path: Path, name: str) -> None:
        with self._hdfs_errors("write", name), path.open("rb") as source, self._create(name) as target:
            while block := source.read(_BLOCK_BYTES):
                target.write(block)

    def _write(self, name: str, data: bytes) -> None:
        with self._hdfs_errors("write", name), self._create(name) as target:
            target.write(data)

    def _create(self, name: str) -> Any:
        from hdfs_native import WriteOptions

        return self._client.create(f"/{name}", WriteOptions(overwrite=True, create_parent=True))

    def _read(self, name: str) -> bytes | None:
        with self._hdfs_errors("read", name):
            try:
                with self._client.read(f"/{name}") as file:
                    content: bytes = file.read()
                    return content
            except FileNotFoundError:
                return None

    def _rename(self, old: str, new: str) -> None:
        with self._hdfs_errors("rename to", new):
            self._client.get_file_info(f"/{old}")
            self._client.mkdirs(f"/{new.rpartition('/')[0]}", create_parent=True)
            self._client.rename(f"/{old}", f"/{new}", overwrite=True)

    def names(self, folder: str, delimiter: str) -> Iterable[str]:
        with self._hdfs_errors("list", folder):
            try:
                listed = list(self._client.list_status(f"/{folder}", recursive=True))
            except FileNotFoundError:
                return []
        return sorted(status.path.lstrip("/") for status in listed if not status.isdir)

    @contextmanager
    def reading(self, name: str, *, seeks: bool) -> Iterator[BinaryIO]:
        with self._hdfs_errors("read", name):
            opened = self._client.read(f"/{name}")
        with opened, tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as local:
            with self._hdfs_errors("read", name):
                while block := opened.read(_BLOCK_BYTES):
                    local.write(block)
            local.seek(0)
            yield cast("BinaryIO", local)

    @contextmanager
    def _hdfs_errors(self, doing: str, name: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, ConnectError):
            raise
        except Exception as error:
            kind = ConnectError if _is_for_good(error) else RetriableConnectError
            raise kind(f"cannot {doing} {self._url}/{name}: {_first_line(error)}") from error


def _is_for_good(error: Exception) -> bool:
    """Whether a retry cannot help. hdfs-native raises RuntimeError for most errors, with its own error's name or
    Hadoop's exception at the beginning of the message.
    """
    if isinstance(error, PermissionError):
        return True
    text = str(error)
    if remote := _REMOTE.match(text):
        return remote[1] in _FOR_GOOD
    local = _LOCAL.match(text) if isinstance(error, RuntimeError) else None
    return local is not None and local[1] in _LOCAL_FOR_GOOD


def _first_line(error: Exception) -> str:
    """The message without the name node's stack trace, which hdfs-native writes escaped on one line."""
    text = re.split(r"\n|\\n", str(error), maxsplit=1)[0]
    return _REMOTE.sub(r"\1: ", text) or type(error).__name__


def _client(url: str, conf_dir: str) -> Any:
    from hdfs_native import Client

    settings = dict(_SETTINGS)
    for name in ("core-site.xml", "hdfs-site.xml"):
        path = Path(conf_dir, name)
        if conf_dir and path.is_file():
            settings |= _properties(path)
    return Client(url, settings)


def _properties(path: Path) -> dict[str, str]:
    from defusedxml import ElementTree

    root = ElementTree.parse(path).getroot()
    if root is None:
        return {}
    return {each.findtext("name", "").strip(): each.findtext("value", "").strip() for each in root.iter("property")}
