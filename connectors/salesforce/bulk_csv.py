"""The CSV format of the Bulk API 2.0, in both directions: columns of records to cells, query results to columns.

In a file for Salesforce an empty cell leaves its field unchanged, and ``#N/A`` clears it. In results an empty cell is
null.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import time
from typing import TYPE_CHECKING, Any, Final

from connect.api import ConnectError, DataError, RecordBatch, Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NULL", "from_csv", "rows_of", "text_columns", "to_csv"]

NULL: Final = "#N/A"


def text_columns(batch: RecordBatch) -> pa.Table:
    """The fields of a batch's records as texts; null where they are null or an empty text, which Salesforce stores as
    null.

    ``""`` marks fields that a record without schema does not have. Structs, arrays and maps are left out, because a
    cell cannot contain them. Raises DataError where records are not structs.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if batch.value_schema is None:
        return _of_json(batch)
    if not pa.types.is_struct(batch.values.type):
        raise DataError(
            f"records of {batch.topic} have to be structs or JSON objects of fields, not {batch.values.type}"
        )
    table = batch.table()
    texts = {
        name: pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
        for name, column in zip(table.column_names, table.columns, strict=True)
        if not pa.types.is_nested(column.type)
        for text in [_texts(column)]
    }
    return pa.table(texts)


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_timestamp(kind):
        return pc.replace_substring(pc.cast(column, pa.string()), " ", "T")
    if pa.types.is_time(kind):
        return pc.binary_join_element_wise(pc.cast(column, pa.string()), "Z", "")
    if pa.types.is_decimal(kind):
        return pa.chunked_array([[None if v is None else f"{v:f}" for v in column.to_pylist()]], pa.string())
    if pa.types.is_binary(kind):
        import base64

        return pa.chunked_array(
            [[None if v is None else base64.b64encode(v).decode() for v in column.to_pylist()]], pa.string()
        )
    return pc.cast(column, pa.string())


def _of_json(batch: RecordBatch) -> pa.Table:
    import pyarrow as pa

    rows = [None if text is None else json.loads(text) for text in batch.values.to_pylist()]
    names: dict[str, None] = {}
    for row in rows:
        if row is not None and not isinstance(row, Mapping):
            raise DataError(f"records of {batch.topic} have to be structs or JSON objects of fields, not {row!r:.80}")
        names.update({name: None for name, value in (row or {}).items() if not isinstance(value, dict | list)})
    return pa.table(
        {name: pa.array([_cell(row, name) for row in rows], pa.string()) for name in names}
        if names
        else {"Id": pa.array([""] * len(rows), pa.string())}
    )


def _cell(row: Mapping[str, Any] | None, name: str) -> str | None:
    if row is None or name not in row or isinstance(row[name], dict | list):
        return ""
    value = row[name]
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value)


def to_csv(table: pa.Table) -> bytes:
    """A table of texts without nulls as CSV with a header line. Every cell is quoted; lines end with LF."""
    import pyarrow.csv

    out = io.BytesIO()
    pyarrow.csv.write_csv(table, out, pyarrow.csv.WriteOptions(quoting_style="all_valid"))
    return out.getvalue()


def rows_of(text: str) -> Iterator[dict[str, str]]:
    """The lines of a result as dictionaries; raises ConnectError where it is not valid CSV."""
    if not text.strip():
        return
    try:
        yield from csv.DictReader(io.StringIO(text, newline=""), strict=True, restval="")
    except csv.Error as error:
        raise ConnectError(f"Salesforce answered results that are not CSV: {error}") from error


def from_csv(data: bytes, schema: Schema, names: Sequence[str]) -> dict[str, pa.Array]:
    """The columns ``names`` of a query's results in the types of ``schema``'s fields.

    Raises ConnectError where the CSV is invalid, a column is missing, or a value has another type.
    """
    import pyarrow as pa
    import pyarrow.csv

    texts = pa.string()
    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(data),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            read_options=pyarrow.csv.ReadOptions(block_size=max(1 << 20, len(data) + 1), use_threads=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, texts),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                include_columns=list(names),
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise ConnectError(f"the results of the query cannot be read: {error}") from error
    columns = {}
    for name in names:
        column = table.column(name).combine_chunks()
        try:
            columns[name] = _typed(column, schema.field(name).schema)
        except (pa.ArrowInvalid, ValueError) as error:
            raise ConnectError(f"the results of the query have another type in the column {name}: {error}") from error
    return columns


def _typed(column: pa.Array, schema: Schema) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow_type = schema.arrow_type
    if pa.types.is_time(arrow_type):
        parsed = [None if v is None else time.fromisoformat(v.removesuffix("Z")) for v in column.to_pylist()]
        return pa.array(parsed, arrow_type)
    try:
        return pc.cast(column, arrow_type)
    except pa.ArrowInvalid:
        if not pa.types.is_integer(arrow_type):
            raise
        return pc.cast(pc.cast(column, pa.float64()), arrow_type)  # 3 may be written as 3.0
