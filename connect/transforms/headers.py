"""The transformations of headers: DropHeaders, InsertHeader and HeaderFrom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from connect.api import (
    DataError,
    Header,
    Problem,
    RecordBatch,
    Schema,
    Transformation,
    config,
    key,
    one_of,
)
from connect.data.header_changes import added, mapped
from connect.data.java.values import SchemaAndValue, parse_string
from connect.data.structs import struct_of
from connect.transforms.sides import (
    SideTransformation,
    copied_basics,
    map_texts,
    replace_null_key,
    required_struct,
    some,
    struct_columns,
)
from tidegate.kit.config import all_of, distinct

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DropHeaders", "HeaderFromKey", "HeaderFromValue", "InsertHeader"]


@config
class DropHeadersConfig:
    """Keys of DropHeaders."""

    headers: list[str] = key(
        "headers", importance="high", check=all_of(some, distinct), doc="The names of the headers to be removed."
    )


class DropHeaders(Transformation):
    """Drops all headers with the given names."""

    config_class = DropHeadersConfig
    config: DropHeadersConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        if batch.headers is None:
            return [batch]
        dropped = frozenset(self.config.headers)
        return [mapped(batch, lambda row, headers: [h for h in headers if h.key not in dropped])]


@config
class InsertHeaderConfig:
    """Keys of InsertHeader."""

    header: str = key("header", importance="high", doc="The name of the header.")
    literal: str = key(
        "value.literal",
        importance="high",
        doc="The header's value on all records: a number, boolean, date, array or map where the text is one, else the text.",
    )


class InsertHeader(Transformation):
    """Adds one header of a fixed value."""

    config_class = InsertHeaderConfig
    config: InsertHeaderConfig
    traces_fields = True

    @cached_property
    def _value(self) -> SchemaAndValue:
        return parse_string(self.config.literal)

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        header = Header(self.config.header, self._value.value, self._value.schema)
        return [added(batch, [(header,)] * len(batch))]


def _all_given(value: list[str]) -> str | None:
    return None if value else "Empty list"


@config
class HeaderFromConfig:
    """Keys of HeaderFrom."""

    fields: list[str] = key("fields", importance="high", check=_all_given, doc="Fields whose values become headers.")
    headers: list[str] = key(
        "headers", importance="high", check=_all_given, doc="The headers' names, in the order of the fields."
    )
    operation: str = key(
        "operation",
        importance="high",
        check=one_of("move", "copy"),
        doc="move takes the fields out of the key or value, copy leaves them there.",
    )
    replace_null: bool = replace_null_key()

    def problems(self) -> Iterable[Problem]:
        if len(self.headers) != len(self.fields):
            yield Problem("headers", "'fields' config must have the same number of elements as 'headers' config.")


class _HeaderFrom(SideTransformation):
    config_class = HeaderFromConfig
    config: HeaderFromConfig
    traces_fields = True

    @property
    def _purpose(self) -> str:
        return f"header {self.config.operation}"

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        column, schema = self.column(batch)
        kind = "Map objects supported in absence of schema" if schema is None else "Struct objects supported"
        error = f"Only {kind} for [{self._purpose}], found: null"
        if column is None:
            raise DataError(error)
        if column.null_count:
            raise DataError(error, rows=[row for row, null in enumerate(column.is_null().to_pylist()) if null])
        if schema is None:
            return [self._of_texts(batch, column)]
        made, made_schema = self.change(batch, schema, column)
        return [self.changed(added(batch, self._values(schema, column)), made, made_schema)]

    def _values(self, schema: Schema, column: pa.Array) -> list[list[Header]]:
        parts = struct_columns(schema, column, self._purpose, defaults=self.config.replace_null)
        columns = []
        for name, header in zip(self.config.fields, self.config.headers, strict=True):
            if name not in schema.field_names:
                raise DataError(f"no field {name!r} for header {header!r}; there are: {', '.join(schema.field_names)}")
            member = schema.field(name).schema
            values = parts[schema.field_names.index(name)].to_pylist(maps_as_pydicts="strict")
            columns.append([Header(header, value, member) for value in values])
        return [list(row) for row in zip(*columns, strict=True)]

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        required_struct(schema, self._purpose)
        if self.config.operation == "copy":
            return column, schema
        parts = struct_columns(schema, column, self._purpose, defaults=self.config.replace_null)
        kept = [index for index, member in enumerate(schema.fields) if member.name not in self.config.fields]
        made = copied_basics(schema, [schema.fields[index] for index in kept])
        return struct_of(made, [parts[index] for index in kept], column), made

    def _of_texts(self, batch: RecordBatch, column: pa.Array) -> RecordBatch:
        more: list[list[Header]] = []
        moves = self.config.operation == "move"

        def take(value: dict[str, Any], row: int) -> dict[str, Any]:  # noqa: ARG001
            pairs = zip(self.config.fields, self.config.headers, strict=True)
            more.append([Header(header, value.get(name)) for name, header in pairs])
            return {name: item for name, item in value.items() if not moves or name not in self.config.fields}

        changed = map_texts(column, take, self._purpose, nulls=False)
        return self.changed(added(batch, more), changed, None)

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        raise NotImplementedError("headers change along with the texts: see apply")

    def field_after(self, path: str) -> str | None:
        return None if self.config.operation == "move" and path.partition(".")[0] in self.config.fields else path


class HeaderFromKey(_HeaderFrom):
    """From the key."""

    side = "key"


class HeaderFromValue(_HeaderFrom):
    """From the value."""

    side = "value"
