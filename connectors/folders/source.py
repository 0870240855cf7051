"""The file source: files that arrive in a folder become records, once each."""

from __future__ import annotations

import dataclasses
import heapq
import json
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Final, cast

from connect.api import (
    ConnectError,
    DataError,
    Dataset,
    JavaRegex,
    OffsetChanges,
    Problem,
    RecordBatch,
    RetriableConnectError,
    Schema,
    SchemaType,
    SourceConnector,
    SourceTask,
    TidegateError,
    get_logger,
    pieces,
)
from connect.formats import schema_from_json, schema_json, text_headers
from connectors.folders.config import (
    AvroConfig,
    BinaryConfig,
    CsvConfig,
    FolderSourceConfig,
    JsonConfig,
    LinesConfig,
    SchemalessJsonConfig,
)
from connectors.folders.formats import BadRow, Block, format_of
from connectors.folders.positions import Position
from connectors.folders.schemas import key_schema_of, read_schema
from connectors.folders.sftp_config import (
    SftpBinaryConfig,
    SftpCsvConfig,
    SftpGenericConfig,
    SftpJsonConfig,
    SftpSchemalessJsonConfig,
)
from connectors.folders.stores import Folder, StoredFile, folder_of
from connectors.objects.polling import batches_of_poll

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FileSourceConnector",
    "FolderSourceTask",
    "SpoolDirAvroConnector",
    "SpoolDirBinaryConnector",
    "SpoolDirCsvConnector",
    "SpoolDirJsonConnector",
    "SpoolDirLinesConnector",
    "SpoolDirSchemalessJsonConnector",
]

logger = get_logger(__name__)

_BATCHES_A_POLL: Final = 20
_MOST_LISTED: Final = 10_000
"""The most files that are remembered from one listing; the others are found by the next."""
_PACKED: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_LETTER: Final = Schema.struct(
    {
        "file": Schema(SchemaType.STRING),
        "line": Schema(SchemaType.INT64, optional=True),
        "row": Schema(SchemaType.INT64),
        "error": Schema(SchemaType.STRING),
        "text": Schema(SchemaType.STRING),
    },
    name="tidegate.files.BadRow",
)
_INFERRED: Final = "inferred schema of"


