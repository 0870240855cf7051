"""HDFS as a store: the one importer of hdfs-native."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from connect.api import ConnectError, RetriableConnectError
from connectors.objects.renaming import RenamingStore

__all__ = ["HdfsStore"]

_SETTINGS: Final = {"dfs.client.failover.max.attempts": "3"}
"""The worker repeats what failed for the moment: the client need not try for minutes (15 attempts) on its own."""
_BLOCK_BYTES: Final = 4 * 1024 * 1024
_FOR_GOOD: Final = ("permission denied", "accesscontrol", "quota", "illegal", "invalid", "standby")


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

    def _names(self, folder: str) -> Iterable[str]:
        with self._hdfs_errors("list", folder):
            try:
                listed = list(self._client.list_status(f"/{folder}", recursive=True))
            except FileNotFoundError:
                return []
        return [status.path.rpartition("/")[2] for status in listed if not status.isdir]

    @contextmanager
    def _hdfs_errors(self, doing: str, name: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, ConnectError):
            raise
        except Exception as error:
            said = f"cannot {doing} {self._url}/{name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
            if any(word in said.lower() for word in _FOR_GOOD):
                raise ConnectError(said) from error
            raise RetriableConnectError(said) from error


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
