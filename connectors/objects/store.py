"""The interface of stores for complete files, which S3, HDFS and the local disk implement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

from connect.api import ConnectError, TopicPartition

__all__ = ["Finished", "Mark", "Store"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A complete local file, and the name it gets in the store (parts joined by ``/``)."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a topic partition is stored: every record before ``next_offset``.

    ``last_timestamp_ms`` belongs to the last of them; with it, a topic that was recreated under the same name is
    detected.
    """

    next_offset: int
    last_timestamp_ms: int | None = None


class Store(ABC):
    """Stores files such that no reader ever sees an incomplete one; a file of the same name is replaced.

    Temporary failures raise RetriableConnectError, all others ConnectError, with the location and the reason.
    """

    names_end_offset = False
    """Whether file names include the last record's offset."""
    most_segment_bytes: ClassVar[int] = 255
    """The most bytes in one part of a path, in UTF-8; the limit of POSIX file systems and HDFS."""
    most_folder_bytes: ClassVar[int] = 3000
    """The most bytes in a folder name made from values, which leaves room for what is added before and after it."""

    def folder_problem(self, folder: str, delimiter: str) -> str | None:
        """Why files cannot be stored in a folder that is named after values; None where they can."""
        if "\0" in folder:
            return f"{folder!r} cannot name a folder: it holds NUL"
        for part in folder.replace(delimiter, "/").split("/"):
            if part in ("", ".", ".."):
                return f"{folder!r} cannot name a folder: {part!r} leads elsewhere"
            if len(part.encode()) > self.most_segment_bytes:
                size = len(part.encode())
                return f"{part[:40]!r}... cannot name a folder: it has {size} bytes, and {self.most_segment_bytes} are possible"
        size = len(folder.encode())
        if size > self.most_folder_bytes:
            return f"{folder[:40]!r}... cannot name a folder: it has {size} bytes, and {self.most_folder_bytes} are possible"
        return None

    @abstractmethod
    def commit(self, partition: TopicPartition, files: Sequence[Finished], mark: Mark) -> None:
        """Make files visible that contain the new records up to ``mark``.

        After a failure it is called again with the same arguments.
        """

    def recover(self, partition: TopicPartition) -> Mark | None:
        """Complete an interrupted commit and return how far the partition is stored; None to use the group's offset."""
        del partition
        return None

    def names(self, folder: str, delimiter: str) -> Iterable[str]:
        """The names of all complete files in a folder and below it, sorted. Raises ConnectError where they can't be listed."""
        del folder, delimiter
        raise ConnectError(f"{type(self).__name__} does not list files")

    def reading(self, name: str, *, seeks: bool) -> AbstractContextManager[BinaryIO]:
        """Open a complete file, which can be read anywhere with ``seeks``."""
        raise ConnectError(f"{type(self).__name__} does not read files: {name}")

    def check(self) -> None:
        """Raise ConnectError when the store cannot be written as configured."""

    def close(self) -> None:
        """Release connections."""
