"""A folder of this disk, or of one that is mounted here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote, urlsplit

from connect.api import ConnectError
from connectors.folders.stores import Folder, StoredFile

if TYPE_CHECKING:
    from connectors.folders.config import FolderSourceConfig

__all__ = ["LocalFolder"]


class LocalFolder(Folder):
    def __init__(self, config: FolderSourceConfig) -> None:
        super().__init__(config)
        self._root = _path(config.input_path)
        self.location = str(self._root)

    def list(self, after: str | None = None) -> Iterator[StoredFile]:
        with _disk_errors("list", self._root):
            names = self._names(self._root, "")
            for name in names if after is None else sorted(each for each in names if each > after):
                if (stored := self.stat(name)) is not None:
                    yield stored

    def _names(self, folder: Path, prefix: str) -> Iterator[str]:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file():
                    yield prefix + entry.name
                elif self.config.walks and entry.is_dir(follow_symlinks=False):
                    yield from self._names(Path(entry.path), f"{prefix}{entry.name}/")

    def stat(self, name: str) -> StoredFile | None:
        try:
            with _disk_errors("look at", self._root / name):
                at = (self._root / name).stat()
        except FileNotFoundError:
            return None
        return StoredFile(name, at.st_size, at.st_mtime_ns // 1_000_000)

    @contextmanager
    def open(self, name: str, *, seeks: bool) -> Iterator[BinaryIO]:
        path = self._root / name
        try:
            with _disk_errors("open", path):
                file = path.open("rb")
        except FileNotFoundError as error:
            raise ConnectError(f"{path} is not there any more") from error
        with file:
            yield file

    def move(self, name: str, folder_url: str, new_name: str) -> None:
        target = _path(folder_url) / new_name
        try:
            with _disk_errors(f"move {self._root / name} to", target):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(self._root / name, target)
        except FileNotFoundError:
            return  # somebody else has taken it away
        self._tidy(name)

    def delete(self, name: str) -> None:
        with _disk_errors("delete", self._root / name):
            (self._root / name).unlink(missing_ok=True)
        self._tidy(name)

    def _tidy(self, name: str) -> None:
        """Remove folders that have become empty, as the original."""
        if self.config.keeps_folders:
            return
        for parent in (self._root / name).parents:
            if parent == self._root:
                return
            try:
                parent.rmdir()
            except OSError:
                return

    def check(self, folder_url: str | None = None) -> None:
        folder = self._root if folder_url is None else _path(folder_url)
        if not folder.is_dir():
            raise ConnectError(f"there is no folder {folder}")
        changes = folder_url is not None or self.config.changes_input
        if not os.access(folder, os.R_OK | os.X_OK | (os.W_OK if changes else 0)):
            raise ConnectError(f"folder {folder} cannot be {'written to' if changes else 'read'} by this user")


def _path(text: str) -> Path:
    return Path(unquote(urlsplit(text).path)) if text.startswith("file:") else Path(text)


@contextmanager
def _disk_errors(doing: str, path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConnectError(f"cannot {doing} {path}: {error.strerror}") from error
