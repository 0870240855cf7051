"""Files of an SFTP server: it and its client are the importers of paramiko."""

from __future__ import annotations

import errno
import io
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, cast
from urllib.parse import quote, unquote, urlsplit

from connect.api import (
    ConnectError,
    KeyType,
    MissingExtra,
    Password,
    Problem,
    RetriableConnectError,
    between,
    config,
    key,
    require_file,
)

if TYPE_CHECKING:
    from paramiko import PKey, SFTPClient, SFTPFile, SSHClient

    from connectors.objects.sftp_client import SyncingClient

__all__ = ["RemoteFile", "Sftp", "SftpKeys", "SftpServerKeys", "aside", "url_problems"]

_BLOCK_BYTES: Final = 1024 * 1024
_TIMEOUT_S: Final = 30.0
_SFTP: Final = "SFTP"


@config
class SftpKeys:
    """How to log in, in Confluent's words."""

    sftp_user: str = key("sftp.username", default="", doc="The user, if the URL names none.", group=_SFTP)
    sftp_password: Password = key("sftp.password", default=Password(""), doc="The password.", group=_SFTP)
    sftp_private_key: str = key(
        "tls.pemfile", default="", doc="A file with the private key of the user, as OpenSSH writes it.", group=_SFTP
    )
    sftp_passphrase: Password = key(
        "tls.passphrase", default=Password(""), doc="The passphrase of that key.", group=_SFTP
    )
    sftp_private_key_text: Password = key(
        "tls.private.key",
        default=Password(""),
        doc="Such a private key itself, in place of tls.pemfile; \\n and \\r\\n are ends of lines.",
        group=_SFTP,
    )
    sftp_known_hosts: str = key(
        "sftp.known.hosts",
        default="",
        doc="A file with the keys of servers, as `ssh-keyscan` writes it; by default ~/.ssh/known_hosts. A server that is not in "
        "it is refused.",
        group=_SFTP,
    )


def _no_kerberos(value: str) -> str | None:
    return "is not supported: log in with sftp.password or tls.pemfile" if value else None


@config
class SftpServerKeys:
    """Where the server is, in Confluent's words, and their keys that say nothing here."""

    sftp_host: str = key("sftp.host", default="localhost", doc="The server.", importance="high", group=_SFTP)
    sftp_port: int = key(
        "sftp.port", default=22, type=KeyType.INT, check=between(1, 65535), doc="The server's port.", group=_SFTP
    )
    sftp_public_key: str = key(
        "tls.public.key",
        default="",
        doc="Accepted for compatibility: the private key says it.",
        importance="low",
        group=_SFTP,
    )
    sftp_keytab: str = key(
        "kerberos.keytab.path",
        default="",
        check=_no_kerberos,
        doc="Logins by Kerberos are not supported.",
        importance="low",
        group=_SFTP,
    )
    sftp_principal: str = key(
        "kerberos.user.principal", default="", check=_no_kerberos, doc="Likewise.", importance="low", group=_SFTP
    )

    def url_of(self, path: str) -> str:
        """The URL of a path on the server; ``~`` begins one in the user's folder."""
        return f"sftp://{self.sftp_host}:{self.sftp_port}/{quote(path.lstrip('/'))}"


def url_problems(name: str, url: str | None) -> Iterator[Problem]:
    """Judge the value of a key that may be the URL of a folder on a server."""
    parts = urlsplit(url or "")
    if parts.scheme == "sftp" and parts.password:
        yield Problem(name, f"{name} has a password, which status and logs would show: set sftp.password")


class RemoteFile(NamedTuple):
    """``path`` is the whole path on the server."""

    path: str
    length: int
    modified_ms: int


