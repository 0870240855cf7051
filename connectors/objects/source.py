"""The source from object stores: objects that a sink wrote, or any others, record by record."""

from __future__ import annotations

import time
import zlib
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Final, NamedTuple, Protocol, TypeVar

from connect.api import (
    ConnectError,
    DataError,
    OffsetChanges,
    RecordBatch,
    Schema,
    SchemaType,
    SourceConnector,
    SourceTask,
    get_logger,
    pieces,
)
from connect.formats import text_headers
from connectors.objects.polling import batches_of_poll

if TYPE_CHECKING:
    import pyarrow as pa

    from connectors.objects.beside import Beside
    from connectors.objects.formats import Chunk, FileFormat
    from connectors.objects.layouts import Item, Layout, Listed

__all__ = ["ObjectSourceConnector", "ObjectSourceTask", "ReadableObjects", "SourceSettings"]

logger = get_logger(__name__)

ConfigT = TypeVar("ConfigT")
_KEY: Final = Schema(SchemaType.BYTES, optional=True)
_IDLE_S: Final = 1.0
_BATCHES_A_POLL: Final = 50


class Position(NamedTuple):
    """How far a source partition has been read: ``rows`` of the object that begins at ``first``; all of them if
    ``done``.
    """

    rows: int = 0
    done: bool = False
    first: int | None = None

    @classmethod
    def of(cls, offset: Mapping[str, Any] | None) -> Position:
        """Raises ConnectError for an offset that this source did not write."""
        offset = offset or {}
        rows, first = offset.get("recordCount", 0), offset.get("startOffset")
        for name, value in (("recordCount", rows), ("startOffset", first)):
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
                raise ConnectError(f"offset {dict(offset)}: {name} should be a number of records")
        return cls(rows or 0, bool(offset.get("done", False)), first)

    @property
    def offset(self) -> Mapping[str, Any]:
        offset: dict[str, Any] = {"recordCount": self.rows, "done": self.done}
        return offset if self.first is None else {"startOffset": self.first, **offset}


class ReadableObjects(Protocol):
    """The objects of a bucket or container. Failures of the store are ConnectErrors; every other error is of the data."""

    def list(self, prefix: str) -> Iterable[Listed]:
        """All objects whose names begin with ``prefix``."""
        ...

    def open(self, name: str, *, seeks: bool, compression: str | None) -> AbstractContextManager[BinaryIO]:
        """An object as a file of its decompressed bytes; ``seeks`` says that any of them may be read first."""
        ...


class SourceSettings(Protocol):
    """The part of the configuration that a task uses."""

    @property
    def layout(self) -> Layout: ...
    @property
    def format(self) -> FileFormat: ...
    @property
    def keys_format(self) -> FileFormat | None: ...
    @property
    def headers_format(self) -> FileFormat | None: ...
    @property
    def poll_interval_ms(self) -> int: ...
    @property
    def skips_errors(self) -> bool: ...
    @property
    def batch_rows(self) -> int: ...
    @property
    def tasks(self) -> int: ...
    def compression(self, name: str) -> str | None:
        """The compression of an object; None for plain bytes."""


SettingsT = TypeVar("SettingsT", bound=SourceSettings)


