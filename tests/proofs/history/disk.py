"""Power cuts and full disks: what a process has brought to the disk, and what the disk shows after the lights went out.

``watch`` stands between a process and its files: it notes, in a journal that outlives the process, every fsync and every change of
a directory. After a kill the page cache still has everything; ``cut_power`` takes away what no fsync covered: bytes behind the last
synced size of a file (cut, zeroed by the block, garbled, or spared), names that were made, changed or removed since the last
fsync of their directory. As POSIX has it, and stricter than most file systems are.
"""

from __future__ import annotations

import builtins
import errno
import io
import itertools
import json
import mmap
import os
import random
import shutil
import struct
import threading
import uuid
from pathlib import Path
from typing import Any

__all__ = ["Disk", "cut_power", "watch"]

_FULL_AT, _BROKEN_AT, _LEFT_AT = 0, 1, 8
_BLOCK = 512
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""Differs after each boot, and so after a power cut: it separates files from before the cut."""
_WRITING = os.O_WRONLY | os.O_RDWR


class Disk:
    """The disk of one data directory, seen from outside: fill it, break it, cut its power (with the process dead)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._control = folder / "control"
        if not self._control.exists():
            self._control.write_bytes(bytes(4096))
        with self._control.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 4096)

    def fill(self, left: int = 0) -> None:
        """From now on ``left`` more bytes can be written."""
        struct.pack_into("<q", self._shared, _LEFT_AT, left)
        self._shared[_FULL_AT] = 1

    def break_flushes(self) -> None:
        """From now on fsync fails with EIO."""
        self._shared[_BROKEN_AT] = 1

    def mend(self) -> None:
        self._shared[_FULL_AT] = self._shared[_BROKEN_AT] = 0

    def cut_power(self, root: Path, chance: random.Random) -> list[str]:
        return cut_power(root, self.folder / "journal", chance)