class Sftp:
    """A server, connected at the first use and again after a lost connection. For use from one thread.

    Raises FileNotFoundError for a path that is not there, else ConnectError, or RetriableConnectError if a repeated call may
    succeed.
    """

    def __init__(self, url: str, keys: SftpKeys) -> None:
        """``url`` is ``sftp://user@host:port/path``."""
        parts = urlsplit(url)
        self.root = unquote(parts.path).rstrip("/")
        if self.root == "/~" or self.root.startswith("/~/"):  # as curl has it: in the folder of the user
            self.root = f".{self.root[2:]}"
        self._host, self._port = parts.hostname or "", parts.port or 22
        self._user = unquote(parts.username or "") or keys.sftp_user
        self.server = f"sftp://{parts.netloc}"
        self._keys = keys
        self._ssh: SSHClient | None = None
        self._client: SyncingClient | None = None

    def close(self) -> None:
        ssh, self._ssh, self._client = self._ssh, None, None
        if ssh is not None:
            with suppress(Exception):  # closing fails on a lost connection
                ssh.close()

    @contextmanager
    def errors(self, doing: str, path: str) -> Iterator[SyncingClient]:
        """The connection, and its errors as ours."""
        try:
            import paramiko
        except ImportError as error:
            raise MissingExtra(f"files of {self.server}", "sftp") from error
        what = f"cannot {doing} {self.server}{path}"
        try:
            yield self._connected()
        except (FileNotFoundError, ConnectError):
            raise
        except (paramiko.AuthenticationException, paramiko.BadHostKeyException) as error:
            self.close()
            raise ConnectError(f"{what}: {error}") from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            lost = isinstance(error, paramiko.SSHException | EOFError | ConnectionError | TimeoutError)
            if lost or error.errno is None:  # type: ignore[union-attr]
                self.close()
            unknown = "not found in known_hosts" in str(error)
            for_good = unknown or (isinstance(error, OSError) and error.errno in _FOR_GOOD)
            hint = f": write its key to {self._known_hosts}, with ssh-keyscan" if unknown else ""
            kind = ConnectError if for_good else RetriableConnectError
            raise kind(f"{what}: {str(error) or type(error).__name__}{hint}") from error

    @property
    def _known_hosts(self) -> Path:
        return Path(self._keys.sftp_known_hosts or "~/.ssh/known_hosts").expanduser()

    def _connected(self) -> SyncingClient:
        if self._client is None:
            import paramiko

            from connectors.objects.sftp_client import SyncingClient

            ssh = paramiko.SSHClient()
            ssh.set_missing_host_key_policy(paramiko.RejectPolicy())
            for file in (self._keys.sftp_known_hosts, self._keys.sftp_private_key):
                if file:
                    self._require(file)
            if self._known_hosts.is_file():
                ssh.load_host_keys(str(self._known_hosts))
            try:
                ssh.connect(
                    self._host,
                    self._port,
                    self._user or None,
                    self._keys.sftp_password.reveal() or None,
                    key_filename=self._keys.sftp_private_key or None,
                    pkey=self._private_key(),
                    passphrase=self._keys.sftp_passphrase.reveal() or None,
                    allow_agent=False,
                    look_for_keys=False,
                    timeout=_TIMEOUT_S,
                    banner_timeout=_TIMEOUT_S,
                    auth_timeout=_TIMEOUT_S,
                )
                transport = ssh.get_transport()
                client = None if transport is None else SyncingClient.from_transport(transport)
                if client is None:
                    raise EOFError
                channel = client.get_channel()
                if channel is not None:
                    channel.settimeout(_TIMEOUT_S)
            except BaseException:
                ssh.close()
                raise
            self._ssh, self._client = ssh, client
        return self._client

    def _private_key(self) -> PKey | None:
        import paramiko

        text = self._keys.sftp_private_key_text.reveal().replace("\\r\\n", "\n").replace("\\n", "\n").strip()
        if not text:
            return None
        passphrase = self._keys.sftp_passphrase.reveal() or None
        for kind in (paramiko.Ed25519Key, paramiko.RSAKey, paramiko.ECDSAKey):
            try:
                return kind.from_private_key(io.StringIO(f"{text}\n"), passphrase)
            except (paramiko.SSHException, ValueError):
                continue
        raise ConnectError("tls.private.key is no private key that can be read with tls.passphrase")

    def _require(self, file: str) -> None:
        try:
            require_file(file)
        except PermissionError as error:
            raise ConnectError(str(error.strerror)) from error
        if not Path(file).is_file():
            raise ConnectError(f"there is no file {file}")

    def list(self, folder: str, *, walks: bool) -> Iterator[RemoteFile]:
        """The files of a folder, with ``walks`` those of folders below too."""
        with self.errors("list", folder) as client:
            entries = client.listdir_attr(folder or "/")
        for entry in entries:
            path, mode = f"{folder}/{entry.filename}", entry.st_mode or 0
            if stat.S_ISREG(mode):
                yield RemoteFile(path, entry.st_size or 0, (entry.st_mtime or 0) * 1000)
            elif walks and stat.S_ISDIR(mode):
                yield from self.list(path, walks=True)

    def stat(self, path: str) -> RemoteFile:
        with self.errors("look at", path) as client:
            at = client.stat(path)
        return RemoteFile(path, at.st_size or 0, (at.st_mtime or 0) * 1000)

    @contextmanager
    def reading(self, path: str) -> Iterator[BinaryIO]:
        with self.errors("open", path) as client:
            file = client.open(path, "rb")
            size = file.stat().st_size or 0
        try:
            yield cast("BinaryIO", io.BufferedReader(_Remote(self, file, path, size), _BLOCK_BYTES))
        finally:
            with suppress(Exception):  # of a lost connection
                file.close()

    def write(self, path: str, source: BinaryIO) -> None:
        """Write a file in a folder that is made if it is missing; one of that name is replaced. It is on the server's disk then, where
        the server has OpenSSH's extension for that.
        """
        self.make_folders(path.rpartition("/")[0])
        with self.errors("write", path) as client:
            client.write(path, source)

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing one that is there, in one step where the server can.

        Elsewhere the file that is replaced has the name ``aside`` until the other has its name.
        """
        self.stat(old)
        self.make_folders(new.rpartition("/")[0])
        with self.errors("rename to", new) as client:
            try:
                client.posix_rename(old, new)
            except FileNotFoundError:
                raise
            except OSError as error:
                if error.errno is not None:
                    raise
                _replace(client, old, new)  # a server without OpenSSH's extension
            client.sync(new)

    def remove(self, path: str) -> None:
        with self.errors("delete", path) as client, suppress(FileNotFoundError):
            client.remove(path)

    def make_folders(self, folder: str) -> None:
        with self.errors("make folder", folder) as client:
            missing: list[str] = []
            while folder:
                try:
                    client.stat(folder)
                    break
                except FileNotFoundError:
                    missing.append(folder)
                    folder = folder.rpartition("/")[0]
            for each in reversed(missing):
                try:
                    client.mkdir(each)
                except OSError:
                    client.stat(each)  # another task was faster


def aside(path: str) -> str:
    """Where a file is while it is replaced in two steps."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.replaced"


def _replace(client: SFTPClient, old: str, new: str) -> None:
    with suppress(FileNotFoundError):
        client.stat(new)
        with suppress(FileNotFoundError):
            client.remove(aside(new))
        client.rename(new, aside(new))
    client.rename(old, new)
    with suppress(FileNotFoundError):
        client.remove(aside(new))


_FOR_GOOD: Final = frozenset({errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EROFS})


class _Remote(io.RawIOBase):
    """A file that is read in large blocks, each with many requests at once."""

    def __init__(self, sftp: Sftp, file: SFTPFile, path: str, size: int) -> None:
        self._sftp, self._file, self._path, self._size = sftp, file, path, size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        wanted = min(len(view), self._size - self._at, _BLOCK_BYTES)
        if wanted <= 0:
            return 0
        with self._sftp.errors("read", self._path):
            data = b"".join(self._file.readv([(self._at, wanted)]))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)