class ObjectSourceTask(SourceTask[SettingsT]):
    """Reads its share of the objects in turn, and looks for new ones at each poll interval.

    An object is read once; one that is overwritten under the same name is not read again.
    """

    @property
    @abstractmethod
    def location(self) -> str:
        """The URL of the bucket or container."""

    @abstractmethod
    def make_objects(self) -> ReadableObjects:
        """The objects to read."""

    def start(self) -> None:
        from connectors.objects.beside import Headers, Keys

        self._layout = self.config.layout
        self._format = self.config.format
        self._stored_keys = Keys(made) if (made := self.config.keys_format) is not None else None
        self._stored_headers = Headers(made) if (made := self.config.headers_format) is not None else None
        self._objects = self.make_objects()
        self._positions: dict[frozenset[tuple[str, Any]], Position] = {}
        self._queue: deque[Item] = deque()
        self._reading: Iterator[RecordBatch] | None = None
        self._next_look = time.monotonic()

    def poll(self) -> Sequence[RecordBatch]:
        batches = batches_of_poll(self._next, _BATCHES_A_POLL, self.context.stopping, self._begin_again)
        if not batches:
            self.context.stopping.wait(max(0.0, min(self._next_look - time.monotonic(), _IDLE_S)))
        return batches

    def _begin_again(self) -> None:
        self._reading = None  # it is read again from the offset

    def _next(self) -> RecordBatch | None:
        """The next batch; None while there is nothing to read."""
        while True:
            if not self._queue:
                if time.monotonic() < self._next_look:
                    return None
                self._queue = deque(self._unread())
                self._next_look = time.monotonic() + self.config.poll_interval_ms / 1000
                if not self._queue:
                    return None
            item = self._queue[0]
            if self._reading is None:
                self._reading = self._batches(item)
            try:
                if (batch := next(self._reading, None)) is not None:
                    return batch
            except DataError as error:
                message = f"{self.location}/{item.name} cannot be read: {error}"
                if not self.config.skips_errors:
                    raise ConnectError(message) from error
                logger.warning("object passed over", object=item.name, error=str(error))
            self._took(item, self._position(item)._replace(done=True, first=item.first))
            self._queue.popleft()
            self._reading = None

    def _unread(self) -> list[Item]:
        """This task's objects in the bucket that have not been read to their end."""
        items = (self._layout.item(listed) for listed in self._objects.list(self._layout.prefix))
        unread = (item for item in items if item is not None and self._is_ours(item))
        return sorted((item for item in unread if not self._is_read(item)), key=lambda item: item.rank)

    def _is_ours(self, item: Item) -> bool:
        return zlib.crc32(item.share.encode()) % self.config.tasks == self.context.task % self.config.tasks

    def _is_read(self, item: Item) -> bool:
        position = self._position(item)
        if item.first is None or position.first is None:
            return position.done
        return item.first < position.first or (item.first == position.first and position.done)

    def _position(self, item: Item) -> Position:
        known = self._positions.get(frozenset(item.source_partition.items()))
        return known or Position.of(self.context.offset(item.source_partition))

    def _took(self, item: Item, position: Position) -> None:
        self._positions[frozenset(item.source_partition.items())] = position

    def _batches(self, item: Item) -> Iterator[RecordBatch]:
        """The object's rows from its offset on. A batch is held back until it is known whether it is the last one."""
        position = self._position(item)
        read = position.rows if position.first == item.first else 0
        keys, headers = self._beside(item, self._stored_keys), self._beside(item, self._stored_headers)
        pending: RecordBatch | None = None
        for schema, values in self._chunks(item, read):
            if pending is not None:
                yield self._placed(item, pending, read, done=False)
            pending = self._batch(item, schema, values)
            if keys is not None:
                pending = pending.replace(keys=_part(keys.values, read, values, item, "keys"), key_schema=keys.schema)
            if headers is not None:
                texts = _part(headers.values, read, values, item, "headers")
                pending = pending.replace(headers=text_headers(texts))
            read += len(values)
        if pending is not None:
            yield self._placed(item, pending, read, done=True)

    def _placed(self, item: Item, batch: RecordBatch, end: int, *, done: bool) -> RecordBatch:
        position = Position(end, done, item.first)
        self._took(item, position)
        return batch.replace(source_partition=item.source_partition, source_offset=position.offset)

    def _chunks(self, item: Item, skip: int) -> Iterator[Chunk]:
        """The rows after the first ``skip``, in pieces with the size of a batch."""
        compression = self.config.compression(item.name)
        with self._objects.open(item.name, seeks=self._format.seeks, compression=compression) as file:
            try:
                for chunk in self._format.read(file):
                    values = chunk.values.slice(min(skip, len(chunk.values)))
                    skip -= min(skip, len(chunk.values))
                    for start, length in pieces(values, self.config.batch_rows):
                        yield chunk._replace(values=values.slice(start, length))
            except OSError as error:
                raise DataError(f"not {compression}: {error}") from error

    def _batch(self, item: Item, schema: Schema | None, values: pa.Array) -> RecordBatch:
        import pyarrow as pa

        rows = len(values)
        return RecordBatch(
            item.topic,
            values,
            schema,
            keys=None if item.key is None else pa.repeat(pa.scalar(item.key, pa.binary()), rows),
            key_schema=None if item.key is None else _KEY,
            partitions=None if item.partition is None else pa.repeat(pa.scalar(item.partition, pa.int32()), rows),
        )

    def _beside(self, item: Item, stored: Beside | None) -> Chunk | None:
        """All keys or headers of an object's records: those in a file have one schema."""
        if stored is None:
            return None
        import pyarrow as pa

        name, compression = f"{item.stem}{stored.extension}", None
        if item.name.endswith(".gz") and f"{stored.format.extension}.gz" in stored.format.extensions:
            name, compression = f"{name}.gz", self.config.compression(item.name)
        with self._objects.open(name, seeks=stored.format.seeks, compression=compression) as file:
            chunks = [stored.unwrapped(chunk) for chunk in stored.format.read(file)]
        if not chunks:
            raise DataError(f"there is nothing in {name}")
        return chunks[0]._replace(values=pa.concat_arrays([chunk.values for chunk in chunks]))


def _part(stored: pa.Array, start: int, values: pa.Array, item: Item, what: str) -> pa.Array:
    if start + len(values) > len(stored):
        raise DataError(f"there are only {len(stored)} {what} for the records of {item.name}")
    return stored.slice(start, len(values))


class ObjectSourceConnector(SourceConnector[ConfigT]):
    """Validation does not ask the store, as with the sinks. ``tasks_key`` tells a task how many share the objects."""

    tasks_key: ClassVar[str]

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self.properties, self.tasks_key: str(max_tasks)}] * max_tasks

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        for _, offset in offsets:
            Position.of(offset)
        return True

    @classmethod
    def exactly_once(cls, config: Any) -> bool:
        return True
