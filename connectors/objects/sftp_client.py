"""paramiko's client with OpenSSH's extension that writes a file to the server's disk, which paramiko does not have."""

from __future__ import annotations

from typing import Any, BinaryIO, Final

from paramiko import SFTPClient
from paramiko.sftp import CMD_EXTENDED, CMD_VERSION

__all__ = ["SyncingClient"]

_SYNC: Final = b"fsync@openssh.com"
_BLOCK_BYTES: Final = 32 * 1024


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
        """Write a file; where the server can, it is on its disk then."""
        size = 0
        with self.open(path, "wb") as file:
            file.set_pipelined(True)
            while block := source.read(_BLOCK_BYTES):
                file.write(block)
                size += len(block)
            self._sync(file)
        # answers to single writes are not waited for: only the size tells of one that failed
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
