"""The data source and its readers, which Spark calls (``pyspark.sql.datasource``, Spark 4).

Spark pickles everything that it sends to executors: options, schemas and ranges, and no connection.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)

from pyspark_tidegate.options import Options
from pyspark_tidegate.write_options import WriteOptions
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from broker.client import TopicPartition
    from broker.client.blocking import Admin
    from pyspark_tidegate.columns import Side
    from pyspark_tidegate.offsets import OffsetRange

__all__ = ["DefaultSource"]

logger = get_logger(__name__)


class _Part(InputPartition):  # type: ignore[misc]
    def __init__(self, part: OffsetRange) -> None:
        super().__init__(part)
        self.range = part


class DefaultSource(DataSource):  # type: ignore[misc]
    """The format ``tidegate``. ``docs/how-to/spark/data-source.md`` has the options."""

    @classmethod
    def name(cls) -> str:
        return "tidegate"

    def schema(self) -> StructType:
        """Spark's Kafka columns, ``value`` (and ``key``) decoded where a registry is given. Asks the cluster and the registry."""
        from pyspark.sql.types import StructField, StructType

        from pyspark_tidegate.records import arrow_schema
        from pyspark_tidegate.schemas import sides
        from pyspark_tidegate.types import spark_type

        options = Options.parse(self.options, stream=False)
        columns = arrow_schema(options, *sides(options))
        return StructType([StructField(column.name, spark_type(column.type), nullable=True) for column in columns])

    def reader(self, schema: StructType) -> DataSourceReader:
        options = Options.parse(self.options, stream=False)
        return (_PushingReader if options.push_filters else _BatchReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return _StreamReader(Options.parse(self.options, stream=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_tidegate.sink import BatchWriter

        if overwrite:
            raise UsageError('a topic can only be appended to: write with mode("append")')
        return BatchWriter(WriteOptions.parse(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        from pyspark_tidegate.sink import StreamWriter

        return StreamWriter(WriteOptions.parse(self.options), schema)


def _target(options: Options, key: Side, value: Side, schema: StructType) -> pa.Schema:
    """The columns that Spark expects, by their names: a schema may be registered while the job is planned, and a job may ask
    for some of the columns with ``schema``. Raises UsageError for a column that the source lacks or has in another type."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    from pyspark_tidegate.records import arrow_schema
    from pyspark_tidegate.types import converted

    columns, target = arrow_schema(options, key, value), to_arrow_schema(schema)
    for field in target:
        if field.name not in columns.names:
            raise UsageError(f"there is no column {field.name}: the columns are {', '.join(columns.names)}")
        type_ = columns.field(field.name).type
        try:
            converted(pa.array([], type_), field.type)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            raise UsageError(
                f"the column {field.name} is {type_}, which can't be read as {field.type}: {error}"
            ) from error
    return target


class _Reader:
    """The part that batch and stream have in common."""

    def __init__(self, options: Options, schema: StructType) -> None:
        from pyspark_tidegate.schemas import sides

        self._options = options
        self._key, self._value = sides(options)
        self._target = _target(options, self._key, self._value, schema)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyspark_tidegate.records import read

        if not isinstance(partition, _Part):  # Spark asks once where there are no partitions at all
            return iter(())
        part = self._fresh(partition.range) if self._options.fresh else partition.range
        return read(self._options, self._key, self._value, part, self._target) if part.start < part.stop else iter(())

    def _fresh(self, part: OffsetRange) -> OffsetRange:
        """The whole partition as it is now."""
        from broker.client import TopicPartition
        from pyspark_tidegate import offsets

        partition = TopicPartition(part.topic, part.partition)
        with self._admin() as admin:
            start = offsets.start_positions(admin, self._options, [partition])[partition]
            stop = offsets.end_positions(admin, self._options, [partition])[partition]
        return dataclasses.replace(part, start=start, stop=stop)

    def _admin(self) -> Admin:
        from broker.client.blocking import Admin
        from pyspark_tidegate.offsets import config_of

        return Admin(config_of(self._options))

    def _parts(self, starts: dict[TopicPartition, int], stops: dict[TopicPartition, int]) -> list[InputPartition]:
        from pyspark_tidegate import offsets

        return [
            _Part(part) for part in offsets.split(list(offsets.ranges(starts, stops)), self._options.min_partitions)
        ]


class _BatchReader(_Reader, DataSourceReader):  # type: ignore[misc]
    def __init__(self, options: Options, schema: StructType) -> None:
        from pyspark_tidegate.filters import Narrowed

        super().__init__(options, schema)
        self._narrowed = Narrowed()

    def partitions(self) -> Sequence[InputPartition]:
        from pyspark_tidegate import offsets

        with self._admin() as admin:
            chosen = self._narrowed.partitions(offsets.selected(admin, self._options))
            if self._options.fresh:
                return [_Part(offsets.OffsetRange(p.topic, p.partition, 0, 0)) for p in chosen]
            starts = offsets.start_positions(admin, self._options, chosen)
            stops = offsets.end_positions(admin, self._options, chosen)
            starts = self._narrowed.starts(admin, starts, stops)
        return self._parts(starts, self._narrowed.stops(stops))


class _PushingReader(_BatchReader):
    """Apart from the reader without it: Spark 4.1 refuses a reader that takes filters while its configuration gives it none."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """All filters are left to Spark too."""
        from pyspark_tidegate.filters import narrowed

        self._narrowed = narrowed(filters, self._options.columns)
        return filters


class _StreamReader(_Reader, DataSourceStreamReader):  # type: ignore[misc]
    """Offsets are ``{"topic": {"0": 23}}``, as in the checkpoints of Spark's Kafka source. A partition that is new to the stream is
    read from its first offset. When Spark has finished a batch its positions are committed to ``groupId``, so that lag is seen.

    Spark asks for the latest offset before it says where the stream is, so ``maxOffsetsPerTrigger`` counts from the end of the
    batch that was planned last. A query that is restarted finds that end in the group, as the metadata of its positions:
    they lag by a batch, and from them the next batch would end where the checkpoint is already. A program that reads
    the checkpoint gives it as ``plannedOffsets`` instead, and needs no group. Each partition has an equal
    share of the bound; from the same positions it never ends earlier than before, so no batch goes back.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, schema)
        self._planned: dict[TopicPartition, int] | None = None
        """The last answer of ``latestOffset``, or the end of the batch that Spark plans again after a restart."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        from pyspark_tidegate import offsets

        with self._admin() as admin:
            return _to_json(offsets.start_positions(admin, self._options, offsets.selected(admin, self._options)))

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        from pyspark_tidegate import offsets

        options = self._options
        with self._admin() as admin:
            chosen = offsets.selected(admin, options)
            stops = offsets.end_positions(admin, options, chosen)
            stops = {p: min(stop, options.until.get(p.topic, {}).get(p.partition, stop)) for p, stop in stops.items()}
            if options.max_offsets:
                known = self._planned if self._planned is not None else self._planned_before(admin)
                starts = {partition: known[partition] for partition in chosen if partition in known}
                new = [partition for partition in chosen if partition not in known]
                # As ``partitions`` does: a partition that is new to the stream is read from its first offset.
                starts |= admin.beginning_offsets(new) if starts else offsets.start_positions(admin, options, new)
                share = max(1, options.max_offsets // max(1, len(chosen)))
                stops = {partition: min(stop, starts[partition] + share) for partition, stop in stops.items()}
        self._planned = stops
        return _to_json(stops)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        starts, stops = _from_json(start), _from_json(end)
        new = [partition for partition in stops if partition not in starts]
        back = next((p for p, stop in stops.items() if stop < starts.get(p, 0)), None)
        if back is not None:
            raise UsageError(
                f"the stream is at offset {starts[back]} of {back}, and its next batch would end at {stops[back]}: the topic was made "
                "anew, or has partitions that the last batch did not know; start with a new checkpoint, or without "
                "maxOffsetsPerTrigger"
            )
        with self._admin() as admin:
            first = admin.beginning_offsets(list(stops))
            starts |= {partition: first[partition] for partition in new}
            if self._options.max_offsets:
                planned = self._planned or {}
                self._planned = {partition: max(stop, planned.get(partition, 0)) for partition, stop in stops.items()}
                ends = {partition: str(stop) for partition, stop in stops.items()}
                if self._options.group:
                    admin.alter_group_offsets(self._options.group, starts, ends)
        lost = [p for p in stops if starts[p] < first[p] and starts[p] < stops[p]]
        if lost and self._options.fail_on_data_loss:
            raise UsageError(
                f"{lost[0]} begins at offset {first[lost[0]]} and the stream is at {starts[lost[0]]}: records were deleted "
                "before they were read (failOnDataLoss=false goes on with what there is)"
            )
        starts |= {partition: first[partition] for partition in lost}
        return self._parts(starts, stops)

    def _planned_before(self, admin: Admin) -> dict[TopicPartition, int]:
        """The end of the batch that was planned last before this reader was made."""
        from broker.client import TopicPartition

        if self._options.planned is None:
            return _planned_by(admin, self._options.group)
        given = self._options.planned.items()
        return {TopicPartition(topic, n): at for topic, numbers in given for n, at in numbers.items()}

    def commit(self, end: dict[str, Any]) -> None:
        """Commit to the group. The checkpoint has the positions that count, so a failure only costs the display of lag: it is
        logged. Where ``maxOffsetsPerTrigger`` counts from the group's positions, it ends the query."""
        if not self._options.group:
            return
        try:
            with self._admin() as admin:
                admin.alter_group_offsets(self._options.group, _from_json(end))
        except TidegateError as error:
            if self._options.max_offsets:
                raise
            logger.warning("the positions of the stream are not committed", group=self._options.group, error=str(error))


def _planned_by(admin: Admin, group: str) -> dict[TopicPartition, int]:
    """The end of the batch that a group's stream planned last: of each partition its metadata, else its offset."""
    positions = admin.group_offsets_with_notes(group).items()
    return {partition: max(offset, int(note) if note.isdecimal() else 0) for partition, (offset, note) in positions}


def _to_json(positions: dict[TopicPartition, int]) -> dict[str, Any]:
    made: dict[str, dict[str, int]] = {}
    for partition, offset in sorted(positions.items()):
        made.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return made


def _from_json(offsets: dict[str, Any]) -> dict[TopicPartition, int]:
    from broker.client import TopicPartition

    return {TopicPartition(topic, int(n)): at for topic, numbers in offsets.items() for n, at in numbers.items()}
