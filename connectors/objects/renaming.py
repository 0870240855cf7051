"""Stores that can rename: a file is brought under a temporary name first, and a log makes a commit of several files one.

A commit writes the temporary files, then a log of which is to become what and at which offset to go on, then renames.
Interrupted before the log, it never happened; after, ``recover`` finishes it. So records are stored exactly once
whatever the consumer group's offset says, also where files end by the clock.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from connect.api import ConnectError, TopicPartition
from connectors.objects.store import Finished, Mark, Store

__all__ = ["RenamingStore"]

_NAME: Final = re.compile(r"([a-zA-Z0-9._-]+)\+(\d+)\+(\d+)\+(\d+)(\.\w+)*")
"""File names of the HDFS sinks: topic, partition, first and last offset."""


class RenamingStore(Store):
    """``topics_dir`` and ``logs_dir`` are below the store's root; all paths are relative to it."""

    temporary_dir = "+tmp"
    """The folder for files before a commit, below ``topics_dir``."""

    def __init__(self, topics_dir: str, logs_dir: str) -> None:
        self._topics_dir = topics_dir.strip("/")
        self._logs_dir = logs_dir.strip("/")

    @abstractmethod
    def _bring(self, path: Path, name: str) -> None:
        """Copy or move a complete local file to ``name``, replacing an existing one."""

    @abstractmethod
    def _write(self, name: str, data: bytes) -> None:
        """Write a small file, not necessarily atomically."""

    @abstractmethod
    def _read(self, name: str) -> bytes | None:
        """A small file's contents, None where it does not exist."""

    @abstractmethod
    def _rename(self, old: str, new: str) -> None:
        """Rename atomically, replacing an existing file; folders are created.

        FileNotFoundError where ``old`` does not exist.
        """

    def commit(self, partition: TopicPartition, files: Sequence[Finished], mark: Mark) -> None:
        moves = [(self._temporary(finished.name), self._inside(finished.name)) for finished in files]
        for finished, (temporary, _) in zip(files, moves, strict=True):
            if finished.path.exists():  # an earlier attempt may have moved it
                self._bring(finished.path, temporary)
        log = self._log(partition)
        self._write(f"{log}.new", _written(mark, moves))
        self._rename(f"{log}.new", log)
        self._finish(moves)

    def recover(self, partition: TopicPartition) -> Mark | None:
        log = self._log(partition)
        content = self._read(log)
        if content is None:
            offset = self._offset_by_names(partition)
            return Mark(offset) if offset is not None else None
        logged = _parsed(log, content)
        self._finish(logged["files"])
        return Mark(logged["next_offset"], logged["last_timestamp_ms"])

    def _finish(self, moves: Iterable[Sequence[str]]) -> None:
        for temporary, name in moves:
            try:
                self._rename(temporary, name)
            except FileNotFoundError:
                continue  # done before the interruption

    def _offset_by_names(self, partition: TopicPartition) -> int | None:
        """The offset after the highest last offset in the names of files that another sink wrote."""
        if not self.names_end_offset:
            return None
        folder = "/".join(filter(None, [self._topics_dir, partition.topic]))
        matches = (_NAME.fullmatch(name.rpartition("/")[2]) for name in self.names(folder, "/"))
        of_partition = [match for match in matches if match and (match[1], int(match[2])) == partition]
        return max((int(match[4]) for match in of_partition), default=-1) + 1 or None

    def _log(self, partition: TopicPartition) -> str:
        return f"{self._logs_dir}/{partition.topic}/{partition.partition}/log.json"

    def _temporary(self, name: str) -> str:
        below = self._inside(name).removeprefix(f"{self._topics_dir}/")
        return "/".join(filter(None, [self._topics_dir, self.temporary_dir, f"{below}_tmp"]))

    def _inside(self, name: str) -> str:
        """The name as a path below the root. Raises ConnectError for one that leads out of it."""
        path = PurePosixPath(name.lstrip("/"))
        if ".." in path.parts:
            raise ConnectError(f"{name!r} leads out of the store: a value that names a folder holds '..'")
        return str(path)


def _written(mark: Mark, moves: Sequence[Sequence[str]]) -> bytes:
    logged = {"format": 1, "next_offset": mark.next_offset, "last_timestamp_ms": mark.last_timestamp_ms, "files": moves}
    return json.dumps(logged).encode()


def _parsed(log: str, content: bytes) -> Any:
    try:
        logged = json.loads(content)
        if logged["format"] == 1 and isinstance(logged["next_offset"], int) and isinstance(logged["files"], list):
            return {"last_timestamp_ms": None, **logged}
        shown = f"format {logged['format']}"
    except (ValueError, KeyError, TypeError) as error:
        shown = str(error)
    raise ConnectError(
        f"{log} is not a commit log of this sink ({shown}); move it away to go on from the group's offset"
    )