class _Watch:
    def __init__(self, root: Path, folder: Path) -> None:
        self.root = f"{root.resolve()}{os.sep}"
        self._backups = folder / "backups"
        self._backups.mkdir(parents=True, exist_ok=True)
        self._numbers = itertools.count()
        self._journal = os.open(folder / "journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        with (folder / "control").open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 4096)
        self._lock = threading.Lock()
        self.os_write, self.os_link, self.os_stat = os.write, os.link, os.stat

    def note(self, **entry: Any) -> None:
        self.os_write(self._journal, json.dumps(entry).encode() + b"\n")

    def inside(self, path: Any) -> str | None:
        """The whole path if it is below the root."""
        if not isinstance(path, str | os.PathLike):
            return None
        text = os.path.abspath(os.fspath(path))
        return text if isinstance(text, str) and text.startswith(self.root) else None

    def at(self, path: str) -> tuple[int, str]:
        """The directory, as its inode, and the name in it."""
        parent, name = os.path.split(path)
        return self.os_stat(parent).st_ino, name

    def backup(self, path: str) -> str | None:
        """Keep what is at ``path`` by another name, for a directory change that the power cut takes back."""
        if not os.path.isfile(path):
            return None
        kept = str(self._backups / f"{os.getpid()}-{next(self._numbers)}")
        self.os_link(path, kept)
        return kept

    def room(self, size: int) -> int:
        """How much of ``size`` fits on the disk; raises ENOSPC."""
        if not self._shared[_FULL_AT]:
            return size
        with self._lock:
            (left,) = struct.unpack_from("<q", self._shared, _LEFT_AT)
            if size and left <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            taken = min(size, left)
            struct.pack_into("<q", self._shared, _LEFT_AT, left - taken)
            return taken

    def check_flush(self) -> None:
        if self._shared[_BROKEN_AT]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def watch(root: Path, folder: Path) -> None:
    """Watch this process's files below ``root`` until it ends. Call it before the process opens any."""
    seen = _Watch(root, folder)
    real = {name: getattr(os, name) for name in ("open", "pwrite", "pwritev", "ftruncate", "fsync", "fdatasync")}
    real |= {name: getattr(os, name) for name in ("rename", "replace", "unlink", "remove", "mkdir")}
    real_open = io.open
    boot_id = folder / "boot_id"
    if not boot_id.exists():
        boot_id.write_text(f"{uuid.uuid4()}\n")

    def opened(path: str, descriptor: int, existed: bool, truncated: bool) -> None:
        status = os.fstat(descriptor)
        if not existed:
            directory, name = seen.at(path)
            seen.note(op="create", dir=directory, name=name, ino=status.st_ino)
        elif truncated:
            seen.note(op="emptied", ino=status.st_ino)
        else:
            seen.note(op="open", ino=status.st_ino, size=status.st_size)

    def os_open(path, flags, mode=0o777, *, dir_fd=None):
        text = seen.inside(path) if dir_fd is None and flags & _WRITING else None
        if text is None:
            return real["open"](path, flags, mode, dir_fd=dir_fd)
        existed = os.path.exists(text)
        if not existed:
            seen.room(1)
        descriptor = real["open"](path, flags, mode)
        opened(text, descriptor, existed, bool(flags & os.O_TRUNC))
        return descriptor

    def open_file(file, mode="r", *arguments, **named):
        if str(file) == _BOOT_ID:
            file = boot_id
        text = seen.inside(file) if set(mode) & set("wax+") else None
        if text is None:
            return real_open(file, mode, *arguments, **named)
        seen.room(1)
        existed = os.path.exists(text)
        made = real_open(file, mode, *arguments, **named)
        opened(text, made.fileno(), existed, "w" in mode)
        return made

    def overwriting(descriptor: int, position: int, length: int) -> None:
        status = os.fstat(descriptor)
        if position < status.st_size:
            seen.note(op="dirty", ino=status.st_ino, start=position, end=position + length)

    def pwrite(descriptor, data, position):
        overwriting(descriptor, position, len(data))
        return real["pwrite"](descriptor, memoryview(data)[: seen.room(len(data))], position)

    def pwritev(descriptor, buffers, position, *flags):
        total = sum(map(len, buffers))
        overwriting(descriptor, position, total)
        room = seen.room(total)
        if room < total:
            return real["pwrite"](descriptor, b"".join(buffers)[:room], position)
        return real["pwritev"](descriptor, buffers, position, *flags)

    def ftruncate(descriptor, length):
        real["ftruncate"](descriptor, length)
        seen.note(op="truncate", ino=os.fstat(descriptor).st_ino, size=length)

    def syncing(name):
        def sync(descriptor):
            status = os.fstat(descriptor)
            seen.check_flush()
            real[name](descriptor)
            seen.note(op="sync", ino=status.st_ino, size=status.st_size)

        return sync

    def renaming(name):
        def rename(source, target, *, src_dir_fd=None, dst_dir_fd=None):
            old, new = seen.inside(source), seen.inside(target)
            if old is None or new is None or src_dir_fd is not None or dst_dir_fd is not None:
                return real[name](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            backup, ino = seen.backup(new), os.stat(old).st_ino
            real[name](source, target)
            (before, was), (after, now) = seen.at(old), seen.at(new)
            if before == after:
                seen.note(op="rename", dir=after, old=was, name=now, backup=backup, ino=ino)
            return None

        return rename

    def removing(name):
        def remove(path, *, dir_fd=None):
            text = seen.inside(path) if dir_fd is None else None
            if text is None:
                return real[name](path, dir_fd=dir_fd)
            backup = seen.backup(text)
            directory, last = seen.at(text)
            real[name](path)
            seen.note(op="remove", dir=directory, name=last, backup=backup)
            return None

        return remove

    def mkdir(path, mode=0o777, *, dir_fd=None):
        real["mkdir"](path, mode, dir_fd=dir_fd)
        text = seen.inside(path) if dir_fd is None else None
        if text is not None:
            directory, name = seen.at(text)
            seen.note(op="mkdir", dir=directory, name=name)

    os.open, os.pwrite, os.pwritev, os.ftruncate, os.mkdir = os_open, pwrite, pwritev, ftruncate, mkdir
    os.fsync, os.fdatasync = syncing("fsync"), syncing("fdatasync")
    os.rename, os.replace = renaming("rename"), renaming("replace")
    os.unlink, os.remove = removing("unlink"), removing("remove")
    io.open = builtins.open = open_file  # type: ignore[assignment]


def cut_power(root: Path, journal: Path, chance: random.Random) -> list[str]:
    """Make of the files below ``root`` what a power cut may leave; what was done, in words. Everything is on the disk after."""
    durable: dict[int, int] = {}
    dirty: dict[int, list[tuple[int, int]]] = {}
    changes: dict[int, list[dict[str, Any]]] = {}
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        entry = json.loads(line)
        ino = entry.get("ino", -1)
        match entry["op"]:
            case "create" | "emptied":
                durable[ino] = 0
                dirty.pop(ino, None)
            case "open":
                durable.setdefault(ino, entry["size"])
            case "dirty":
                dirty.setdefault(ino, []).append((entry["start"], entry["end"]))
            case "truncate":
                durable[ino] = min(durable.get(ino, entry["size"]), entry["size"])
            case "sync":
                durable[ino] = max(durable.get(ino, 0), entry["size"])
                dirty.pop(ino, None)
                changes.pop(ino, None)
        if "dir" in entry:
            changes.setdefault(entry["dir"], []).append(entry)
    done = _damage_files(root, durable, dirty, chance) + _undo_changes(root, changes, chance)
    journal.write_bytes(b"")
    (journal.parent / "boot_id").unlink(missing_ok=True)
    shutil.rmtree(journal.parent / "backups", ignore_errors=True)
    return done


def _damage_files(
    root: Path, durable: dict[int, int], dirty: dict[int, list[tuple[int, int]]], chance: random.Random
) -> list[str]:
    done = []
    for path in sorted(root.rglob("*")):
        if not path.is_file():
            continue
        status = path.stat()
        ino, size = status.st_ino, status.st_size
        lost = [(durable.get(ino, size), size)] if durable.get(ino, size) < size else []
        for start, end in [*lost, *((s, min(e, size)) for s, e in dirty.get(ino, ()))]:
            if start < end:
                what = _damage(path, start, end, chance, may_cut=end == size)
                done.append(f"{path.relative_to(root)}: {what} of bytes {start} to {end}")
    return done


def _damage(path: Path, start: int, end: int, chance: random.Random, *, may_cut: bool) -> str:
    """Damage a file: in a log any byte may be lost, in other files whole blocks, since no code promises to read those
    byte by byte.
    """
    kind = chance.choices(["cut all", "cut a part", "zeroed blocks", "garbled a part", "spared"], [3, 3, 2, 1, 1])[0]
    first = chance.randrange(start, end)
    if path.suffix != ".log":
        kind = kind.replace("garbled a part", "zeroed blocks")
        first = max(start, first - first % _BLOCK)
    with path.open("r+b") as file:
        if kind.startswith("cut") and may_cut:
            file.truncate(start if kind == "cut all" else first)
        elif kind == "zeroed blocks":
            for block in range(start - start % _BLOCK, end, _BLOCK):
                if chance.random() < 0.5:
                    file.seek(max(block, start))
                    file.write(bytes(min(block + _BLOCK, end) - max(block, start)))
        elif kind == "garbled a part":
            file.seek(first)
            file.write(chance.randbytes(end - first))
    return kind


def _undo_changes(root: Path, changes: dict[int, list[dict[str, Any]]], chance: random.Random) -> list[str]:
    """Take back the latest changes of each directory, as many as chance says, the deepest directories first."""
    done = []
    folders = {path.stat().st_ino: path for path in [root, *root.rglob("*")] if path.is_dir()}
    known = [(folders[ino], entries) for ino, entries in changes.items() if ino in folders]
    for folder, entries in sorted(known, key=lambda pair: -len(pair[0].parts)):
        for entry in reversed(entries[chance.randint(0, len(entries)) :]):
            if _undo(folder, entry):
                done.append(f"{(folder / entry['name']).relative_to(root)}: {entry['op']} taken back")
    return done


def _undo(folder: Path, entry: dict[str, Any]) -> bool:
    path = folder / entry["name"]
    backup = entry.get("backup")
    if entry["op"] != "remove" and not path.exists():
        return False  # removed since, in a way that was not seen
    match entry["op"]:
        case "create":
            path.unlink()
        case "mkdir":
            shutil.rmtree(path)
        case "rename":
            path.rename(folder / entry["old"])
    if backup is not None and os.path.exists(backup) and not path.exists():
        os.rename(backup, path)
    return True
