"""A source from a generator of dicts, DataFrames or Arrow tables, with an inferred schema.

@config
class PricesConfig(RowsConfig):
    symbol: str = key("symbol", doc="What to follow.")

class PricesTask(RowsTask[PricesConfig]):
    offset_column = "n"

    def rows(self, offset):
        n = offset["n"] + 1 if offset else 0
        while not self.context.stopping.wait(1):
            yield {"n": n, "symbol": self.config.symbol, "price": ask(self.config.symbol)}
            n += 1

class PricesSource(SourceConnector[PricesConfig]):
    config_class, task_class = PricesConfig, PricesTask
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from connect.api.connector import SourceTask
from connect.api.read_ahead import ReadAhead
from connect.data.batch import RecordBatch, pieces
from connect.data.errors import ConnectError
from connect.data.schema import Schema, SchemaType, schema_from_arrow
from tidegate.kit.config import at_least, config, key, non_empty
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Rows", "RowsConfig", "RowsTask"]

logger = get_logger(__name__)

_LINGER_S: Final = 0.1
"""How long single rows are collected into one batch."""
_SCHEMAS: Final = "tidegate.schemas"
"""The schemas' JSON stored with the position, so that rows after a restart continue with the same types."""
_PATIENCE_S: Final = 0.5
"""How long a poll waits for the first row."""


