"""Delta tables as readers see them: by delta-rs, and by Polars."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

__all__ = ["delta_rows", "delta_table", "local_warehouse"]


def local_warehouse(folder: Path) -> dict[str, str]:
    return {"delta.warehouse": f"file://{folder}/lake"}


def delta_table(properties: Mapping[str, str], name: str) -> DeltaTable:
    prefix = "delta.storage."
    options = {key.removeprefix(prefix): value for key, value in properties.items() if key.startswith(prefix)}
    if any(value.startswith("http://") for value in options.values()):
        options["aws_allow_http"] = "true"
    folder = "/".join([properties["delta.warehouse"], *name.split(".")])
    return DeltaTable(folder.removeprefix("file://"), storage_options=options)


def delta_rows(properties: Mapping[str, str], name: str, *columns: str) -> pa.Table:
    """The rows of a table; none if there is no table."""
    try:
        return delta_table(properties, name).to_pyarrow_table(columns=list(columns) or None)
    except TableNotFoundError:
        return pa.table({column: pa.array([], pa.int64()) for column in columns})
