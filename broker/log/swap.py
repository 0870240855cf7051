"""Replaces segments by the output of their compaction.

Each group of segments goes through four steps: its ``.cleaned`` file is renamed to ``.swap``; the directory is synced;
the old files are set aside and the new one takes their name; the directory is synced. A crash before the first step
loses the new file. After a crash behind the second step recovery completes the rest. In between, either can happen. The
groups are swapped one by one, oldest first: a tombstone must not disappear before the records it deletes.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from broker.errors import KafkaStorageError
from broker.log.compaction_plan import CleanedGroup, Compaction
from broker.log.files import storage_errors, sync_directory
from broker.log.partition import PartitionLog
from broker.log.segment import Segment, file_name, set_aside

__all__ = ["Swap", "finish_swap"]

_SUFFIXES: Final = (".index", ".timeindex", ".log")
"""The log comes last: while its ``.swap`` file exists, the work is unfinished."""


class Swap:
    """Used on the log's thread. Iterating yields functions that wait for the disk: call each, in any thread, before
    continuing.

    Raises KafkaStorageError. None of the steps takes long: ``Upkeep.bury`` frees large files later.
    """

    def __init__(self, log: PartitionLog, done: Compaction) -> None:
        self._log = log
        self._done = done
        self._directory = log.directory
        self._what = f"finish the compaction of {log.topic}-{log.partition}"
        self._marked: int | None = None
        """The group whose ``.swap`` files may still be discarded, because no old files were removed for them yet."""
        self.is_done = False
        """False at the end if the log has changed since the compaction read it; the rest of the output is then
        discarded.
        """

    def __iter__(self) -> Iterator[Callable[[], None]]:
        log, done = self._log, self._done
        try:
            for group in done.groups:
                with storage_errors(self._what):
                    old = self._replaced(group)
                    if not old or (group.has_file and not self._mark(group.replaced[0])):
                        return
                if group.has_file:
                    self._marked = group.replaced[0]
                    yield self._sync
                    if self._replaced(group) != old:
                        return
                self._marked = None
                try:
                    with storage_errors(self._what):
                        self._exchange(group, old)
                except KafkaStorageError as error:
                    # Some of it may be done, and the rest must follow, as after a crash.
                    raise log.flusher.damaged(error.message) from error
                yield self._sync
            log.first_dirty_offset = max(log.first_dirty_offset, done.clean_until)
            self.is_done = True
        finally:
            if not self.is_done:
                self._discard()

    def _replaced(self, group: CleanedGroup) -> Sequence[Segment]:
        """The segments that the group was made from; empty if they are not all present, closed and unchanged."""
        if self._log.is_retired or self._log.directory != self._directory:
            return ()
        segments = self._log.segments.snapshot()
        first = bisect_left(segments, group.replaced[0], key=lambda segment: segment.base_offset)
        behind = first + len(group.replaced)
        old = segments[first:behind]
        is_same = tuple(segment.base_offset for segment in old) == group.replaced and behind < len(segments)
        return old if is_same and segments[behind].base_offset == group.next_offset else ()

    def _mark(self, base_offset: int) -> bool:
        """Rename the new file to ``.swap``. False if it is missing: a repair of the log in between removes it."""
        path = self._directory / f"{file_name(base_offset, '.log')}.cleaned"
        if not path.exists():
            return False
        for suffix in _SUFFIXES:
            cleaned = self._directory / f"{file_name(base_offset, suffix)}.cleaned"
            if cleaned.exists():
                cleaned.replace(cleaned.with_suffix(".swap"))
        return True

    def _sync(self) -> None:
        with storage_errors(self._what):
            try:
                sync_directory(self._directory)
            except FileNotFoundError:
                # Deleted in between, or moved away.
                if not self._log.is_retired and self._log.directory == self._directory:
                    raise

    def _exchange(self, group: CleanedGroup, old: Sequence[Segment]) -> None:
        log, base_offset = self._log, group.replaced[0]
        for segment in old:
            segment.delete(log.bury)
        kept: list[Segment] = []
        if group.has_file:
            _put_in_place(self._directory, base_offset)
            kept = [Segment(self._directory, base_offset, old[0].index_interval_bytes, log.upkeep.open_files)]
            kept[0].load_summary(group.next_offset)
            kept[0].release()
        log.segments.exchange(old, kept)
        # Nothing remains of transactions whose markers were between these offsets.
        log.aborted = [
            transaction for transaction in log.aborted if not base_offset <= transaction.last_offset < group.next_offset
        ]

    def _discard(self) -> None:
        """Remove the files that were not swapped in."""
        names = [path.name for path in self._directory.glob("*.cleaned")]
        if self._marked is not None:
            names += [f"{file_name(self._marked, suffix)}.swap" for suffix in reversed(_SUFFIXES)]
        for name in names:
            with contextlib.suppress(OSError):
                self._log.bury(set_aside(self._directory / name))


def _put_in_place(directory: Path, base_offset: int) -> None:
    for suffix in _SUFFIXES:
        swap = directory / f"{file_name(base_offset, suffix)}.swap"
        if swap.exists():
            swap.replace(swap.with_suffix(""))


def finish_swap(directory: Path, base_offset: int, replaced: Sequence[int]) -> None:
    """After a crash: replace the segments with the ``replaced`` base offsets by a ``.swap`` segment. Raises OSError."""
    for base in replaced:
        for suffix in _SUFFIXES:
            (directory / file_name(base, suffix)).unlink(missing_ok=True)
    _put_in_place(directory, base_offset)
    sync_directory(directory)
