"""An SFTP server as a store."""

from __future__ import annotations

import io
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import BinaryIO

from connectors.objects.renaming import RenamingStore
from connectors.objects.sftp import Sftp, SftpKeys, aside

__all__ = ["SftpStore"]


class SftpStore(RenamingStore):
    """Files below the path of ``url``."""

    temporary_dir = "_tmp"  # readers of folders leave out what begins so

    def __init__(self, url: str, keys: SftpKeys, topics_dir: str, logs_dir: str) -> None:
        super().__init__(topics_dir, logs_dir)
        self._sftp = Sftp(url, keys)

    def _path(self, name: str) -> str:
        return f"{self._sftp.root}/{name}"

    def check(self) -> None:
        self._sftp.make_folders(self._sftp.root)

    def _bring(self, path: Path, name: str) -> None:
        with path.open("rb") as source:
            self._sftp.write(self._path(name), source)

    def _write(self, name: str, data: bytes) -> None:
        self._sftp.write(self._path(name), io.BytesIO(data))

    def _read(self, name: str) -> bytes | None:
        path = self._path(name)
        for each in (path, aside(path)):
            with suppress(FileNotFoundError), self._sftp.reading(each) as file:
                return file.read()
        return None

    def _rename(self, old: str, new: str) -> None:
        self._sftp.rename(self._path(old), self._path(new))

    def names(self, folder: str, delimiter: str) -> Iterable[str]:
        try:
            listed = [file.path for file in self._sftp.list(self._path(folder), walks=True)]
        except FileNotFoundError:
            return []
        return sorted(path[len(self._sftp.root) + 1 :] for path in listed)

    def reading(self, name: str, *, seeks: bool) -> AbstractContextManager[BinaryIO]:
        return self._sftp.reading(self._path(name))

    def close(self) -> None:
        self._sftp.close()
