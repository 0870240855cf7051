"""What a put would do, without doing it."""

from __future__ import annotations

from collections.abc import Sequence

from connect.api import RecordBatch, TidegateError
from connectors.iceberg.client import Tables
from connectors.iceberg.config import IcebergSinkConfig
from connectors.iceberg.routing import Router
from connectors.iceberg.row_maker import RowMaker, planned_table, row_fields

__all__ = ["described"]


def described(config: IcebergSinkConfig, tables: Tables, batches: Sequence[RecordBatch]) -> list[str]:
    """One line for each table that is created or changed, and for the rows of each batch."""
    lines: list[str] = []
    maker, router = RowMaker(config, tables, ""), Router(config)
    refused: dict[int, Exception] = {}
    for batch in batches:
        for part, _ in maker.with_schema(batch, refused):
            for name, mask in router.routes(part):
                some = part if mask is None else part.filter(mask)
                try:
                    lines += _of_table(config, tables, maker, name, some)
                except TidegateError as error:
                    lines.append(f"refused: {error}")
                verb = "change rows of" if config.changes else "append to"
                lines.append(f"{verb} {name}: {len(some)} records")
    lines += [f"refused: {error}" for error in dict.fromkeys(map(str, refused.values()))]
    return list(dict.fromkeys(lines)) if len(lines) > 1 else lines


def _of_table(config: IcebergSinkConfig, tables: Tables, maker: RowMaker, name: str, batch: RecordBatch) -> list[str]:
    table = tables.load(name)
    fields = row_fields(batch, config)
    if table is not None:
        if not config.evolve_schema:
            return []
        changes = maker.schema_changes(table, fields)
        return [f"alter table {name}: {'.'.join(change.path)} {_change(change)}" for change in changes]
    if not config.auto_create:
        return [f"refused: there is no table {name}"]
    schema, spec = planned_table(config, name, fields, batch)
    columns = ", ".join(
        f"{field.name} {field.field_type}{' not null' if field.required else ''}" for field in schema.fields
    )
    by = ", ".join(f"{field.transform}({schema.find_column_name(field.source_id)})" for field in spec.fields)
    return [f"create table {name} ({columns}){f' partitioned by {by}' if by else ''}"]


def _change(change: object) -> str:
    add, widen = getattr(change, "add", None), getattr(change, "widen", None)
    return f"is added as {add}" if add is not None else f"becomes {widen}" if widen is not None else "becomes optional"
