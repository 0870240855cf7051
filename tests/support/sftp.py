"""An SFTP server in a thread of the test's process: asyncssh's, with a key of its own and files in a folder."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import asyncssh

__all__ = ["SftpServer", "sftp_server"]

PASSWORD = "secret of user"


@cache
def _user_key() -> tuple[bytes, bytes]:
    """The private key, whose passphrase is ``phrase``, and the public one: it takes a second to hash the passphrase."""
    made = asyncssh.generate_private_key("ssh-ed25519")
    return made.export_private_key(passphrase="phrase"), made.export_public_key()


class _Logins(asyncssh.SSHServer):
    def __init__(self, connections: list[asyncssh.SSHServerConnection]) -> None:
        self._connections = connections

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connections.append(conn)

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("user", PASSWORD)


class _Noting(asyncssh.SFTPServer):
    """Notes which files are written to the disk, and what is renamed."""

    def __init__(self, channel: Any, chroot: str, notes: list[tuple[str, str]], failing: set[int]) -> None:
        super().__init__(channel, chroot=chroot)
        self._notes, self._root, self._failing = notes, chroot, failing

    def write(self, file_obj: object, offset: int, data: bytes) -> Any:
        if offset in self._failing:
            self._failing.remove(offset)
            raise asyncssh.SFTPFailure("this write fails")
        return super().write(file_obj, offset, data)

    def fsync(self, file_obj: object) -> Any:
        path = Path(f"/proc/self/fd/{file_obj.fileno()}").readlink()  # type: ignore[attr-defined]
        self._notes.append(("fsync", f"/{path.relative_to(self._root)}"))
        return super().fsync(file_obj)

    def posix_rename(self, oldpath: bytes, newpath: bytes) -> Any:
        self._notes += [("from", oldpath.decode()), ("to", newpath.decode())]
        return super().posix_rename(oldpath, newpath)


class _PlainRenames(asyncssh.SFTPServer):
    """Has no posix-rename. Of its renames those fail for which ``refuses`` of the old and the new name is true."""

    def __init__(self, channel: Any, chroot: str, refuses: Callable[[str, str], bool]) -> None:
        super().__init__(channel, chroot=chroot)
        self._refuses = refuses

    def posix_rename(self, oldpath: bytes, newpath: bytes) -> Any:
        raise asyncssh.SFTPOpUnsupported("no posix-rename here")

    def rename(self, oldpath: bytes, newpath: bytes) -> Any:
        if self._refuses(oldpath.decode(), newpath.decode()):
            raise asyncssh.SFTPFailure("not now")
        return super().rename(oldpath, newpath)


class SftpServer:
    """``root`` has the files; the server shows it as ``/``. With ``refuses`` it can't rename over a file that is there."""

    def __init__(self, folder: Path, refuses: Callable[[str, str], bool] | None = None) -> None:
        self._refuses = refuses
        self.notes: list[tuple[str, str]] = []
        """``fsync``, ``from`` and ``to``, each with a path, in their order; nothing with ``refuses``."""
        self.failing: set[int] = set()
        """The positions in a file at which the next write fails, once each."""
        self.root = folder / "files"
        self.root.mkdir(parents=True)
        self.known_hosts, self.key = folder / "known_hosts", folder / "id_ed25519"
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        private, public = _user_key()
        self.key.write_bytes(private)
        self._authorized = asyncssh.import_authorized_keys(public.decode())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sftp")
        self._thread.start()
        self.port = 0
        self._connections: list[asyncssh.SSHServerConnection] = []
        self.listen()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {self._host_key.export_public_key().decode().strip()}\n")

    def listen(self) -> None:
        async def listening() -> asyncssh.SSHAcceptor:
            return await asyncssh.listen(
                "127.0.0.1",
                self.port,
                server_factory=lambda: _Logins(self._connections),
                server_host_keys=[self._host_key],
                authorized_client_keys=self._authorized,
                sftp_factory=self._session,
            )

        self._server = self._on_loop(listening())
        self.port = self._server.get_port()

    def _session(self, channel: Any) -> asyncssh.SFTPServer:
        if self._refuses is None:
            return _Noting(channel, str(self.root), self.notes, self.failing)
        return _PlainRenames(channel, str(self.root), self._refuses)

    def _on_loop(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def drop(self) -> None:
        """End the server and all connections."""

        async def closed() -> None:
            self._server.close()
            while self._connections:
                connection = self._connections.pop()
                connection.abort()
                await connection.wait_closed()
            await self._server.wait_closed()

        self._on_loop(closed())

    @property
    def url(self) -> str:
        return f"sftp://user@127.0.0.1:{self.port}"

    @property
    def access(self) -> dict[str, str]:
        return {"sftp.password": PASSWORD, "sftp.known.hosts": str(self.known_hosts)}

    def stop(self) -> None:
        self.drop()

        async def ended() -> None:
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self._on_loop(ended())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


@contextmanager
def sftp_server(folder: Path, refuses: Callable[[str, str], bool] | None = None) -> Iterator[SftpServer]:
    server = SftpServer(folder, refuses)
    try:
        yield server
    finally:
        server.stop()
