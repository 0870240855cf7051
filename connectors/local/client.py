"""The local disk as a store."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from connect.api import ConnectError, RetriableConnectError
from connectors.objects.renaming import RenamingStore

__all__ = ["LocalStore"]

_PASSING: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.ESTALE, errno.EIO, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EBUSY}
)
"""A full disk, or one of the network that is away: somebody makes room, or it comes back."""


class LocalStore(RenamingStore):
    """Files below ``root``; what is renamed was synced before."""

    temporary_dir = "_tmp"  # readers of folders leave out what begins so

    def __init__(self, root: Path, topics_dir: str, logs_dir: str) -> None:
        super().__init__(topics_dir, logs_dir)
        self._root = root

    def check(self) -> None:
        with self._disk_errors("make folder", ""):
            self._root.mkdir(parents=True, exist_ok=True)
            if not os.access(self._root, os.W_OK):
                raise ConnectError(f"folder {self._root} cannot be written to by this user")

    def _bring(self, path: Path, name: str) -> None:
        with self._disk_errors("write", name) as target:
            target.parent.mkdir(parents=True, exist_ok=True)
            with path.open("rb") as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
                copy.flush()
                os.fsync(copy.fileno())

    def _write(self, name: str, data: bytes) -> None:
        with self._disk_errors("write", name) as target:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())

    def _read(self, name: str) -> bytes | None:
        with self._disk_errors("read", name) as target:
            return target.read_bytes() if target.exists() else None

    def _rename(self, old: str, new: str) -> None:
        if not (self._root / old).exists():
            raise FileNotFoundError(old)
        with self._disk_errors("rename to", new) as target:
            target.parent.mkdir(parents=True, exist_ok=True)
            (self._root / old).replace(target)

    def names(self, folder: str, delimiter: str) -> Iterable[str]:
        with self._disk_errors("list", folder) as below:
            paths = [path for path in below.rglob("*") if path.is_file()]
        return sorted(path.relative_to(self._root).as_posix() for path in paths)

    @contextmanager
    def reading(self, name: str, *, seeks: bool) -> Iterator[BinaryIO]:
        with self._disk_errors("open", name) as path:
            file = path.open("rb")
        with file:
            yield file

    @contextmanager
    def _disk_errors(self, doing: str, name: str) -> Iterator[Path]:
        target = self._root / name
        try:
            yield target
        except OSError as error:
            kind = RetriableConnectError if error.errno in _PASSING else ConnectError
            raise kind(f"cannot {doing} {target}: {error.strerror}") from error
