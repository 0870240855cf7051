"""Where files lie: a folder of this disk, a bucket, HDFS or an SFTP server, all behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from typing import BinaryIO, Final, NamedTuple, cast

from connect.api import ConnectError
from connectors.folders.config import FolderSourceConfig, scheme_of

__all__ = ["Folder", "StoredFile", "folder_of"]

_STORES: Final = {
    "": "local:LocalFolder",
    "file": "local:LocalFolder",
    "s3": "objects:ObjectFolder",
    "gs": "objects:ObjectFolder",
    "az": "objects:ObjectFolder",
    "hdfs": "hdfs:HdfsFolder",
    "viewfs": "hdfs:HdfsFolder",
    "sftp": "sftp:SftpFolder",
}


class StoredFile(NamedTuple):
    """A file of the folder. ``name`` is its path below the folder, with ``/``."""

    name: str
    length: int
    modified_ms: int


class Folder(ABC):
    """The files below ``input.path``. Names of files are relative to it; ``folder_url`` is where finished files go, in the form of ``input.path``.

    Failures raise ConnectError, with the path and the reason, or RetriableConnectError if a repeated call may succeed.
    """

    def __init__(self, config: FolderSourceConfig) -> None:
        self.config = config
        self.location = config.input_path.rstrip("/")

    @abstractmethod
    def list(self, after: str | None = None) -> Iterator[StoredFile]:
        """The files, in no particular order; with ``after`` those with greater names, sorted by name.

        Only with ``input.path.walk.recursively`` also those of folders below.
        """

    @abstractmethod
    def stat(self, name: str) -> StoredFile | None:
        """The file as it is now, None if it is not there any more."""

    @abstractmethod
    def open(self, name: str, *, seeks: bool) -> AbstractContextManager[BinaryIO]:
        """Open a file to read; with ``seeks`` for random access."""

    @abstractmethod
    def move(self, name: str, folder_url: str, new_name: str) -> None:
        """Move a file to another folder of the same store, which is made if it is missing; a file of that name is replaced."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file; none is fine."""

    @abstractmethod
    def check(self, folder_url: str | None = None) -> None:
        """Raise ConnectError if the folder, or ``folder_url`` where finished files go, cannot be used."""

    def path(self, name: str) -> str:
        """The whole path of a file, for people."""
        return f"{self.location}/{name}"

    def close(self) -> None:
        """Release connections; a later call connects again."""


def folder_of(config: FolderSourceConfig) -> Folder:
    """The folder that ``input.path`` names. Raises ConnectError for a scheme that is not known, and for a missing package."""
    scheme = scheme_of(config.input_path)
    if scheme not in _STORES:
        known = ", ".join(f"{each}://" for each in _STORES if each)
        raise ConnectError(
            f"input.path is {config.input_path!r}; it should be a path of this disk, or begin with {known}"
        )
    module, _, name = _STORES[scheme].partition(":")
    made = cast("type[Folder]", getattr(import_module(f"{__name__}.{module}"), name))
    return made(config)
