"""Store logs of a standalone worker: one in memory, and one in a file that Kafka Connect can read too."""

from __future__ import annotations

import asyncio
from pathlib import Path

from broker.client import KafkaRecord
from connect.server.standalone.java_map import NotAnOffsetFile, dump_map, load_map
from connect.stores.topic import Apply, Entry
from tidegate.kit.errors import UsageError
from tidegate.kit.files import write_whole

__all__ = ["FileLog", "MemoryLog"]


class MemoryLog:
    """A StoreLog in memory only."""

    failure: BaseException | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self._apply: Apply = lambda _: None
        self._next = 0

    async def start(self, apply: Apply) -> None:
        self._apply = apply

    async def stop(self) -> None:
        pass

    async def write(self, *entries: Entry) -> None:
        for key, value in entries:
            self._apply(KafkaRecord(self.name, 0, self._next, 0, key, value))
            self._next += 1

    async def read_to_end(self) -> None:
        pass


class FileLog(MemoryLog):
    """A StoreLog of the newest value of each key, in a file in the format of FileOffsetBackingStore.

    Each write replaces the whole file, by renaming a new, flushed one. Kafka Connect overwrites the old one, so that a
    crash can leave half of it.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path
        self._entries: dict[bytes, bytes | None] = {}
        self._writing = asyncio.Lock()

    async def start(self, apply: Apply) -> None:
        """Raises UsageError if the file can't be read, or is not such a file."""
        await super().start(apply)
        try:
            data = self._path.read_bytes()
            self._entries = load_map(data) if data else {}
        except FileNotFoundError:
            pass
        except OSError as error:
            raise UsageError(f"cannot read offset.storage.file.filename={self._path}: {error.strerror}") from error
        except NotAnOffsetFile as error:
            raise UsageError(
                f"offset.storage.file.filename={self._path} is not a file of Kafka Connect's offsets: {error}; name another one"
            ) from error
        await super().write(*self._entries.items())

    async def write(self, *entries: Entry) -> None:
        async with self._writing:
            for key, value in entries:
                if value is None:
                    self._entries.pop(key, None)
                else:
                    self._entries[key] = value
            await asyncio.to_thread(_replace, self._path, dump_map(self._entries))
            await super().write(*entries)


def _replace(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data, durable=True)
    except OSError as error:
        raise UsageError(f"cannot write offset.storage.file.filename={path}: {error.strerror}") from error
