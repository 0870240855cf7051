"""The form of a column: its schema, and the conversions to Arrow from the server's text and from the log's bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError, Schema, SchemaType
from connectors.mysql.binlog.rows import Cells, Physical

__all__ = ["Form", "LogColumn", "Modes", "cast", "each", "number", "same", "schema_of"]


class LogColumn(NamedTuple):
    """A column's values in row images of the binary log: the bytes (both as bytes and as numbers), the positions, the
    storage format.
    """

    data: bytes
    numbers: npt.NDArray[np.uint8]
    cells: Cells
    physical: Physical


Column1: TypeAlias = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class Modes:
    """The configuration's settings for values, in lower case."""

    decimal: str = "precise"
    time: str = "adaptive_time_microseconds"
    binary: str = "bytes"
    bigint_unsigned: str = "long"
    adjust_years: bool = True
    include_unknown: bool = False
    unavailable: str = "__debezium_unavailable_value"


@dataclass(frozen=True, slots=True)
class Form:
    """``text`` converts the bytes of the server's text.

    ``large`` marks types whose values the log may omit when they did not change.
    """

    schema: Schema
    text: Column1
    log: Callable[[LogColumn], pa.Array]
    finish: Column1
    large: bool = False

    def of_text(self, column: pa.Array) -> pa.Array:
        return self.finish(self.text(column))

    def of_log(self, column: LogColumn) -> pa.Array:
        return self.finish(self.log(column))


def schema_of(kind: SchemaType, name: str | None = None, **more: Any) -> Schema:
    return Schema(kind, name=name, version=1 if name else None, **more)


def same(column: pa.Array) -> pa.Array:
    return column


def cast(arrow: pa.DataType) -> Column1:
    def convert(column: pa.Array) -> pa.Array:
        try:
            return column if column.type == arrow else pc.cast(column, arrow)
        except pa.ArrowInvalid as error:
            raise DataError(str(error)) from error

    return convert


def each(read: Callable[[Any], Any], arrow: pa.DataType) -> Column1:
    """Converts value by value; nulls stay null."""
    return lambda column: pa.array([None if v is None else read(v) for v in column.to_pylist()], arrow)


def number(arrow: pa.DataType) -> Column1:
    return lambda column: cast(arrow)(column.cast(pa.string()))
