"""A folder of HDFS, through hdfs-native."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import urlsplit

from connect.api import ConnectError, RetriableConnectError
from connectors.folders.stores import Folder, StoredFile

if TYPE_CHECKING:
    from connectors.folders.config import FolderSourceConfig

__all__ = ["HdfsFolder"]


class HdfsFolder(Folder):
    def __init__(self, config: FolderSourceConfig) -> None:
        super().__init__(config)
        from hdfs_native import Client

        parts = urlsplit(self.location)
        self._url, self._root = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        with _hdfs_errors("connect to", self.location):
            self._client = Client(self._url, {"dfs.client.failover.max.attempts": "3"})

    def list(self, after: str | None = None) -> Iterator[StoredFile]:
        with _hdfs_errors("list", self.location):
            listed = self._client.list_status(self._root or "/", recursive=self.config.walks)
            files = (self._stored(status) for status in listed if not status.isdir)
            yield from files if after is None else sorted(each for each in files if each.name > after)

    def _stored(self, status: Any) -> StoredFile:
        path = urlsplit(status.path).path
        return StoredFile(path[len(self._root) + 1 :], status.length, status.modification_time)

    def stat(self, name: str) -> StoredFile | None:
        try:
            with _hdfs_errors("look at", self.path(name)):
                status = self._client.get_file_info(f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        return StoredFile(name, status.length, status.modification_time)

    @contextmanager
    def open(self, name: str, *, seeks: bool) -> Iterator[BinaryIO]:
        try:
            with _hdfs_errors("open", self.path(name)):
                file = self._client.read(f"{self._root}/{name}")
        except FileNotFoundError as error:
            raise ConnectError(f"{self.path(name)} is not there any more") from error
        with file:
            yield cast("BinaryIO", file)

    def move(self, name: str, folder_url: str, new_name: str) -> None:
        target = f"{self._inside(folder_url)}/{new_name}"
        with _hdfs_errors(f"move {self.path(name)} to", target):
            self._client.mkdirs(target.rpartition("/")[0], create_parent=True)
            self._client.rename(f"{self._root}/{name}", target, overwrite=True)

    def delete(self, name: str) -> None:
        with _hdfs_errors("delete", self.path(name)):
            self._client.delete(f"{self._root}/{name}")

    def check(self, folder_url: str | None = None) -> None:
        path = self._root or "/" if folder_url is None else self._inside(folder_url)
        try:
            with _hdfs_errors("look at", folder_url or self.location):
                self._client.get_file_info(path)
        except FileNotFoundError as error:
            raise ConnectError(f"there is no folder {folder_url or self.location}") from error

    def _inside(self, folder_url: str) -> str:
        if not folder_url.startswith(f"{self._url}/"):
            raise ConnectError(f"{folder_url} is not in {self._url}, where the files are")
        return urlsplit(folder_url).path.rstrip("/")


@contextmanager
def _hdfs_errors(doing: str, path: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, ConnectError):
        raise
    except Exception as error:
        kind = ConnectError if isinstance(error, PermissionError) else RetriableConnectError
        text = str(error).replace("\\n", "\n").splitlines()
        raise kind(f"cannot {doing} {path}: {text[0] if text else type(error).__name__}") from error