class FolderSourceTask(SourceTask[FolderSourceConfig]):
    """Reads its share of the files in turn, and lists the folder again when all are read.

    A file is cleaned up when its last position is committed, and if that was cut off, when it is listed again.
    """

    def start(self) -> None:
        self._folder: Folder = folder_of(self.config)
        self.resources.callback(self._folder.close)
        self._pattern = JavaRegex(self.config.pattern)
        self._queue: deque[StoredFile] = deque()
        self._reading: Iterator[RecordBatch] | None = None
        self._positions: dict[str, Position] = {}
        self._ended: deque[StoredFile] = deque()
        self._tolerates = self.context.properties.get("errors.tolerance", "none") == "all"
        self._next_look = time.monotonic()
        self._schema = self.config.value
        self._schema_is_stored = True
        if self._schema is None and (stored := self.context.offset(self._schema_partition)) is not None:
            self._schema = schema_from_json(json.loads(str(stored.get("schema"))))
        self._key_schema = None if self.config.key_schema is None else read_schema(self.config.key_schema)

    def dataset(self, topic: str) -> Dataset:
        del topic
        return Dataset.of_location(self.config.input_path)

    @property
    def _schema_partition(self) -> Mapping[str, Any]:
        return {_INFERRED: self.config.input_path}

    def poll(self) -> Sequence[RecordBatch]:
        batches = batches_of_poll(self._next, _BATCHES_A_POLL, self.context.stopping, self._begin_again)
        if not batches:
            self.context.stopping.wait(max(0.0, self._next_look - time.monotonic()))
        return batches

    def _begin_again(self) -> None:
        self._reading = None  # the file is read again from its position

    def _next(self) -> RecordBatch | None:
        """The next batch; None while there is nothing to read."""
        while True:
            if not self._queue:
                if time.monotonic() < self._next_look:
                    return None
                self._next_look = time.monotonic() + self.config.wait_ms / 1000
                self._queue = deque(self._unread())
                if not self._queue:
                    return None
            file = self._queue[0]
            if self._reading is None:
                self._reading = self._batches(file)
            try:
                if (batch := next(self._reading, None)) is not None:
                    return batch
            except RetriableConnectError:
                raise
            except DataError as error:
                if self.config.halts:
                    raise ConnectError(f"{self._folder.path(file.name)} cannot be read: {error}") from error
                logger.warning("file cannot be read", file=self._folder.path(file.name), error=str(error))
                self._queue.popleft()
                self._reading = None
                return self._at_its_end(file, failed=True)
            self._queue.popleft()
            self._reading = None

    def _unread(self) -> list[StoredFile]:
        """This task's files that are not read to their end, in their order. Those that are, are cleaned up."""
        after = self._cursor().name if self.config.ascending else None
        if after is not None and (last := self._folder.stat(after)) is not None:
            listed: Iterable[StoredFile] = chain([last], self._folder.list(after))
        else:
            listed = self._folder.list(after)
        oldest = time.time() * 1000 - self.config.minimum_age_ms
        ours: Iterable[StoredFile] = (file for file in listed if self._is_ours(file))
        if self.config.ascending:
            # No name is skipped: the position would pass it.
            ours = takewhile(lambda file: file.modified_ms <= oldest, ours if after else sorted(ours))
            return list(islice((file for file in ours if not self._is_read(file)), _MOST_LISTED))
        unread = (file for file in ours if file.modified_ms <= oldest and not self._is_read(file))
        return heapq.nsmallest(_MOST_LISTED, unread, key=self._rank)

    def _is_ours(self, file: StoredFile) -> bool:
        name = file.name.rpartition("/")[2]
        if name.endswith(self.config.processing_extension) or self._pattern.fullmatch(name) is None:
            return False
        for folder_url in (self.config.finished_path, self.config.error_path):
            if folder_url and self._folder.path(file.name).startswith(
                folder_url.removeprefix("file://").rstrip("/") + "/"
            ):
                return False
        return zlib.crc32(file.name.encode()) % self.config.task_count == self.context.task % self.config.task_count

    def _is_read(self, file: StoredFile) -> bool:
        position = self._position(file)
        if not (position.done or position.failed):
            return False
        if not self.config.ascending and Position.of(self.context.offset(self._partition(file))).is_end_of(file):
            self._clean_up(file, position)
        return True

    def _rank(self, file: StoredFile) -> tuple[Any, ...]:
        return (*(_RANKS[each.lower()](file) for each in self.config.sorts), file.name)

    def _partition(self, file: StoredFile) -> Mapping[str, Any]:
        """As SpoolDir's, or that of all files."""
        return {"inputPath": self.config.input_path} if self.config.ascending else {"fileName": file.name}

    def _cursor(self) -> Position:
        known = self._positions.get("")
        return known or Position.of(self.context.offset({"inputPath": self.config.input_path}))

    def _position(self, file: StoredFile) -> Position:
        if self.config.ascending:
            cursor = self._cursor()
            return cursor if cursor.name == file.name else Position(name=file.name)
        known = self._positions.get(file.name)
        return (known or Position.of(self.context.offset(self._partition(file)))).at(file)

    def _took(self, file: StoredFile, position: Position) -> None:
        self._positions["" if self.config.ascending else file.name] = position

    def _batches(self, file: StoredFile) -> Iterator[RecordBatch]:
        """The file's rows from its position on. A batch is held back until it is known whether it is the last one."""
        begin = read = self._position(file).rows
        pending: RecordBatch | None = None
        for block in self._blocks(file):
            bad = [each for each in block.bad if each.row >= begin]
            if bad and not self._tolerates:
                first = bad[0]
                before = block.rows < first.row
                block = block._replace(values=block.values.slice(0, int(before.sum())), rows=block.rows[before])
            for values, rows in self._slices(block, begin):
                if pending is not None:
                    yield self._placed(file, pending, read)
                elif not self._schema_is_stored and block.schema is not None:
                    yield self._schema_batch(block.schema)
                pending, read = self._batch(file, block.schema, values, rows), int(rows[-1]) + 1
            if not bad:
                continue
            if pending is not None:
                yield self._placed(file, pending, read)
                pending = None
            if not self._tolerates:
                raise DataError(_told(bad[0]))
            yield from self._left_out(file, bad)
            read = max(read, bad[-1].row + 1)
        if self._folder.stat(file.name) != file:
            logger.info("file changes while it is read; the rest is read later", file=self._folder.path(file.name))
            return
        if pending is None:
            yield self._at_its_end(file, rows=read)
        else:
            yield self._placed(file, pending, read, done=True)

    def _blocks(self, file: StoredFile) -> Iterator[Block]:
        format_ = format_of(self.config, self._schema)
        name = file.name.lower()
        codec = next((codec for end, codec in _PACKED.items() if name.endswith(end)), None)

        @contextmanager
        def opens() -> Iterator[BinaryIO]:
            import pyarrow as pa

            with self._folder.open(file.name, seeks=format_.seeks) as opened:
                if codec is None:
                    yield opened
                else:
                    yield cast("BinaryIO", pa.CompressedInputStream(pa.PythonFile(opened, mode="r"), codec))

        told = False
        try:
            for block in format_.read(opens):
                if format_.left_out and not told:
                    told = True
                    logger.warning(
                        "columns left out: the schema does not have them",
                        file=self._folder.path(file.name),
                        columns=", ".join(format_.left_out),
                    )
                if self._schema is None and self.config.makes_schema and block.schema is not None:
                    self._schema, self._schema_is_stored = block.schema, False
                yield block
        except OSError as error:
            raise DataError(f"it is not {codec or 'readable'}: {error}") from error

    def _slices(self, block: Block, begin: int) -> Iterator[tuple[pa.Array, Any]]:
        """The rows from number ``begin`` on, in pieces with the size of a batch, and their numbers."""
        import numpy as np

        skipped = int(np.searchsorted(block.rows, begin))
        values, rows = block.values.slice(skipped), block.rows[skipped:]
        for start, length in pieces(values, self.config.batch_rows):
            yield values.slice(start, length), rows[start : start + length]

    def _batch(self, file: StoredFile, schema: Schema | None, values: pa.Array, rows: Any) -> RecordBatch:
        batch = RecordBatch(self.config.topic, values, schema, timestamps_ms=self._timestamps(file, schema, values))
        if (keys := self._keys(schema, values)) is not None:
            batch = batch.replace(keys=keys[0], key_schema=keys[1])
        return batch.replace(headers=self._headers(file, rows)) if self.config.headers else batch

    def _keys(self, schema: Schema | None, values: pa.Array) -> tuple[pa.Array, Schema] | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._key_schema is None and not self.config.key_fields:
            return None
        if schema is None or schema.type is not SchemaType.STRUCT:
            raise ConnectError(
                "keys are made of fields, but the values have none: leave out key.schema and schema.generation.key.fields"
            )
        keys = self._key_schema or key_schema_of(schema, self.config.key_fields, self.config.key_name)
        fields = [member.schema.arrow_field(member.name) for member in keys.fields]
        columns = []
        for field in fields:
            schema.field(field.name)
            column = pc.struct_field(values, field.name).cast(field.type)
            if column.null_count and not field.nullable:
                raise DataError(
                    f"the key's field {field.name} is null in a row: key.schema should say that it is optional"
                )
            columns.append(column)
        return pa.StructArray.from_arrays(columns, fields=fields), keys

    def _timestamps(self, file: StoredFile, schema: Schema | None, values: pa.Array) -> pa.Array | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        mode = self.config.timestamp_mode.upper()
        if mode == "FILE_TIME":
            return pa.repeat(pa.scalar(file.modified_ms, pa.int64()), len(values))
        if mode != "FIELD":
            return None
        name = self.config.timestamp_field
        if schema is None or name not in schema.field_names or not pa.types.is_timestamp(values.type.field(name).type):
            raise ConnectError(f"timestamp.field is {name!r}; it should be a field of the rows that is a timestamp")
        return pc.struct_field(values, name).cast(pa.int64())

    def _headers(self, file: StoredFile, rows: Any) -> pa.Array | None:
        import pyarrow as pa

        modified = datetime.fromtimestamp(file.modified_ms / 1000, UTC).isoformat(timespec="milliseconds")
        same = {
            "file.name": file.name.rpartition("/")[2],
            "file.path": self._folder.path(file.name),
            "file.length": str(file.length),
            "file.last.modified": modified.replace("+00:00", "Z"),
        }
        shared = [{"key": key, "value": value} for key, value in same.items()]
        return text_headers(pa.array([[*shared, {"key": "file.offset", "value": str(row)}] for row in rows.tolist()]))

    def _placed(self, file: StoredFile, batch: RecordBatch, rows: int, *, done: bool = False) -> RecordBatch:
        position = self._position(file).moved(file, rows, done=done)
        self._took(file, position)
        if done and not self.config.ascending:
            self._ended.append(file)
        return batch.replace(source_partition=self._partition(file), source_offset=position.offset)

    def _at_its_end(self, file: StoredFile, *, rows: int | None = None, failed: bool = False) -> RecordBatch:
        """A batch without rows, for the position of a file that ends without any."""
        import pyarrow as pa

        position = self._position(file)
        position = position.moved(file, position.rows if rows is None else rows, done=not failed, failed=failed)
        self._took(file, position)
        if not self.config.ascending:
            self._ended.append(file)
        return RecordBatch(
            self.config.topic,
            pa.array([], pa.string()),
            None,
            source_partition=self._partition(file),
            source_offset=position.offset,
        )

    def _schema_batch(self, schema: Schema) -> RecordBatch:
        """A batch without rows, which has the schema stored before the first row that was read with it."""
        import pyarrow as pa

        self._schema_is_stored = True
        return RecordBatch(
            self.config.topic,
            pa.array([], pa.string()),
            None,
            source_partition=self._schema_partition,
            source_offset={"schema": json.dumps(schema_json(schema), separators=(",", ":"))},
        )

    def _left_out(self, file: StoredFile, bad: Sequence[BadRow]) -> Iterator[RecordBatch]:
        """Dead letters for rows that cannot be read. They delay the file's next position until the log has them."""
        import pyarrow as pa

        path = self._folder.path(file.name)
        for each in bad:
            logger.warning("row left out", file=path, line=each.line, row=each.row, error=each.error)
        self.context.count_skipped(len(bad), dead_letters=len(bad) if self.config.dead_letters else 0)
        if self.config.dead_letters:
            letters = [
                {"file": path, "line": each.line, "row": each.row, "error": each.error, "text": each.text}
                for each in bad
            ]
            values = pa.array(letters, _LETTER.arrow_type)
            yield RecordBatch(self.config.dead_letters, values, _LETTER, source_partition=self._partition(file))

    def committed(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        """Clean up the files whose end is committed now."""
        safe = {partition["fileName"]: Position.of(offset) for partition, offset in offsets if "fileName" in partition}
        for _ in range(len(self._ended)):
            file = self._ended.popleft()
            position = safe.get(file.name)
            if position is None or not position.is_end_of(file):
                self._ended.append(file)
                continue
            self._clean_up(file, position)

    def _clean_up(self, file: StoredFile, position: Position) -> None:
        policy = self.config.cleanup.upper()
        if self._folder.stat(file.name) != file:
            return  # it has gone, or is another one by now, which is read as such
        name = file.name if self.config.walks else file.name.rpartition("/")[2]
        if position.failed:
            if not self.config.error_path:
                return
            self._folder.move(file.name, self.config.error_path, name)
        elif policy == "DELETE":
            self._folder.delete(file.name)
        elif policy.startswith("MOVE"):
            day = f"{datetime.now(UTC):%Y-%m-%d}/" if policy == "MOVEBYDATE" else ""
            self._folder.move(file.name, self.config.finished_path, day + name)
        else:
            return
        self._positions.pop(file.name, None)  # millions of files may come and go


def _told(bad: BadRow) -> str:
    where = f"row {bad.row + 1}" if bad.line is None else f"line {bad.line}"
    return f"{where}: {bad.error}: {bad.text[:200]!r}"


_RANKS: Final[Mapping[str, Any]] = {
    "nameasc": lambda file: file.name,
    "namedesc": lambda file: _Descending(file.name),
    "lengthasc": lambda file: file.length,
    "lengthdesc": lambda file: -file.length,
    "lastmodifiedasc": lambda file: file.modified_ms,
    "lastmodifieddesc": lambda file: -file.modified_ms,
}


class _Descending(str):
    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


class FileSourceConnector(SourceConnector[FolderSourceConfig]):
    config_class: ClassVar[type[Any]] = FolderSourceConfig
    task_class = FolderSourceTask

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One task where tasks would have to agree on something: a schema that is inferred, or one position for all."""
        alone = self.config.ascending or (self.config.makes_schema and self.config.infers_types)
        tasks = 1 if alone else max_tasks
        return [{**self.properties, "task.count": str(tasks)}] * tasks

    @classmethod
    def check(cls, config: FolderSourceConfig) -> Iterable[Problem]:
        folder_urls = {"input.path": None, "finished.path": config.finished_path, "error.path": config.error_path}
        problems = []
        for name, folder_url in folder_urls.items():
            if folder_url == "" or (name == "finished.path" and not config.cleanup.upper().startswith("MOVE")):
                continue
            try:
                with closing(folder_of(config)) as folder:
                    folder.check(folder_url)
            except TidegateError as error:
                problems.append(Problem(name, str(error)))
        return problems

    @classmethod
    def preview_properties(cls, properties: Mapping[str, str]) -> Mapping[str, str]:
        return {**properties, "cleanup.policy": "NONE", "error.path": ""}

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        for partition, offset in offsets:
            if _INFERRED not in partition:
                Position.of(offset)
        return True

    @classmethod
    def exactly_once(cls, config: Any) -> bool:
        return True


class SpoolDirCsvConnector(FileSourceConnector):
    config_class = CsvConfig


class SpoolDirJsonConnector(FileSourceConnector):
    config_class = JsonConfig


class SpoolDirSchemalessJsonConnector(FileSourceConnector):
    config_class = SchemalessJsonConfig


class SpoolDirLinesConnector(FileSourceConnector):
    config_class = LinesConfig


class SpoolDirAvroConnector(FileSourceConnector):
    config_class = AvroConfig


class SpoolDirBinaryConnector(FileSourceConnector):
    config_class = BinaryConfig


class _SftpConnector(FileSourceConnector):
    """Runs Confluent's configurations of files on an SFTP server. Its tasks have the keys of the file source."""

    task_config_class: ClassVar[type[Any] | None] = FolderSourceConfig

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**each, **self.config.platform_keys} for each in super().task_properties(max_tasks)]  # type: ignore[attr-defined]

    @classmethod
    def check(cls, config: FolderSourceConfig) -> Iterable[Problem]:
        urls = config.platform_keys  # type: ignore[attr-defined]
        return super().check(
            dataclasses.replace(
                config,
                input_path=urls["input.path"],
                finished_path=urls.get("finished.path", ""),
                error_path=urls.get("error.path", ""),
            )
        )


class SftpCsvConnector(_SftpConnector):
    config_class = SftpCsvConfig
    task_config_class = CsvConfig


class SftpJsonConnector(_SftpConnector):
    config_class = SftpJsonConfig
    task_config_class = JsonConfig


class SftpSchemalessJsonConnector(_SftpConnector):
    config_class = SftpSchemalessJsonConfig
    task_config_class = SchemalessJsonConfig


class SftpBinaryConnector(_SftpConnector):
    config_class = SftpBinaryConfig
    task_config_class = BinaryConfig


class SftpGenericConnector(_SftpConnector):
    config_class = SftpGenericConfig
    task_config_class = JsonConfig
