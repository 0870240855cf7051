"""The shape of a table's events: its columns' forms, its key, its layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from connect.api import DataError, Field, Schema, SchemaType
from connectors.debezium.envelope import source_block
from connectors.debezium.events import Layout
from connectors.debezium.filters import Filters
from connectors.debezium.layouts import Layouts
from connectors.mysql.config import MySqlConfig
from connectors.mysql.forms import Form, Modes
from connectors.mysql.structure import Column, Structure, Table, TableName
from connectors.mysql.types import form_of, is_text

__all__ = ["Shape", "Shapes", "source_schema"]

_TEXT: Final = Schema(SchemaType.STRING)
_I64: Final = Schema(SchemaType.INT64)


def source_schema(connector: str) -> Schema:
    """``connector`` is mysql or mariadb."""
    fields = [
        Field("table", _TEXT.as_optional()),
        Field("server_id", _I64),
        Field("gtid", _TEXT.as_optional()),
        Field("file", _TEXT),
        Field("pos", _I64),
        Field("row", Schema(SchemaType.INT32)),
        Field("thread", _I64.as_optional()),
        Field("query", _TEXT.as_optional()),
    ]
    return source_block(f"io.debezium.connector.{connector}.Source", fields)


@dataclass(frozen=True, slots=True)
class Shape:
    """How a table's rows become events.

    ``positions`` are the indices of the captured columns in the table, with one of ``forms`` each; ``key_positions``
    are the indices of the key columns among the captured ones. Columns at the end may be for keys only: a key contains
    its columns unchanged, even if rows omit or mask them.
    """

    table: Table
    layout: Layout
    positions: tuple[int, ...]
    forms: tuple[Form, ...]
    key_positions: tuple[int, ...]


class Shapes:
    """Builds shapes from the configuration and the current structure."""

    def __init__(self, config: MySqlConfig, filters: Filters, structure: Structure, connector: str) -> None:
        self._config, self.filters, self._structure = config, filters, structure
        self.source = source_schema(connector)
        self._layouts = Layouts(config, self.source)
        self._modes = Modes(
            decimal=config.decimal_mode.lower(),
            time=config.time_mode.lower(),
            binary=config.binary_mode.lower(),
            bigint_unsigned=config.bigint_unsigned_mode.lower(),
            adjust_years=config.adjust_years,
            include_unknown=config.include_unknown,
            unavailable=config.unavailable_value,
        )
        self._made: dict[TableName, Shape] = {}

    def topic(self, *parts: str) -> str:
        return self._layouts.topic(*parts)

    def is_captured(self, name: TableName) -> bool:
        full = ".".join(name)
        return self._config.is_signals(full) or (self._config.database_is_meant(name[0]) and self.filters.table(full))

    def get(self, name: TableName) -> Shape | None:
        """The shape of a captured table in its current structure; None where that is unknown."""
        table = self._structure.tables.get(name)
        if table is None:
            return None
        made = self._made.get(name)
        if made is None or made.table is not table:
            made = self._made[name] = self._of(table)
        return made

    def _of(self, table: Table) -> Shape:
        chosen = self.filters.key_of(table.full_name)
        key = table.key_columns if chosen is None else chosen
        in_rows: list[tuple[int, Form]] = []
        in_keys: list[tuple[int, Form]] = []
        for at, column in enumerate(table.columns):
            form = self._form(table, column)
            if form is None:
                continue
            shown = self._shown(table, column, form) if self.filters.column(table.full_name, column.name) else None
            if shown is not None:
                in_rows.append((at, shown))
            if column.name in key and shown is not form:
                in_keys.append((at, form))
        columns, more = ([(table.columns[at].name, form.schema) for at, form in some] for some in (in_rows, in_keys))
        layout, key_positions = self._layouts.of(table.name, columns, key, more)
        positions, forms = zip(*in_rows, *in_keys, strict=True) if in_rows or in_keys else ((), ())
        return Shape(table, layout, tuple(positions), tuple(forms), key_positions)

    def _form(self, table: Table, column: Column) -> Form | None:
        form = form_of(column, self._modes)
        if form is None:
            return None
        schema = form.schema.as_optional(column.optional)
        if column.default is not None and not column.auto_increment:
            schema = replace(schema, default=_default(column, form))
        name = table.full_name, column.name
        if self.filters.propagated(*name, column.type):
            schema = replace(schema, parameters={**schema.parameters, **source_parameters(column)})
        return replace(form, schema=schema)

    def _shown(self, table: Table, column: Column, form: Form) -> Form:
        """The form used in rows: masked or truncated as configured.

        As in the original, the schema parameters are set for columns of any type, but only texts, ENUM and SET are
        changed.
        """
        change = self.filters.mask(table.full_name, column.name, column.length)
        if change is None:
            return form
        (alter, parameters), inner = change, form.finish
        schema = replace(form.schema, parameters={**form.schema.parameters, **parameters})
        if not is_text(column) or schema.type is not SchemaType.STRING:
            return replace(form, schema=schema)
        return replace(form, schema=schema, finish=lambda column: alter(inner(column)))


def source_parameters(column: Column) -> dict[str, str]:
    """The schema parameters that ``column.propagate.source.type`` adds."""
    made = {"__debezium.source.column.type": column.type}
    if column.length is not None:
        made["__debezium.source.column.length"] = str(column.length)
    if column.scale is not None:
        made["__debezium.source.column.scale"] = str(column.scale)
    made["__debezium.source.column.name"] = column.name
    if column.comment is not None:
        made["__debezium.source.column.comment"] = column.comment
    return made


def _default(column: Column, form: Form) -> Any:
    """The value of a default; None where the form cannot hold it."""
    text = column.default
    assert text is not None
    if form.schema.type is SchemaType.BYTES and form.schema.name is None:
        literal = pa.array([text.encode()], pa.binary())
    else:
        literal = pa.array([_number_text(text) if _is_number(form) else text], pa.string())
    try:
        return form.of_text(literal).to_pylist()[0]
    except (DataError, ValueError, ArithmeticError, pa.ArrowException):
        return None


def _is_number(form: Form) -> bool:
    return form.schema.type in (SchemaType.INT16, SchemaType.INT32, SchemaType.INT64, SchemaType.BOOLEAN)


def _number_text(text: str) -> str:
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return "1" if lowered == "true" else "0"
    return text
