"""Why rows are not in a table yet. All may succeed later:

CommitConflict   another commit came first, nothing was written: the same again, on top of it
OffsetsMoved     another task has moved the offsets: rows are delivered anew from there
FilesIncomplete  a file could not be written: its rows are delivered anew
"""

from __future__ import annotations

from connect.api import RetriableConnectError

__all__ = ["CommitConflict", "FilesIncomplete", "OffsetsMoved"]


class CommitConflict(RetriableConnectError):
    """Another commit came first: nothing was written."""


class FilesIncomplete(RetriableConnectError):
    """A file could not be written: rows that it should have are delivered again."""


class OffsetsMoved(RetriableConnectError):
    """The table has other offsets than this task knows: rows have to be delivered anew from there."""
