"""Tables from the catalog, and the shape of their events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg
import pyarrow as pa

from connect.api import Field, Schema, SchemaType
from connectors.debezium.envelope import source_block
from connectors.debezium.events import Layout
from connectors.debezium.filters import Filters
from connectors.debezium.layouts import Layouts
from connectors.postgres.column_types import ColumnType, character_length, source_parameters
from connectors.postgres.config import PostgresConfig
from connectors.postgres.defaults import default_value
from connectors.postgres.types import Form, Modes, form_of

__all__ = ["SOURCE", "Catalog", "Column", "Shape", "Shapes", "Table"]

_I64: Final = Schema(SchemaType.INT64, optional=True)
_TEXT: Final = Schema(SchemaType.STRING)
SOURCE: Final = source_block(
    "io.debezium.connector.postgresql.Source",
    [
        Field("schema", _TEXT),
        Field("table", _TEXT),
        Field("txId", _I64),
        Field("lsn", _I64),
        Field("xmin", _I64),
        Field("origin", _TEXT.as_optional()),
        Field("origin_lsn", _I64),
    ],
)
_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "char", "name", "citext"})
_SYSTEM: Final = ("pg_catalog", "information_schema", "pg_toast")


@dataclass(frozen=True, slots=True)
class Column:
    """``default`` is the SQL expression, or None."""

    name: str
    type: ColumnType
    optional: bool
    default: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """``key`` are the columns of the primary key, else of a unique index whose columns are all NOT NULL."""

    oid: int
    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    identity: str = "d"
    kind: str = "r"

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        return ".".join('"' + part.replace('"', '""') + '"' for part in (self.schema, self.name))


class Catalog:
    """Queries the system catalog over a connection; caches types."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self._types: dict[int, tuple[Any, ...]] = {}

    def names(self) -> list[tuple[int, str, str]]:
        """(oid, schema, name) of every permanent user table, including partitioned ones, sorted by name."""
        rows = self.connection.execute(
            "SELECT c.oid::int8, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND n.nspname <> ALL (%s) ORDER BY 2, 3",
            [list(_SYSTEM)],
        )
        return list(rows.fetchall())

    def tables(self, oids: Sequence[int]) -> list[Table]:
        """Those of the tables that exist, in the given order."""
        if not oids:
            return []
        heads = self.connection.execute(
            "SELECT c.oid::int8, n.nspname, c.relname, c.relreplident::text, c.relkind::text FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY (%s)",
            [list(oids)],
        ).fetchall()
        columns: dict[int, list[Column]] = {}
        for oid, name, type_oid, modifier, required, default, comment in self.connection.execute(
            "SELECT a.attrelid::int8, a.attname, a.atttypid::int8, a.atttypmod, a.attnotnull, pg_get_expr(d.adbin, d.adrelid), "
            "col_description(a.attrelid, a.attnum) "
            "FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
            "WHERE a.attrelid = ANY (%s) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY 1, a.attnum",
            [list(oids)],
        ):
            columns.setdefault(oid, []).append(
                Column(name, self.type(type_oid, modifier), not required, default, comment)
            )
        keys: dict[int, tuple[str, ...]] = {}
        for oid, names in self.connection.execute(
            "SELECT i.indrelid::int8, (SELECT array_agg(a.attname::text ORDER BY k.n) FROM unnest(i.indkey::int2[]) "
            "WITH ORDINALITY k(attnum, n) JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum "
            "WHERE k.n <= i.indnkeyatts) FROM pg_index i WHERE i.indrelid = ANY (%s) AND i.indisunique AND i.indisvalid "
            "AND i.indpred IS NULL AND i.indexprs IS NULL AND NOT EXISTS (SELECT FROM pg_attribute a "
            "WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[]) AND NOT a.attnotnull) "
            "ORDER BY i.indisprimary, i.indexrelid DESC",  # the last one wins
            [list(oids)],
        ):
            keys[oid] = tuple(names)
        made = {
            oid: Table(oid, schema, name, tuple(columns.get(oid, ())), keys.get(oid, ()), identity, kind)
            for oid, schema, name, identity, kind in heads
        }
        return [made[oid] for oid in oids if oid in made]

    def row_counts(self, oids: Sequence[int]) -> dict[int, float]:
        """The server's estimates of the tables' row counts; -1 where there is none."""
        rows = self.connection.execute(
            "SELECT oid::int8, reltuples::float8 FROM pg_class WHERE oid = ANY (%s)", [list(oids)]
        )
        return dict.fromkeys(oids, -1.0) | dict(rows.fetchall())

    def type(self, oid: int, modifier: int) -> ColumnType:
        if oid not in self._types:
            self._load_types()
        if oid not in self._types:
            return ColumnType(f"oid {oid}", modifier)
        name, kind, base, base_modifier, element, labels = self._types[oid]
        if kind == "d":
            return replace(self.type(base, base_modifier if modifier < 0 else modifier), declared=name)
        if name.startswith("_") and element:
            inner = self.type(element, modifier)
            return ColumnType(name, inner.modifier, inner.labels, inner.name)
        return ColumnType(name, modifier, tuple(labels or ()))

    def _load_types(self) -> None:
        for oid, *rest in self.connection.execute(
            "SELECT t.oid::int8, t.typname, t.typtype::text, t.typbasetype::int8, t.typtypmod, t.typelem::int8, "
            "(SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid) FROM pg_type t"
        ):
            self._types[oid] = tuple(rest)


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
    """Builds shapes from the configuration."""

    def __init__(self, config: PostgresConfig, filters: Filters) -> None:
        self._config = config
        self.filters = filters
        self.modes = Modes(
            decimal=config.decimal_mode.lower(),
            time=config.time_mode.lower(),
            binary=config.binary_mode.lower(),
            interval=config.interval_mode.lower(),
            hstore=config.hstore_mode.lower(),
            include_unknown=config.include_unknown,
            unavailable=config.unavailable_value,
        )
        self._layouts = Layouts(config, SOURCE)
        self.topic = self._layouts.topic

    def of(self, table: Table) -> Shape:
        key = self._key(table)
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
        layout, key_positions = self._layouts.of((table.schema, table.name), columns, key, more)
        positions, forms = zip(*in_rows, *in_keys, strict=True) if in_rows or in_keys else ((), ())
        return Shape(table, layout, tuple(positions), tuple(forms), key_positions)

    def _key(self, table: Table) -> Sequence[str]:
        chosen = self.filters.key_of(table.full_name)
        return table.key if chosen is None else chosen

    def _form(self, table: Table, column: Column) -> Form | None:
        form = form_of(column.type, self.modes)
        if form is None:
            return None
        schema = form.schema.as_optional(column.optional)
        if column.default is not None:
            schema = replace(schema, default=default_value(column.default, column.type, form))
        name = column.name
        if self.filters.propagated(table.full_name, name, column.type.declared or column.type.name):
            told = source_parameters(name, column.type)
            if self._config.include_comments and column.comment:
                told["__debezium.source.column.comment"] = column.comment
            schema = replace(schema, parameters={**schema.parameters, **told})
        return replace(form, schema=schema)

    def _shown(self, table: Table, column: Column, form: Form) -> Form:
        """The form used in rows: masked or truncated as configured.

        As in the original, the schema parameters are set for columns of any type, but only texts and enums are changed.
        """
        change = self.filters.mask(table.full_name, column.name, character_length(column.type))
        if change is None:
            return form
        (shown, parameters), made = change, form.convert
        schema = replace(form.schema, parameters={**form.schema.parameters, **parameters})
        if not (column.type.labels or column.type.name in _TEXTS) or schema.type is not SchemaType.STRING:
            return replace(form, schema=schema)
        kept = form.unavailable
        if isinstance(kept, str):
            kept = shown(pa.array([kept]))[0].as_py()
        return replace(form, schema=schema, convert=lambda column: shown(made(column)), unavailable=kept)


def captured(names: Iterable[tuple[int, str, str]], filters: Filters, config: PostgresConfig) -> list[int]:
    """The oids of the tables that a configuration selects, in the order of ``table.include.list``; sorted by name where
    one entry selects several.
    """
    meant = [
        (oid, f"{schema}.{name}")
        for oid, schema, name in names
        if config.schema_is_meant(schema) and filters.table(f"{schema}.{name}")
    ]
    return [oid for oid, _ in sorted(meant, key=lambda table: filters.rank(table[1]))]
