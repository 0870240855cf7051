"""Parquet files of a table: written as rows arrive, one per partition, up to the target size; and read again."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io.fileformat import FileFormatFactory
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import partition_record_value
from pyiceberg.schema import sanitize_column_names
from pyiceberg.table.locations import load_location_provider
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from connect.api import RetriableConnectError
from connectors.iceberg.client import iceberg_errors
from connectors.iceberg.columns import arrow_schema, arrow_type
from connectors.tables.columns import list_offsets, null_mask
from connectors.tables.errors import FilesIncomplete

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table

__all__ = ["DataFileWriter", "projected", "read_rows", "target_bytes"]

_TARGET: Final = "write.target-file-size-bytes"
_TARGET_BYTES: Final = 512 * 1024 * 1024
_MOST_OPEN: Final = 64
_READ_ROWS: Final = 131_072
_FIELD_ID: Final = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class _Partition:
    """The values of a partition, and the folder of its files."""

    values: Record
    folder: str

    def to_path(self) -> str:
        return self.folder


class _OpenFile:
    def __init__(self, output: Any, writer: Any, partition: _Partition | None) -> None:
        self.output, self.writer, self.partition = output, writer, partition
        self.rows = 0

    @property
    def size(self) -> int:
        """The bytes that were written so far."""
        return int(self.writer._fos.tell()) if self.writer._fos is not None else 0


class DataFileWriter:
    """Writes files for one table, in its schema and default partitioning at this moment.

    Once a write has failed, every later call raises FilesIncomplete: nobody knows what the file has.
    """

    def __init__(self, table: Table, write_props: Mapping[str, str]) -> None:
        metadata = table.metadata
        self._table = table
        self._properties = {**metadata.properties, **write_props}
        self.schema, self.spec = metadata.schema(), metadata.spec()
        self._file_schema = sanitize_column_names(self.schema)
        self._renamed = self._file_schema != self.schema
        self._locations = load_location_provider(metadata.location, self._properties)
        self._format = FileFormatFactory.get(FileFormat.PARQUET)
        self._target = target_bytes(table, write_props)
        self._name, self._numbers = uuid.uuid4(), itertools.count()
        self._open: dict[str, _OpenFile] = {}
        self._finished: list[DataFile] = []
        self._paths: list[str] = []
        self._failed = False

    def write(self, rows: pa.Table) -> None:
        """Append rows, which have ``arrow_schema`` of the table's columns."""
        with self._writing():
            for partition, some in self._partitioned(rows):
                self._write(partition, some)

    def finish(self) -> list[DataFile]:
        """Close all files. They are not part of the table before a commit."""
        with self._writing():
            for folder in list(self._open):
                self._close(folder)
        return self._finished

    @contextmanager
    def _writing(self) -> Iterator[None]:
        name = ".".join(self._table.name())
        if self._failed:
            raise FilesIncomplete(f"a file of {name} is incomplete")
        self._failed = True
        try:
            with iceberg_errors("write files of", name):
                yield
        except RetriableConnectError as error:
            raise FilesIncomplete(str(error)) from error
        self._failed = False

    def discard(self, *, delete: bool) -> None:
        """Close all files, and delete them if no snapshot can have them."""
        for opened in self._open.values():
            try:
                opened.writer.close()
            except Exception:  # noqa: BLE001, S112 - what cannot be closed cannot be helped
                continue
        for path in self._paths if delete else ():
            try:
                self._table.io.delete(path)
            except Exception:  # noqa: BLE001, S112 - it stays, as after a kill, until orphan files are removed
                continue
        self._open, self._finished, self._paths = {}, [], []

    def _write(self, partition: _Partition | None, rows: pa.Table) -> None:
        folder = partition.folder if partition is not None else ""
        opened = self._open.get(folder)
        if opened is None:
            if len(self._open) >= _MOST_OPEN:
                self._close(next(iter(self._open)))
            opened = self._open[folder] = self._opened(partition)
        # Names that Avro does not have are written otherwise; the field ids tell what is meant.
        opened.writer.write(projected(rows, self._file_schema.fields) if self._renamed else rows)
        opened.rows += len(rows)
        if opened.size >= self._target:
            self._close(folder)

    def _opened(self, partition: _Partition | None) -> _OpenFile:
        name = f"{next(self._numbers):05d}-{self._name}.parquet"
        path = self._locations.new_data_location(name, partition)  # type: ignore[arg-type]
        self._paths.append(path)
        output = self._table.io.new_output(path)
        writer = self._format.create_writer(output, self._file_schema, self._properties)
        return _OpenFile(output, writer, partition)

    def _close(self, folder: str) -> None:
        opened = self._open.pop(folder)
        statistics = opened.writer.close()
        self._finished.append(
            DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=opened.output.location,
                file_format=FileFormat.PARQUET,
                partition=opened.partition.values if opened.partition is not None else Record(),
                file_size_in_bytes=len(opened.output),
                sort_order_id=None,
                spec_id=self.spec.spec_id,
                equality_ids=None,
                key_metadata=None,
                **statistics.to_serialized_dict(),
            )
        )

    def _partitioned(self, rows: pa.Table) -> Iterator[tuple[_Partition | None, pa.Table]]:
        if self.spec.is_unpartitioned():
            yield None, rows
            return
        keys = pa.table(
            [self._partition_values(rows, field) for field in self.spec.fields],
            names=[f"p{number}" for number in range(len(self.spec.fields))],
        )
        codes, distinct = _codes(keys)
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(distinct) + 1))
        for number, values in enumerate(distinct):
            some = rows if len(distinct) == 1 else rows.take(pa.array(order[bounds[number] : bounds[number + 1]]))
            yield self._partition(values), some

    def _partition_values(self, rows: pa.Table, field: Any) -> pa.ChunkedArray:
        name = self.schema.find_column_name(field.source_id)
        assert name is not None
        column = rows.column(name) if name in rows.column_names else _nested(rows, name)
        transform = field.transform.pyarrow_transform(self.schema.find_type(field.source_id))
        return transform(column)

    def _partition(self, values: Sequence[Any]) -> _Partition:
        record = Record(
            *(
                partition_record_value(field, value, self.schema)
                for field, value in zip(self.spec.fields, values, strict=True)
            )
        )
        return _Partition(record, self.spec.partition_to_path(record, self.schema))


