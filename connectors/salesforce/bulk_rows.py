"""Converts records to rows of a job's file: the operation, the record's identity, and the writable fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connect.api import DataError, JavaRegex, Record, RecordBatch
from connectors.salesforce.bulk_config import BulkSinkConfig
from connectors.salesforce.bulk_csv import NULL, text_columns
from connectors.salesforce.bulk_layers import Layers
from connectors.salesforce.sink import operation_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BulkRows"]

_FLAGS = {"insert": ("createable",), "update": ("updateable",), "upsert": ("createable", "updateable"), "delete": ()}


class BulkRows:
    """Converts batches to rows for layers.

    ``refuse`` is called with each record that no job can take, and the reason.
    """

    def __init__(
        self, config: BulkSinkConfig, description: Mapping[str, Any], refuse: Callable[[Record, str], None]
    ) -> None:
        self._config, self._refuse = config, refuse
        self._ignored = JavaRegex(config.ignore_pattern)
        self._fields = {field["name"].lower(): field for field in description["fields"]}

    def add(self, batch: RecordBatch, layers: Layers) -> None:
        try:
            table = text_columns(batch)
        except DataError as error:
            for record in batch.records():
                self._refuse(record, str(error))
            return
        asked = self._column(table, "_EventType")
        identities = {name: self._column(table, name) for name in {"Id", self._config.custom_id} if name}
        refused = self._unwritable(batch, table)
        rows: list[tuple[int, str, str]] = []
        for row_index in range(len(batch)):
            try:
                row = self._row(row_index, asked, identities, refused, tombstone=not batch.values[row_index].is_valid)
            except DataError as error:
                self._refuse(next(batch.slice(row_index, 1).records()), str(error))
                continue
            if row is not None:
                rows.append(row)
        table = self._without_unchanged(batch, table)
        cells = {name: self._cells(table, name) for name in {row[1] for row in rows}}
        for row_index in [row_index for row_index, operation, _ in rows if not cells[operation].num_columns]:
            names = ", ".join(table.column_names)
            self._refuse(
                next(batch.slice(row_index, 1).records()), f"no field of the record may be written; it has: {names}"
            )
        layers.add(batch, cells, [row for row in rows if cells[row[1]].num_columns])

    def _row(
        self,
        row: int,
        asked: Sequence[str | None],
        identities: Mapping[str, Sequence[str | None]],
        refused: Mapping[int, str],
        *,
        tombstone: bool,
    ) -> tuple[int, str, str] | None:
        """(index, operation, identity); None for a tombstone, which has no fields to write."""
        if tombstone:
            return None
        if row in refused:
            raise DataError(refused[row])
        row_operation = operation_of(asked[row])
        operation = (
            self._config.operation if self._config.override_event_type or row_operation is None else row_operation
        )
        if operation == "update" and self._config.use_custom_id:
            operation = "upsert"
        id_ = identities["Id"][row] or ""
        needed = self._needed(operation)
        if needed is None:
            return row, operation, id_
        identity = identities[needed][row] or ""
        if not identity:
            raise DataError(f"to {operation} {self._config.object_name} a record needs the field {needed}")
        return row, operation, id_ or identity

    def _needed(self, operation: str) -> str | None:
        """The field that identifies a record."""
        if operation == "insert":
            return None
        return self._config.custom_id if operation == "upsert" else "Id"

    def _cells(self, table: pa.Table, operation: str) -> pa.Table:
        """The columns that an operation writes, without nulls. An insert uses the object's default for a null."""
        import pyarrow.compute as pc

        needed = self._needed(operation)
        kept = [
            name
            for name in table.column_names
            if name == needed or (operation != "delete" and name != "Id" and self._is_written(name, operation))
        ]
        blank = "" if operation == "insert" else NULL
        return type(table).from_arrays([pc.fill_null(table.column(name), blank) for name in kept], names=kept)

    def _is_written(self, name: str, operation: str) -> bool:
        field = self._fields.get(name.lower())
        if field is None or self._is_ignored(name):
            return False
        if self._config.ignore_references and field.get("type") == "reference":
            return False
        return any(field.get(flag) for flag in _FLAGS[operation])

    def _is_ignored(self, name: str) -> bool:
        return name in self._config.ignore_fields or self._ignored.fullmatch(name) is not None

    def _unwritable(self, batch: RecordBatch, table: pa.Table) -> dict[int, str]:
        """Rows that cannot be written to a file: they have a field that the object lacks, or contain the text that
        stands for null.
        """
        import pyarrow.compute as pc

        unwritable: dict[int, str] = {}
        for name in table.column_names:
            if self._is_ignored(name) or name == "Id":
                continue
            column = table.column(name)
            if name.lower() not in self._fields:
                words = f"{self._config.object_name} has no field {name}: name it in salesforce.ignore.fields to leave it out"
                present = pc.and_(pc.is_valid(column), pc.fill_null(pc.not_equal(column, ""), False))
            else:
                words = f"the field {name} is {NULL}, which the Bulk API reads as no value at all"
                present = pc.fill_null(pc.equal(column, NULL), False)
            unwritable |= dict.fromkeys(pc.indices_nonzero(present).to_pylist(), words)
        return unwritable

    def _without_unchanged(self, batch: RecordBatch, table: pa.Table) -> pa.Table:
        """Change events of updates have null for unchanged fields: those cells become empty, which leaves the field
        unchanged.
        """
        import pyarrow as pa

        if batch.value_schema is None or "ChangeEventHeader" not in batch.value_schema.field_names:
            return table
        headers = batch.column("ChangeEventHeader").to_pylist()
        changed = [
            {name.partition(".")[0] for name in header.get("changedFields") or ()}
            if header and header.get("changeType") == "UPDATE"
            else None
            for header in headers
        ]
        columns = {}
        for name in table.column_names:
            cells = table.column(name).to_pylist()
            stays = name in ("Id", self._config.custom_id)
            columns[name] = pa.array(
                [
                    cell if stays or among is None or name in among else ""
                    for cell, among in zip(cells, changed, strict=True)
                ],
                pa.string(),
            )
        return pa.table(columns)

    def _column(self, table: pa.Table, name: str) -> list[str | None]:
        if name not in table.column_names:
            return [None] * len(table)
        values: list[str | None] = table.column(name).to_pylist()
        return values
