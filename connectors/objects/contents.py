"""Both sides of an object sink: its own writer turns records into files, which are read like those in the store."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

import pyarrow as pa

from connect.api import ConnectError, DataError, RecordBatch, SinkContents, TargetRows, TopicPartition
from connectors.objects.beside import Beside
from connectors.objects.config import ObjectSinkConfig
from connectors.objects.formats import Chunk, FileFormat
from connectors.objects.store import Finished, Mark, Store
from connectors.objects.writer import PartitionWriter, WriterParts

__all__ = ["ObjectContents"]

_ROWS: Final = 20_000
_KEY, _HEADERS, _VALUE, _TOMBSTONE = "(key)", "(headers)", "(value)", "(tombstone)"
"""Columns beside the fields of values."""


class ObjectContents(SinkContents):
    """All rows of a topic partition, in whatever files and folders they are. ``parts`` makes a task's writer."""

    def __init__(self, config: ObjectSinkConfig, store: Store, parts: Callable[..., WriterParts]) -> None:
        self._config, self._store = config, store
        self._scratch = tempfile.TemporaryDirectory(prefix="tidegate-verify-", ignore_cleanup_errors=True)
        folder = Path(self._scratch.name)
        self._made = _StagingStore(store, folder, config)
        self._parts = parts(self._made, folder, self._refuse)
        self._writers: dict[TopicPartition, PartitionWriter] = {}
        self._topics: set[str] = set()

    def _refuse(self, rows: RecordBatch, why: str) -> None:
        del why
        self.refused += len(rows)

    def positions(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        self._topics = {partition.topic for partition in partitions}
        return {}

    def expected(self, batch: RecordBatch) -> Iterator[TargetRows]:
        assert batch.origin is not None
        partition = TopicPartition(batch.origin.topic, batch.origin.partition)
        if partition not in self._writers:
            self._writers[partition] = PartitionWriter(self._parts, partition)
        if batch.values.null_count and not self._config.writes_tombstones:
            batch = batch.filter(batch.values.is_valid())
        self._writers[partition].put(batch)
        return self._finished()

    def rest(self) -> Iterator[TargetRows]:
        for writer in self._writers.values():
            writer.finish()
        return self._finished()

    def _finished(self) -> Iterator[TargetRows]:
        for paths in self._made.taken():
            yield from self._rows(list(paths), lambda name, seeks, paths=paths: paths[name].open("rb"))  # type: ignore[misc]
            for path in paths.values():
                path.unlink()

    def stored(self) -> Iterator[TargetRows]:
        config = self._config
        for topic in sorted(self._topics):
            folder = config.directory_delim.join([*filter(None, [config.topics_dir]), topic])
            for names in _grouped(self._store.names(folder, config.directory_delim), config):
                yield from self._rows(names, lambda name, seeks: self._store.reading(name, seeks=seeks))

    def _rows(
        self, names: Sequence[str], opened: Callable[[str, bool], AbstractContextManager[BinaryIO]]
    ) -> Iterator[TargetRows]:
        """The rows of a file of values and of those beside it."""
        parsed_name = _file_name(names[0], self._config)
        assert parsed_name is not None
        with ExitStack() as files:
            streams: dict[str, Iterator[Chunk]] = {}
            for name in names:
                stored = next((each for each in self._parts.beside if _is(name, each.extension)), None)
                made = self._parts.format if stored is None else stored.format
                file = files.enter_context(opened(name, made.seeks))
                column = _VALUE if stored is None else f"({stored.field})"
                streams[column] = _chunks(name, file, made, stored)
            for chunks in _side_by_side(names[0], streams):
                yield _target_rows(parsed_name.target, chunks)

    def restart(self) -> None:
        super().restart()
        for writer in self._writers.values():
            writer.discard()
        self._writers = {}

    def close(self) -> None:
        for writer in self._writers.values():
            writer.discard()
        self._store.close()
        self._scratch.cleanup()


class _FileName(NamedTuple):
    target: str
    stem: str


def _file_name(name: str, config: ObjectSinkConfig) -> _FileName | None:
    """Whose rows a file has, and its name without extension; None for a file of others."""
    delim = re.escape(config.file_delim)
    folder, _, base = name.rpartition(config.directory_delim)
    match = re.fullmatch(rf"(([a-zA-Z0-9._-]+){delim}(\d+){delim}\d+(?:{delim}\d+)?)(\..+)?", base)
    return None if match is None else _FileName(f"{match[2]}-{match[3]}", f"{folder}{config.directory_delim}{match[1]}")


def _grouped(names: Iterable[str], config: ObjectSinkConfig) -> Iterator[list[str]]:
    """Files of the same rows: values, keys, headers."""
    parsed = ((parsed_name.stem, name) for name in names if (parsed_name := _file_name(name, config)) is not None)
    for _, group in groupby(parsed, key=lambda each: each[0]):
        yield [name for _, name in group]


def _is(name: str, extension: str) -> bool:
    return name.endswith(extension)


def _chunks(name: str, file: BinaryIO, file_format: FileFormat, stored: Beside | None) -> Iterator[Chunk]:
    unpacked = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if name.endswith(".gz") else file
    try:
        for chunk in file_format.read(unpacked):
            if len(chunk.values):
                yield chunk if stored is None else stored.unwrapped(chunk)
    except (DataError, gzip.BadGzipFile, EOFError) as error:
        raise ConnectError(f"{name} cannot be read: {error}") from error


def _side_by_side(name: str, streams: Mapping[str, Iterator[Chunk]]) -> Iterator[dict[str, Chunk]]:
    """Pieces of the streams with equal numbers of rows."""
    waiting: dict[str, Chunk] = {}
    while True:
        for column, stream in streams.items():
            if column not in waiting and (chunk := next(stream, None)) is not None:
                waiting[column] = chunk
        if not waiting:
            return
        if len(waiting) < len(streams):
            raise ConnectError(f"{name} and the files beside it have different numbers of rows")
        rows = min(_ROWS, *(len(chunk.values) for chunk in waiting.values()))
        yield {column: chunk._replace(values=chunk.values.slice(0, rows)) for column, chunk in waiting.items()}
        left = {column: chunk._replace(values=chunk.values.slice(rows)) for column, chunk in waiting.items()}
        waiting = {column: chunk for column, chunk in left.items() if len(chunk.values)}


def _target_rows(target: str, chunks: Mapping[str, Chunk]) -> TargetRows:
    columns: dict[str, pa.Array] = {}
    parsed = frozenset(name for name, chunk in chunks.items() if chunk.schema is None and _is_text(chunk.values.type))
    for name, chunk in chunks.items():
        if name == _VALUE and pa.types.is_struct(chunk.values.type):
            columns |= dict(zip((field.name for field in chunk.values.type), chunk.values.flatten(), strict=True))
        else:
            columns[name] = chunk.values
    if _VALUE not in chunks:
        columns[_TOMBSTONE] = pa.repeat(pa.scalar(True), len(next(iter(columns.values()))))
    return TargetRows(target, "append", pa.RecordBatch.from_pydict(columns), listed=partial(_listed, parsed))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _listed(parsed: frozenset[str], rows: pa.RecordBatch) -> Mapping[str, Sequence[Any]]:
    """Columns of JSON texts are ``parsed``, and a value that is an object becomes columns."""
    columns: dict[str, list[Any]] = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        values: list[Any] = column.to_pylist()
        columns[name] = (
            [_parsed(value) if value is not None else None for value in values] if name in parsed else values
        )
    if _VALUE not in parsed:
        return columns
    beside = list(columns)
    beside.remove(_VALUE)
    made = []
    for n, value in enumerate(columns[_VALUE]):
        row = {name: columns[name][n] for name in beside}
        made.append(row | (value if isinstance(value, dict) else {_VALUE: value}))
    return _columns(made)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:  # on both sides alike
        return text


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """A field that a row does not have is null."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


class _StagingStore(Store):
    """Keeps finished files in a folder until they are read."""

    def __init__(self, like: Store, folder: Path, config: ObjectSinkConfig) -> None:
        self.names_end_offset = like.names_end_offset
        self._like, self._folder, self._config = like, folder, config
        self._paths: dict[str, Path] = {}
        self._count = 0

    def folder_problem(self, folder: str, delimiter: str) -> str | None:
        return self._like.folder_problem(folder, delimiter)

    def commit(self, partition: TopicPartition, files: Sequence[Finished], mark: Mark) -> None:
        del partition, mark
        for finished in files:
            self._count += 1
            path = self._folder / f"finished-{self._count}"
            finished.path.rename(path)
            self._paths[finished.name] = path

    def taken(self) -> Iterator[dict[str, Path]]:
        """Files of the same rows, by their names, which are the caller's to remove."""
        paths, self._paths = self._paths, {}
        for names in _grouped(sorted(paths), self._config):
            yield {name: paths[name] for name in names}