def target_bytes(table: Table, write_props: Mapping[str, str]) -> int:
    """The size that files of a table should have."""
    return int({**table.metadata.properties, **write_props}.get(_TARGET, _TARGET_BYTES))


def _nested(rows: pa.Table, path: str) -> pa.ChunkedArray:
    first, *rest = path.split(".")
    return pc.struct_field(rows.column(first), rest)


def _codes(keys: pa.Table) -> tuple[np.ndarray[Any, Any], list[tuple[Any, ...]]]:
    """A number for each row, and the values of each number."""
    codes = np.zeros(len(keys), np.int64)
    parts: list[list[Any]] = []
    for column in keys.columns:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.chunk(0)
        parts.append(encoded.dictionary.to_pylist())
        codes = codes * len(parts[-1]) + encoded.indices.to_numpy(zero_copy_only=False)
    present, codes = np.unique(codes, return_inverse=True)
    distinct = []
    for code in present.tolist():
        values: list[Any] = []
        for part in reversed(parts):
            code, number = divmod(code, len(part))
            values.append(part[number])
        distinct.append(tuple(reversed(values)))
    return codes, distinct


def read_rows(table: Table, task: FileScanTask, columns: Sequence[NestedField]) -> Iterator[pa.Table]:
    """The rows of a data file that are not deleted, with these columns of the table's schema."""
    with iceberg_errors("read files of", ".".join(table.name())):
        if not task.delete_files and (opened := _with_ids(table, task.file)) is not None:
            with opened as parquet:
                names = _names_of(parquet.schema_arrow, columns)
                for batch in parquet.iter_batches(_READ_ROWS, columns=names):
                    made = projected(pa.Table.from_batches([batch]), columns)
                    yield made
            return
    yield from _by_pyiceberg(table, task, columns)