@config
class RowsConfig:
    """The keys of every source of rows. Inherit it and add your own."""

    topic: str = key("topic", check=non_empty, doc="Topic to write to.", importance="high")
    poll_interval_ms: int = key(
        "poll.interval.ms",
        default=1000,
        check=at_least(0),
        doc="How long to wait after the rows have come to an end before they are asked for again, in milliseconds.",
    )
    batch_max_rows: int = key(
        "batch.max.rows", default=10_000, check=at_least(1), doc="The most rows in one batch.", importance="low"
    )


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with additional facts: the position after the last one, a separate topic."""

    data: Any
    offset: Mapping[str, Any] | None = None
    topic: str | None = None


ConfigT = TypeVar("ConfigT", bound=RowsConfig)


class RowsTask(SourceTask[ConfigT]):
    """Delivers the rows that ``rows`` yields.

    Rows may come as a dict, a list of dicts, a pandas or polars DataFrame, an Arrow table or record batch, or anything
    else with ``__arrow_c_stream__``; in ``Rows`` if they need a specific position or topic. Columns are optional and
    the schema grows as new ones appear or a type has to widen (int to float); a column that is null throughout is left
    out until it has a value. Schemas are stored with the position, so that they continue to grow after a restart.

    Single rows are combined for a tenth of a second, or until the generator waits. A list, a table or ``Rows`` is
    delivered at once.

    The generator runs in a separate thread, at most ``batch.max.rows`` rows, or one list or table, ahead of delivery:
    its rows are delivered while it waits. After an error the old generator has ended before ``rows`` is called again.
    """

    key_columns: ClassVar[Sequence[str]] = ()
    """The columns of the record's key: a single one is the key itself, several are its fields."""
    offset_column: ClassVar[str | None] = None
    """The column whose last value is the position: after a restart ``rows`` gets it as ``{column: value}``."""
    schema: ClassVar[Schema | None] = None
    """A fixed schema: columns are cast to it and none is added."""

    @abstractmethod
    def rows(self, offset: Mapping[str, Any] | None) -> Iterator[Any]:
        """Rows after ``offset`` (None: from the beginning). When it has ended, it is called again with the latest
        offset.

        It runs in a separate thread: wait on ``self.context.stopping``, so that the task can end. Open resources that
        are bound to their thread (``sqlite3``) here, not in ``start``. It has ended when ``stop`` releases
        ``resources``.
        """

    @property
    def source_partition(self) -> Mapping[str, Any]:
        """The partition of the position; tasks that share work each need a different one."""
        return {"connector": self.context.connector}

    def start(self) -> None:
        from connect.data.json_schema import schema_from_json

        position = dict(self.context.offset(self.source_partition) or {})
        self._schemas_text = str(position.pop(_SCHEMAS, "{}"))
        try:
            self._schemas: dict[str, Any] = dict(json.loads(self._schemas_text))
            known = {topic: schema_from_json(form) for topic, form in self._schemas.items()}
            if other := [topic for topic, schema in known.items() if schema.type is not SchemaType.STRUCT]:
                raise ConnectError(f"the schema of {other[0]} is {known[other[0]].type.value} and should be struct")
            self._arrow = {topic: schema.arrow_type for topic, schema in known.items()}
        except (ValueError, TypeError, RecursionError, ConnectError) as error:
            raise ConnectError(
                f"the position of {self.context.connector} has {_SCHEMAS}={self._schemas_text[:200]!r}, which are no schemas by topic "
                f"({error}): set the position without it, and they are found anew"
            ) from error
        self._position: Mapping[str, Any] | None = position or None
        self._reader: ReadAhead[Any] | None = None
        self._failed = self._ends_reader = False

    def poll(self) -> Sequence[RecordBatch]:
        reader = self._reader
        if reader is None:
            if not self._ends_reader:
                self._ends_reader = True
                self.resources.callback(self._end_reader)
            reader = self._reader = self._begun()
        elif self._failed:
            if not reader.join(_PATIENCE_S):
                return []
            reader, self._failed = self._begun(), False
            self._reader = reader
        before = self._position
        try:
            items, ended = reader.take(_PATIENCE_S, _LINGER_S)
            batches = [batch for rows in _gathered(items) for batch in self._batches(rows)]
        except BaseException:
            # None of these rows is delivered: the next poll requests them again, after the old iterator has ended.
            self._position, self._failed = before, True
            reader.give_up()
            raise
        if ended:
            self._reader = None
            if not items:
                self.context.stopping.wait(self.config.poll_interval_ms / 1000)
        return batches

    def _begun(self) -> ReadAhead[Any]:
        position = self._position
        return ReadAhead(
            lambda: iter(self.rows(position)),
            limit=self.config.batch_max_rows,
            alone=lambda item: item.__class__ is not dict and not isinstance(item, Mapping),
            name=f"rows of {self.context.connector}",
        )

    def _end_reader(self) -> None:
        if self._reader is None:
            return
        self._reader.give_up()
        if self.context.stopping.is_set():
            self._reader.join(None)  # if it does not end, ``cancel`` is called
        elif not self._reader.join(_PATIENCE_S):
            logger.warning("rows are still waited for, and will be dropped", connector=self.context.connector)

    def _batches(self, rows: Rows) -> Iterator[RecordBatch]:
        topic = rows.topic or self.config.topic
        column = self._widened(topic, _structs(rows.data))
        for start, length in pieces(column, self.config.batch_max_rows):
            last = start + length == len(column)
            yield self._batch(topic, column.slice(start, length), rows.offset if last else None)
        if not len(column) and rows.offset is not None:
            self._position = rows.offset

    def _widened(self, topic: str, column: pa.StructArray) -> pa.StructArray:
        """The column converted to its topic's type, which is extended by new fields."""
        import pyarrow as pa

        arrow = self._arrow.get(topic) if self.schema is None else self.schema.arrow_type
        if arrow is None or (self.schema is None and column.type != arrow):
            from connect.data.json_schema import schema_to_json

            known = pa.schema([] if arrow is None else list(arrow))
            try:
                grown = pa.unify_schemas([known, pa.schema(list(column.type))], promote_options="permissive")
            except pa.ArrowTypeError as error:
                raise ConnectError(f"the rows for {topic} have changed in type: {error}") from error
            widened = schema_from_arrow(pa.struct([field.with_nullable(True) for field in grown]))
            arrow = self._arrow[topic] = widened.arrow_type
            self._schemas[topic] = schema_to_json(widened)
            self._schemas_text = json.dumps(self._schemas, separators=(",", ":"))
        if column.type == arrow:
            return column
        try:
            return _cast(column, arrow)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ConnectError(f"rows for {topic} do not fit their schema: {error}") from error

    def _batch(self, topic: str, column: pa.StructArray, offset: Mapping[str, Any] | None) -> RecordBatch:
        schema = self.schema or schema_from_arrow(column.type, name=_record_name(topic))
        keys = self._keys(column)
        if offset is None and self.offset_column is not None:
            offset = {self.offset_column: _as_json(column.field(self.offset_column)[-1].as_py())}
        if offset is not None:
            self._position = offset
        return RecordBatch(
            topic=topic,
            values=column,
            value_schema=schema,
            keys=keys,
            key_schema=None if keys is None else schema_from_arrow(keys.type, name=_key_name(topic, keys)),
            source_partition=self.source_partition,
            source_offset=offset if offset is None or self.schema else {**offset, _SCHEMAS: self._schemas_text},
        )

    def _keys(self, column: pa.StructArray) -> pa.Array | None:
        import pyarrow as pa

        for name in (*self.key_columns, *([self.offset_column] if self.offset_column else ())):
            if column.type.get_field_index(name) < 0:
                there = ", ".join(field.name for field in column.type) or "none"
                raise ConnectError(f"{type(self).__name__} needs the column {name!r}; its rows have: {there}")
        if not self.key_columns:
            return None
        if len(self.key_columns) == 1:
            return column.field(self.key_columns[0])
        fields = [column.type.field(name) for name in self.key_columns]
        return pa.StructArray.from_arrays([column.field(field.name) for field in fields], fields=fields)


