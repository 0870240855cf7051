"""A folder of an SFTP server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote, urlsplit

from connect.api import ConnectError
from connectors.folders.stores import Folder, StoredFile
from connectors.objects.sftp import RemoteFile, Sftp

if TYPE_CHECKING:
    from connectors.folders.config import FolderSourceConfig

__all__ = ["SftpFolder"]


class SftpFolder(Folder):
    """Times of files have a precision of seconds."""

    def __init__(self, config: FolderSourceConfig) -> None:
        super().__init__(config)
        self._sftp = Sftp(self.location, config)

    def list(self, after: str | None = None) -> Iterator[StoredFile]:
        try:
            files = (self._stored(file) for file in self._sftp.list(self._sftp.root, walks=self.config.walks))
            yield from files if after is None else sorted(each for each in files if each.name > after)
        except FileNotFoundError as error:
            raise ConnectError(f"there is no folder {self.location}") from error

    def _stored(self, file: RemoteFile) -> StoredFile:
        return StoredFile(file.path[len(self._sftp.root) + 1 :], file.length, file.modified_ms)

    def _remote(self, name: str) -> str:
        return f"{self._sftp.root}/{name}"

    def stat(self, name: str) -> StoredFile | None:
        try:
            return self._stored(self._sftp.stat(self._remote(name)))
        except FileNotFoundError:
            return None

    @contextmanager
    def open(self, name: str, *, seeks: bool) -> Iterator[BinaryIO]:
        try:
            with self._sftp.reading(self._remote(name)) as file:
                yield file
        except FileNotFoundError as error:
            raise ConnectError(f"{self.path(name)} is not there any more") from error

    def move(self, name: str, folder_url: str, new_name: str) -> None:
        try:
            self._sftp.rename(self._remote(name), f"{self._inside(folder_url)}/{new_name}")
        except FileNotFoundError:
            return  # somebody else has taken it away

    def delete(self, name: str) -> None:
        self._sftp.remove(self._remote(name))

    def check(self, folder_url: str | None = None) -> None:
        try:
            self._sftp.stat(self._sftp.root or "/" if folder_url is None else self._inside(folder_url))
        except FileNotFoundError as error:
            raise ConnectError(f"there is no folder {folder_url or self.location}") from error

    def _inside(self, folder_url: str) -> str:
        parts, here = urlsplit(folder_url), urlsplit(self.location)
        if (parts.hostname, parts.port) != (here.hostname, here.port):
            raise ConnectError(f"{folder_url} is not on {self._sftp.server}, where the files are")
        return unquote(parts.path).rstrip("/")

    def close(self) -> None:
        self._sftp.close()
