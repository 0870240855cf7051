"""Partitioners: choose the folder of a record's file ("encoded partition" in the originals)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError, RecordBatch, SchemaType
from connectors.objects.config import ObjectSinkConfig
from connectors.objects.joda import format_time
from connectors.objects.timestamps import Millis, field_column, timestamps_of

__all__ = ["Encoded", "Folder", "Partitioner", "partitioner_of"]


class Folder(NamedTuple):
    """A folder's name, and whether files in it hold tombstones."""

    name: str
    tombstones: bool


@dataclass(frozen=True, slots=True)
class Encoded:
    """The folder of each row: ``folders[codes[row]]``; all of ``folders[0]`` where ``codes`` is None.

    Rows with the code ``tombstones`` have no value.
    """

    folders: Sequence[str]
    codes: npt.NDArray[np.int64] | None = None
    tombstones: int | None = None

    def rest(self, start: int) -> Encoded:
        """That of the rows from ``start`` on."""
        return self if self.codes is None else Encoded(self.folders, self.codes[start:], self.tombstones)

    def name(self, code: int) -> Folder:
        return Folder(self.folders[code], code == self.tombstones)

    def last_folder(self, rows: int) -> str | None:
        """The folder of the last value among the first rows; None where all are tombstones."""
        if self.codes is None:
            return None if self.tombstones == 0 else self.folders[0]
        codes = self.codes[:rows]
        if self.tombstones is not None:
            codes = codes[codes != self.tombstones]
        return self.folders[int(codes[-1])] if len(codes) else None


class Partitioner(ABC):
    """Handles a whole batch at once."""

    def __init__(self, config: ObjectSinkConfig, now_ms: Callable[[], int]) -> None:
        self.config, self.now_ms = config, now_ms

    @abstractmethod
    def encode(self, batch: RecordBatch) -> Encoded: ...


class DefaultPartitioner(Partitioner):
    """By the topic's partition: ``partition=3``."""

    def encode(self, batch: RecordBatch) -> Encoded:
        assert batch.origin is not None
        return Encoded([f"partition={batch.origin.partition}"])


class FieldPartitioner(Partitioner):
    """By values of fields: ``country=de/active=true``."""

    def encode(self, batch: RecordBatch) -> Encoded:
        return _combined(
            [self._folders(batch, name) for name in self.config.partition_fields], self.config.directory_delim
        )

    def _folders(self, batch: RecordBatch, name: str) -> Encoded:
        column, schema = field_column(batch, name)
        if schema.name is not None or schema.type not in _FOLDER_TYPES:
            raise DataError(f"field {name!r} of {batch.topic!r} cannot name folders: it is {schema.name or schema.type.value}, "
                            "and should be an integer, a string or a boolean")  # fmt: skip
        encoded = column.dictionary_encode(null_encoding="encode")
        values = [_shown(value) for value in encoded.dictionary.to_pylist()]
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return Encoded([f"{name}={value}" for value in values], codes)


_FOLDER_TYPES: Final = frozenset(
    {SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64, SchemaType.STRING, SchemaType.BOOLEAN}
)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _combined(parts: Sequence[Encoded], delimiter: str) -> Encoded:
    """The folders of several fields, joined; only combinations that occur."""
    folders, codes = parts[0].folders, parts[0].codes
    for part in parts[1:]:
        assert codes is not None and part.codes is not None
        both, codes = np.unique(codes * len(part.folders) + part.codes, return_inverse=True)
        count = len(part.folders)
        folders = [f"{folders[pair // count]}{delimiter}{part.folders[pair % count]}" for pair in both.tolist()]
    return Encoded(folders, codes)


class TimeBasedPartitioner(Partitioner):
    """By time, in intervals of ``partition.duration.ms`` in local time of the time zone, named by ``path.format``."""

    def encode(self, batch: RecordBatch) -> Encoded:
        millis = timestamps_of(self.config.extractor, self.config.timestamp_field, batch, self.now_ms)
        wall = _wall_clock(millis, self.config.timezone)
        duration = self.duration_ms
        starts, codes = np.unique(wall // duration * duration, return_inverse=True)
        zone = ZoneInfo(self.config.timezone)
        times = (datetime.fromtimestamp(start / 1000, UTC).replace(tzinfo=zone) for start in starts.tolist())
        return Encoded([format_time(self.path_format, at) for at in times], codes.astype(np.int64))

    @property
    def duration_ms(self) -> int:
        return self.config.partition_duration_ms

    @property
    def path_format(self) -> str:
        return self.config.path_format


class DailyPartitioner(TimeBasedPartitioner):
    @property
    def duration_ms(self) -> int:
        return 86_400_000

    @property
    def path_format(self) -> str:
        return self.config.directory_delim.join(("'year'=YYYY", "'month'=MM", "'day'=dd"))


class HourlyPartitioner(DailyPartitioner):
    @property
    def duration_ms(self) -> int:
        return 3_600_000

    @property
    def path_format(self) -> str:
        return self.config.directory_delim.join((super().path_format, "'hour'=HH"))


class FieldAndTimeBasedPartitioner(Partitioner):
    """By values of fields, and within those by time; the class with this name is from canelmas."""

    def encode(self, batch: RecordBatch) -> Encoded:
        parts = [made(self.config, self.now_ms).encode(batch) for made in (FieldPartitioner, TimeBasedPartitioner)]
        return _combined(parts, self.config.directory_delim)


class TombstonePartitioner(Partitioner):
    """Values by another partitioner, and tombstones into ``tombstone.encoded.partition``."""

    def __init__(self, config: ObjectSinkConfig, now_ms: Callable[[], int], values: Partitioner) -> None:
        super().__init__(config, now_ms)
        self._values = values

    def encode(self, batch: RecordBatch) -> Encoded:
        if not batch.values.null_count:
            return self._values.encode(batch)
        if batch.values.null_count == len(batch):
            return Encoded([self.config.tombstone_folder], None, 0)
        present = batch.values.is_valid()
        encoded = self._values.encode(batch.filter(present))
        tombstones = len(encoded.folders)
        codes = np.full(len(batch), tombstones, np.int64)
        codes[present.to_numpy(zero_copy_only=False)] = 0 if encoded.codes is None else encoded.codes
        return Encoded([*encoded.folders, self.config.tombstone_folder], codes, tombstones)


def _wall_clock(millis: Millis, timezone: str) -> Millis:
    """Local time of the time zone, as milliseconds since 1970 in that zone."""
    column = pa.array(millis).cast(pa.timestamp("ms", timezone))
    local: Millis = pc.local_timestamp(column).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return local


_PARTITIONERS: Final[Mapping[str, type[Partitioner]]] = {
    made.__name__: made
    for made in (
        DefaultPartitioner,
        FieldPartitioner,
        TimeBasedPartitioner,
        DailyPartitioner,
        HourlyPartitioner,
        FieldAndTimeBasedPartitioner,
    )
}


def partitioner_of(config: ObjectSinkConfig, now_ms: Callable[[], int]) -> Partitioner:
    """The partitioner for ``partitioner.class``, from any of the originals' packages, which knows of tombstones if they
    are written.
    """
    made = _PARTITIONERS[config.partitioner_class.rpartition(".")[2]](config, now_ms)
    return TombstonePartitioner(config, now_ms, made) if config.writes_tombstones else made
