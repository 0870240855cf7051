"""paramiko's client with writes whose answers are looked at, and OpenSSH's extension that writes a file to the server's disk."""

from __future__ import annotations

from typing import Any, BinaryIO, Final

from paramiko import SFTPClient
from paramiko.sftp import CMD_EXTENDED, CMD_VERSION, CMD_WRITE, int64

__all__ = ["SyncingClient"]

_SYNC: Final = b"fsync@openssh.com"
_BLOCK_BYTES: Final = 32 * 1024
_MOST_UNDER_WAY: Final = 64
"""Writes before their answers are waited for."""


class SyncingClient(SFTPClient):
    """Raises what paramiko raises."""

    syncs = False
    """Whether the server says that it has the extension."""

    def _read_packet(self) -> tuple[int, bytes]:
        kind, data = super()._read_packet()  # type: ignore[misc]
        if kind == CMD_VERSION:
            self.syncs = _SYNC in data
        return kind, data

    def write(self, path: str, source: BinaryIO) -> None:
        """Write a file; where the server can, it is on its disk then. Raises the error of the first write that the server refuses.

        paramiko's own pipelined writes (``putfo``) do not look at most answers: a write that failed left a gap in a file of the
        right size.
        """
        answers, size, under_way = _Answers(self), 0, 0
        with self.open(path, "wb") as file:
            while block := source.read(_BLOCK_BYTES):
                self._async_request(answers, CMD_WRITE, file.handle, int64(size), block)  # type: ignore[attr-defined]
                size, under_way = size + len(block), under_way + 1
                if under_way == _MOST_UNDER_WAY:
                    self._finish_responses(answers)  # type: ignore[attr-defined]
                    under_way = 0
            self._finish_responses(answers)  # type: ignore[attr-defined]
            self._sync(file)
        if (there := self.stat(path).st_size) != size:
            raise OSError(f"the server has {there} of {size} bytes")

    def sync(self, path: str) -> None:
        """Write a file that was renamed to the disk: file systems with a journal write its name along."""
        if self.syncs:
            with self.open(path, "rb") as file:
                self._sync(file)

    def _sync(self, file: Any) -> None:
        if self.syncs:
            file.flush()
            self._request(CMD_EXTENDED, _SYNC, file.handle)  # type: ignore[attr-defined]


class _Answers:
    """The answers to writes that are under way, as paramiko hands them to one of its files."""

    def __init__(self, client: SyncingClient) -> None:
        self._client = client
        self._error: Exception | None = None

    def _async_response(self, kind: int, message: Any, number: int) -> None:
        del kind, number
        try:
            self._client._convert_status(message)  # type: ignore[attr-defined]
        except (OSError, EOFError) as error:
            self._error = error

    def _check_exception(self) -> None:
        if self._error is not None:
            raise self._error