def _with_ids(table: Table, file: DataFile) -> pq.ParquetFile | None:
    """The file, if its columns have Iceberg's ids."""
    parquet = pq.ParquetFile(table.io.new_input(file.file_path).open(), pre_buffer=True)
    if all(field.metadata and _FIELD_ID in field.metadata for field in parquet.schema_arrow):
        return parquet
    parquet.close()
    return None


def _names_of(schema: pa.Schema, columns: Sequence[NestedField]) -> list[str]:
    ids = {column.field_id for column in columns}
    return [field.name for field in schema if _id_of(field) in ids]


def _by_pyiceberg(table: Table, task: FileScanTask, columns: Sequence[NestedField]) -> Iterator[pa.Table]:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.schema import Schema

    scan = ArrowScan(table.metadata, table.io, Schema(*columns), AlwaysTrue())
    with iceberg_errors("read files of", ".".join(table.name())):
        for batch in scan.to_record_batches([task]):
            made = [
                column.cast(arrow_type(field.field_type)) for column, field in zip(batch.columns, columns, strict=True)
            ]
            yield pa.Table.from_arrays(made, schema=arrow_schema(columns))


def projected(rows: pa.Table, columns: Sequence[NestedField]) -> pa.Table:
    """The columns by their ids: they may have been renamed, widened or added since the file was written."""
    by_id = {_id_of(field): number for number, field in enumerate(rows.schema)}
    made = [
        _as_column(
            rows.column(by_id[column.field_id]).combine_chunks(), rows.schema.field(by_id[column.field_id]), column
        )
        if column.field_id in by_id
        else _missing(column, len(rows))
        for column in columns
    ]
    return pa.Table.from_arrays(made, schema=arrow_schema(columns))


def _missing(column: NestedField, count: int) -> pa.Array:
    if column.initial_default is not None:
        return pa.repeat(pa.scalar(column.initial_default, arrow_type(column.field_type)), count)
    return pa.nulls(count, arrow_type(column.field_type))


def _as_column(values: pa.Array, field: pa.Field, column: NestedField) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0) if values.num_chunks else pa.array([], values.type)
    return _as_type(values, field.type, column.field_type)


def _as_type(values: pa.Array, kind: pa.DataType, column: IcebergType) -> pa.Array:
    target = arrow_type(column)
    if values.type.equals(target, check_metadata=True):
        return values
    if isinstance(column, StructType):
        by_id = {_id_of(kind.field(number)): number for number in range(kind.num_fields)}
        made = []
        for member in column.fields:
            number = by_id.get(member.field_id)
            if number is None:
                made.append(_missing(member, len(values)))
            else:
                made.append(_as_column(pc.struct_field(values, [number]), kind.field(number), member))
        fields = [target.field(number) for number in range(target.num_fields)]
        return pa.StructArray.from_arrays(made, fields=fields, mask=null_mask(values))
    if isinstance(column, ListType):
        items = _as_type(values.flatten(), kind.value_type, column.element_type)
        return pa.ListArray.from_arrays(list_offsets(values), items, type=target, mask=null_mask(values))
    if isinstance(column, MapType):
        listed = values.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        entries = listed.flatten()
        keys = _as_type(entries.field("key"), kind.key_type, column.key_type)
        items = _as_type(entries.field("value"), kind.item_type, column.value_type)
        return pa.MapArray.from_arrays(list_offsets(listed), keys, items, target, mask=null_mask(values))
    return values.cast(target)


def _id_of(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_FIELD_ID)
    return int(text) if text else None
