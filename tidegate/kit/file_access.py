"""Which files this process may open for somebody else: a limit that holds for all Python code in it, once it is set.

A task host that works for the owner of a connector limits itself so (``connect.worker``). The limit is an audit hook (PEP 578), which
Python asks before it opens, lists, changes or removes a file, or starts a program. It keeps a configuration from naming files that its
owner has no right to. It is no cage for code: a plugin that means harm can get around it, and libraries that open files by themselves
(DuckDB, pyarrow) are not heard, so their callers ask ``require_file``.
"""

from __future__ import annotations

import errno
import os
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from tidegate.kit.users import PlatformUser, Right

__all__ = ["files_are_limited", "limit_files", "require_file", "trusted_files"]

_PACKAGES: Final = ("broker", "connect", "connectors", "events", "pyspark_tidegate", "registry", "tidegate")
_SYSTEM_FOLDERS: Final = (
    "/bin",
    "/etc/ca-certificates",
    "/etc/pki",
    "/etc/ssl",
    "/lib",
    "/lib64",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share",
)
_SYSTEM_FILES: Final = (
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/krb5.conf",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/version",
)
_OF_THIS_PROCESS: Final = ("cgroup", "fd", "io", "limits", "mountinfo", "stat", "statm", "status")
_CODE: Final = (".py", ".pyc", ".so", ".pyd", ".pth")
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES: Final = frozenset(
    {
        "os.chmod",
        "os.chown",
        "os.mkdir",
        "os.remove",
        "os.removexattr",
        "os.rmdir",
        "os.setxattr",
        "os.truncate",
        "os.utime",
    }
)
_LISTS: Final = frozenset({"os.listdir", "os.scandir"})
_LINKS: Final = frozenset({"os.link", "os.rename", "os.symlink"})
_PROGRAMS: Final = frozenset({"os.exec", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen"})
_HEARD: Final = _CHANGES | _LISTS | _LINKS | _PROGRAMS | {"open", "sqlite3.connect"}


class _Limit:
    """The policy. ``rights`` may be replaced at any time; all else is as it was when the limit was set."""

    def __init__(self, user: str, rights: Sequence[Right], *, readable: Iterable[Path], hidden: Iterable[Path]) -> None:
        self.user = PlatformUser(user, rights=tuple(rights))
        self._hidden = [_real(path) for path in hidden]
        self._scratch = _real(os.environ.get("TMPDIR", "/nonexistent"))
        packages = [Path(__file__).parent.parent.parent / name for name in _PACKAGES]
        folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values(), *packages]
        self._folders = tuple({_real(path) for path in (*_SYSTEM_FOLDERS, *folders, *site.getsitepackages())})
        self._files = {*_SYSTEM_FILES, *map(_real, _SYSTEM_FILES), *map(_real, readable)}
        self._files |= {f"/proc/{os.getpid()}/{name}" for name in _OF_THIS_PROCESS}
        self._code_folders = {_real(path or ".") for path in sys.path}
        self.trusted = threading.local()

    def require(self, path: Any, *, writing: bool) -> None:
        """Raises PermissionError where the user has no right to a file."""
        if path is None:
            path = "."
        if isinstance(path, int) or self._is_trusted:
            return
        name = _real(path)
        if not writing and name in self._files:
            return
        if not any(_below(name, folder) for folder in self._hidden):
            if _below(name, self._scratch) or (not writing and self._is_code(name)):
                return
            if self.user.may("write" if writing else "read", "file", name) and not (writing and self._is_in_code(name)):
                return
        verb = "write" if writing else "read"
        raise _refusal(
            f"{self.user.name}, the owner of the connector, has no right to {verb} file {name}; an administrator can give it "
            "(`tidegate users rights` sets all rights of a user)",
            name,
        )

    def _require_programs(self, program: str) -> None:
        if not self.user.is_admin and not self._is_trusted:
            raise _refusal(
                f"the connector of {self.user.name} starts a program ({program}), which reads any file that the worker may "
                "read: only the connectors of an admin may",
                program,
            )

    @property
    def _is_trusted(self) -> bool:
        return bool(getattr(self.trusted, "depth", None))

    def _is_in_code(self, name: str) -> bool:
        """Whether Python could import what is written there: that would be code with all rights of this process."""
        return any(_below(name, folder) for folder in (*self._folders, *self._code_folders))

    def _is_code(self, name: str) -> bool:
        if name in self._code_folders or any(_below(name, folder) for folder in self._folders):
            return True
        return name.endswith(_CODE) and any(_below(name, folder) for folder in self._code_folders)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The audit hook (https://docs.python.org/3/library/audit_events.html). Python calls it for all it does, so most is let by at once."""
        if event not in _HEARD:
            return
        if event == "open":
            path, _, flags = arguments
            self.require(path, writing=bool(flags & _WRITES))
        elif event in _LISTS:
            self.require(arguments[0], writing=False)
        elif event in _CHANGES:
            self.require(arguments[0], writing=True)
        elif event in _LINKS:
            for path in arguments[:2]:
                self.require(path, writing=True)
        elif event == "sqlite3.connect":
            name, _, query = os.fsdecode(arguments[0]).partition("?")
            if name not in ("", ":memory:"):
                read_only = name.startswith("file:") and "mode=ro" in query.split("&")
                self.require(unquote(name.removeprefix("file:").removeprefix("//")), writing=not read_only)
        elif event in _PROGRAMS:
            self._require_programs(os.fsdecode(arguments[0]) if arguments[0] else "a shell")


_limit: _Limit | None = None


def limit_files(
    user: str, rights: Sequence[Right], *, readable: Iterable[Path] = (), hidden: Iterable[Path] = ()
) -> Callable[[Sequence[Right]], None]:
    """Limit this process permanently to the files that a user has a right to. The returned function replaces the rights.

    Code and the system's files for all programs can be read as well, and TMPDIR is not limited. Files below a ``hidden`` folder
    cannot be opened whatever the rights say, except for ``readable`` files.
    """
    global _limit
    assert _limit is None, "the files of this process are limited already"
    limit = _limit = _Limit(user, rights, readable=readable, hidden=hidden)

    def replace(new: Sequence[Right]) -> None:
        limit.user = PlatformUser(user, rights=tuple(new))

    sys.addaudithook(limit.hook)
    return replace


def files_are_limited() -> bool:
    """Whether this process may open only what the owner of its connectors has a right to."""
    return _limit is not None


def require_file(path: str | os.PathLike[str], *, writing: bool = False) -> None:
    """To be called before a library that is not Python opens a file that a configuration names.

    Raises PermissionError where the process is limited and its user has no right to the file.
    """
    if _limit is not None:
        _limit.require(path, writing=writing)


@contextmanager
def trusted_files() -> Iterator[None]:
    """Within, this thread opens any file: for paths that the worker's own configuration allows."""
    limit = _limit
    if limit is None:
        yield
        return
    before: int = getattr(limit.trusted, "depth", None) or 0
    limit.trusted.depth = before + 1
    try:
        yield
    finally:
        limit.trusted.depth = before


def _real(path: Any) -> str:
    return os.path.realpath(os.fsdecode(path))


def _below(name: str, folder: str) -> bool:
    return name == folder or name.startswith(folder.rstrip("/") + "/")


def _refusal(message: str, name: str) -> PermissionError:
    return PermissionError(errno.EACCES, message, name)
