"""Iceberg tables as readers see them: by pyiceberg's catalogs, and by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from connectors.iceberg.catalog_properties import catalog_properties

__all__ = ["duckdb_rows", "iceberg_catalog", "iceberg_rows", "iceberg_table", "local_catalog"]


def local_catalog(folder: Path) -> dict[str, str]:
    """The catalog's keys, as for Iceberg's JdbcCatalog."""
    return {
        "iceberg.catalog.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
    }


@contextmanager
def iceberg_catalog(properties: Mapping[str, str]) -> Iterator[Catalog]:
    """The catalog of a connector's configuration."""
    prefix = "iceberg.catalog."
    given = {name.removeprefix(prefix): value for name, value in properties.items() if name.startswith(prefix)}
    catalog = load_catalog(properties.get("iceberg.catalog", "iceberg"), **catalog_properties(given, {}))
    try:
        yield catalog
    finally:
        catalog.close()


def iceberg_table(properties: Mapping[str, str], name: str) -> Table:
    with iceberg_catalog(properties) as catalog:
        return catalog.load_table(name)


def iceberg_rows(properties: Mapping[str, str], name: str, *columns: str) -> pa.Table:
    """The rows of a table by pyiceberg; none if there is no table."""
    try:
        return iceberg_table(properties, name).scan(selected_fields=columns or ("*",)).to_arrow()
    except NoSuchTableError:
        return pa.table({column: pa.array([], pa.int64()) for column in columns})


def duckdb_rows(properties: Mapping[str, str], name: str, query: str) -> list[dict[str, Any]]:
    """The result of a DuckDB query over a table's files; the query calls them ``rows``."""
    files = [
        task.file.file_path.removeprefix("file://") for task in iceberg_table(properties, name).scan().plan_files()
    ]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW rows AS SELECT * FROM read_parquet({files!r}, union_by_name=true)")
        connection.execute("SET TimeZone = 'UTC'")
        return connection.sql(query).to_arrow_table().to_pylist(maps_as_pydicts="strict")
