"""The start offset of each leader epoch of a partition, from ``leader-epoch-checkpoint``.

Our own logs are in epoch 0 from their first offset on. A log that an Apache Kafka led before stays in its last epoch:
clients remember the newest epoch they have seen, and regard an older one as an outdated leader.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from broker.errors import KafkaStorageError
from broker.log.files import storage_errors, write_atomically

__all__ = ["LeaderEpochs"]

_FILE: Final = "leader-epoch-checkpoint"


class LeaderEpochs:
    """(epoch, first offset) pairs, ascending in both."""

    def __init__(self, entries: list[tuple[int, int]]) -> None:
        self._entries = entries

    @classmethod
    def read(cls, directory: Path) -> LeaderEpochs:
        """Empty without a file. Raises KafkaStorageError if it is damaged."""
        path = directory / _FILE
        with storage_errors(f"read {path}"):
            try:
                lines = path.read_text().split("\n")
            except FileNotFoundError:
                return cls([])
        try:
            entries = [(int(epoch), int(offset)) for epoch, offset in (line.split(" ") for line in lines[2:] if line)]
        except ValueError as error:
            raise KafkaStorageError(f"{path} is no list of leader epochs: {error}; remove it") from error
        return cls(entries)

    def assign(self, epoch: int, offset: int) -> bool:
        """The leader of this epoch begins at ``offset``. Returns whether that is new."""
        if self._entries and self._entries[-1][0] >= epoch:
            return False
        self._entries = [entry for entry in self._entries if entry[1] < offset] + [(epoch, offset)]
        return True

    def end_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The last epoch up to this one and its end offset; (-1, -1) if unknown. Source: LeaderEpochFileCache."""
        if not self._entries:
            return -1, -1
        if epoch == self._entries[-1][0]:
            return epoch, log_end_offset
        later = next((entry for entry in self._entries if entry[0] > epoch), None)
        if later is None:
            return -1, -1
        before = [entry[0] for entry in self._entries if entry[0] <= epoch]
        return (before[-1] if before else epoch), later[1]

    def write(self, directory: Path) -> None:
        """Raises OSError."""
        lines = ["0", str(len(self._entries)), *(f"{epoch} {offset}" for epoch, offset in self._entries), ""]
        write_atomically(directory / _FILE, "\n".join(lines).encode())