def _gathered(items: Sequence[Any]) -> Iterator[Rows]:
    """The items to deliver: single rows combined, in order."""
    single: list[Mapping[str, Any]] = []
    for item in items:
        if isinstance(item, Mapping):
            single.append(item)
            continue
        if single:
            yield Rows(single)
            single = []
        yield item if isinstance(item, Rows) else Rows(item)
    if single:
        yield Rows(single)


def _structs(data: Any) -> pa.StructArray:
    """Rows of any form as a struct array, without columns that are null throughout."""
    import pyarrow as pa

    if isinstance(data, Mapping):
        data = [data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        try:
            structs = pa.array(data, from_pandas=True) if data else pa.array([], pa.struct([]))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ConnectError(f"rows cannot be put into columns: {error}") from error
        if not pa.types.is_struct(structs.type):
            raise ConnectError(f"rows have to be dicts by column name, not {type(data[0]).__name__}")
        table = pa.Table.from_arrays(structs.flatten(), names=[field.name for field in structs.type])
    else:
        table = _table(data)
    table = table.select([field.name for field in table.schema if not pa.types.is_null(field.type)])
    return table.to_struct_array().combine_chunks() if table.num_columns else pa.array([], pa.struct([]))


def _table(data: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    raise ConnectError(
        f"rows cannot be read from a {type(data).__name__}: yield dicts, a DataFrame of pandas or polars, or an Arrow table"
    )


def _cast(column: pa.StructArray, arrow: pa.StructType) -> pa.StructArray:
    """Cast by field name; missing fields are null. Times are truncated to Connect's milliseconds, all else must fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    made = []
    for field in arrow:
        at = column.type.get_field_index(field.name)
        if at < 0:
            made.append(pa.nulls(len(column), field.type))
            continue
        part = column.field(at)
        if pa.types.is_timestamp(part.type):
            part = pc.floor_temporal(part, unit="millisecond")
        made.append(pc.cast(part, field.type, safe=not pa.types.is_temporal(field.type)))
    return pa.StructArray.from_arrays(made, fields=list(arrow))


def _as_json(value: Any) -> Any:
    """A column's value in a form for offsets."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _record_name(topic: str) -> str:
    """The topic as a schema name: Avro's records need one, of letters, digits, dots and underscores."""
    parts = ["".join(c if c.isalnum() and c.isascii() else "_" for c in part) for part in topic.split(".") if part]
    named = ".".join(f"_{part}" if part[0].isdigit() else part for part in parts)
    return f"{named}.Value" if named else "Value"


def _key_name(topic: str, keys: pa.Array) -> str | None:
    import pyarrow as pa

    return _record_name(topic).removesuffix("Value") + "Key" if pa.types.is_struct(keys.type) else None
