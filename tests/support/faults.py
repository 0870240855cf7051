"""A disk that fails where a test wants: each write, flush, rename and so on below a directory is a step that can fail.

It is placed between this process and the operating system, so it covers all code. Reads never fail.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import fcntl
import io
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = ["FLUSHES", "WRITES", "CallFaults", "Fault", "FaultyDisk"]

_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
FLUSHES: Final = frozenset({"fsync", "fdatasync"})
WRITES: Final = frozenset({"pwrite", "pwritev", "write"})


class CallFaults:
    """The fault for the n-th call of a function, from 0 on: (name, n, fault) each. For doubles of network services."""

    def __init__(self, faults: Iterable[tuple[str, int, str]] = ()) -> None:
        self._faults = {(call, number): fault for call, number, fault in faults}
        self._calls: Counter[str] = Counter()

    def next(self, call: str) -> str | None:
        """The fault of this call; None where it is to succeed."""
        number = self._calls[call]
        self._calls[call] += 1
        return self._faults.get((call, number))


class Fault(NamedTuple):
    """The coming steps that fail; see ``FaultyDisk.fail``."""

    first: int
    count: int
    kinds: frozenset[str] | None
    half: bool


class FaultyDisk:
    """The files below ``root``, while the context lasts. For one process, all its threads.

    ``fail`` says which of the coming steps fail; ``steps`` has the names of those that were taken since, with the files' names.
    """

    def __init__(self, root: Path) -> None:
        self._root = f"{root.resolve()}{os.sep}"
        self._lock = threading.Lock()
        self._first: int | None = None
        self._last = 0
        self._kinds: frozenset[str] | None = None
        self._half = False
        self._errno = errno.EIO
        self._mine = threading.local()
        self.steps: list[str] = []
        self.failed: Counter[str] = Counter()

    def fail(
        self,
        first: int = 0,
        count: int = sys.maxsize,
        *,
        kinds: frozenset[str] | None = None,
        half: bool = False,
        error: int = errno.EIO,
    ) -> None:
        """Let ``count`` steps fail, from the ``first`` of those to come (of these ``kinds``) on; a write may do ``half`` of it."""
        with self._lock:
            self.steps, self.failed = [], Counter()
            self._first, self._last, self._kinds, self._half, self._errno = first, first + count - 1, kinds, half, error

    def arm(self, fault: Fault | None) -> None:
        """``fail`` as this one says; None changes nothing."""
        if fault is not None:
            self.fail(fault.first, fault.count, kinds=fault.kinds, half=fault.half)

    @property
    def is_armed(self) -> bool:
        """Whether steps may have failed, or may fail, since the last repair."""
        return self._first is not None

    def mend(self) -> list[str]:
        """End all faults. Returns the steps taken meanwhile."""
        with self._lock:
            self._first = None
            taken, self.steps = self.steps, []
            return taken

    def __enter__(self) -> FaultyDisk:
        self._real: dict[str, Any] = {name: getattr(os, name) for name in _OS if hasattr(os, name)}
        self._real_open = io.open
        for name, real in self._real.items():
            setattr(os, name, _OS[name](self, name, real))
        io.open = builtins.open = self._open_file  # type: ignore[assignment]
        return self

    def __exit__(self, *_: object) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)
        io.open = builtins.open = self._real_open

    # Steps

    def take(self, kind: str, path: str) -> bool:
        """Take one more step.

        Returns whether only half of it is to be done. Raises OSError where it fails and cannot be done by half.
        """
        with self._lock:
            if self._first is None or (self._kinds is not None and kind not in self._kinds):
                return False
            number = len(self.steps)
            self.steps.append(f"{kind} {path.removeprefix(self._root)}")
            if not self._first <= number <= self._last:
                return False
            self.failed[kind] += 1
            if self._half and kind in WRITES:
                return True
            raise self.error()

    def error(self) -> OSError:
        return OSError(self._errno, os.strerror(self._errno))

    def inside(self, path: Any) -> str | None:
        """The whole path, if it is below the root."""
        if not isinstance(path, str | os.PathLike):
            return None
        text = os.path.abspath(os.fspath(path))
        return text if isinstance(text, str) and text.startswith(self._root) else None

    def path_of(self, descriptor: int) -> str | None:
        """The path of an open file below the root."""
        try:
            if sys.platform == "darwin":
                text = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0").decode()
            else:
                text = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            return None
        text = text.removesuffix(" (deleted)")
        return text if f"{text}{os.sep}".startswith(self._root) else None

    def _open_file(self, file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        text = self.inside(file) if set(mode) & set("wax+") else None
        if text is None:
            return self._real_open(file, mode, *arguments, **named)
        self.take("open", text)
        # writes through it call no function of os, so it is replaced by an unbuffered file of our own
        made = self._real_open(file, mode, *arguments, **named)
        return _Written(self, text, made) if "b" in mode else made


class _Written:
    """A file that Python writes: each write is a step."""

    def __init__(self, disk: FaultyDisk, path: str, file: Any) -> None:
        self._disk, self._path, self._file = disk, path, file

    def write(self, data: Any) -> int:
        if self._disk.take("write", self._path):
            self._file.write(bytes(data)[: len(data) // 2])
            self._file.flush()
            raise self._disk.error()
        return int(self._file.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _Written:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


_Make = Callable[[FaultyDisk, str, Any], Any]


def _opening(disk: FaultyDisk, _: str, real: Any) -> Any:
    def opened(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        text = disk.inside(path) if flags & _WRITING else None
        if text is not None and (flags & (os.O_CREAT | os.O_TRUNC)):
            disk.take("open", text)
        return int(real(path, flags, *arguments, **named))

    return opened


def _by_descriptor(disk: FaultyDisk, name: str, real: Any) -> Any:
    def done(descriptor: Any, *arguments: Any) -> Any:
        text = disk.path_of(descriptor) if isinstance(descriptor, int) else disk.inside(descriptor)
        if text is not None and disk.take(name, text):
            _write_half(descriptor, *arguments)
            raise disk.error()
        return real(descriptor, *arguments)

    def _write_half(descriptor: int, data: Any, *position: int) -> None:
        whole = b"".join(data) if isinstance(data, list | tuple) else bytes(data)
        half = whole[: len(whole) // 2]
        with contextlib.suppress(OSError):
            real(descriptor, [half] if name == "pwritev" else half, *position)

    return done


def _by_path(disk: FaultyDisk, name: str, real: Any) -> Any:
    def done(path: Any, *arguments: Any, **named: Any) -> Any:
        text = disk.inside(path)
        if text is not None:
            disk.take(name, text)
        return real(path, *arguments, **named)

    return done


_OS: Final[dict[str, _Make]] = {
    "open": _opening,
    **dict.fromkeys(
        ("write", "pwrite", "pwritev", "ftruncate", "truncate", "fsync", "fdatasync", "posix_fallocate"), _by_descriptor
    ),
    **dict.fromkeys(("rename", "replace", "unlink", "remove", "mkdir", "rmdir"), _by_path),
}
"""Functions of ``os`` that change a disk. Some systems do not have all of them."""
