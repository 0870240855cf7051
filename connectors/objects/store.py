"""Where finished files go: the contract that S3, HDFS and the local disk fulfil."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from connect.api import TopicPartition

__all__ = ["Finished", "Mark", "Store"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A file that is whole, on this machine's disk, and the name it is to have in the store (parts joined by ``/``)."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a topic partition is stored: every record before ``next_offset``. ``last_timestamp_ms`` is that of the
    last of them; by it a topic that was made anew under the same name is noticed."""

    next_offset: int
    last_timestamp_ms: int | None = None


class Store(ABC):
    """Takes files so that none is ever seen half written; one of the same name is replaced.

    What fails for the moment raises RetriableConnectError, anything else ConnectError, with the place and the reason.
    """

    names_end_offset = False
    """Whether file names hold the last record's offset too."""
    most_segment_bytes: ClassVar[int] = 255
    """Of one part of a path, in UTF-8; as POSIX file systems and HDFS have it."""
    most_folder_bytes: ClassVar[int] = 3000
    """Of a folder that values name, which leaves room for what stands before and behind it."""

    def folder_problem(self, folder: str, delimiter: str) -> str | None:
        """Why files cannot lie in a folder that values name; None where they can."""
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
        """Make files visible that hold what is new up to ``mark``. After a failure it is called again with the same."""

    def recover(self, partition: TopicPartition) -> Mark | None:
        """Finish what an interrupted commit left, and say how far the partition is stored; None to trust the group's
        offset."""
        del partition
        return None

    def check(self) -> None:
        """Raise ConnectError when the store cannot be written to as configured."""

    def close(self) -> None:
        """Release connections."""
