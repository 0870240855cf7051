"""Where finished files go: the contract that S3, HDFS and the local disk fulfil."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from connect.api import TopicPartition

__all__ = ["Finished", "Store"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A file that is whole, on this machine's disk, and the name it is to have in the store (parts joined by ``/``)."""

    path: Path
    name: str


class Store(ABC):
    """Takes files so that none is ever seen half written; one of the same name is replaced.

    What fails for the moment raises RetriableConnectError, anything else ConnectError, with the place and the reason.
    """

    names_end_offset = False
    """Whether file names hold the last record's offset too."""

    @abstractmethod
    def commit(self, partition: TopicPartition, files: Sequence[Finished], next_offset: int) -> None:
        """Make files visible that end before ``next_offset``. After a failure it is called again with the same."""

    def recover(self, partition: TopicPartition) -> int | None:
        """Finish what an interrupted commit left, and say at which offset to go on; None to trust the group's."""
        del partition
        return None

    def check(self) -> None:
        """Raise ConnectError when the store cannot be written to as configured."""

    def close(self) -> None:
        """Release connections."""
