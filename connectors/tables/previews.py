"""What a put would do, without doing it."""

from __future__ import annotations

from collections.abc import Sequence

from connect.api import RecordBatch, TidegateError
from connectors.tables.config import TableSinkConfig
from connectors.tables.evolution import Change, widened_kind
from connectors.tables.routing import Router
from connectors.tables.row_maker import RowMaker, row_fields
from connectors.tables.rows import TableStore

__all__ = ["described"]


def described(config: TableSinkConfig, store: TableStore, batches: Sequence[RecordBatch]) -> list[str]:
    """One line for each table that is created or changed, and for the rows of each batch."""
    lines: list[str] = []
    maker, router = RowMaker(config, store), Router(config)
    refused: dict[int, Exception] = {}
    for batch in batches:
        for part, _ in maker.with_schema(batch, refused):
            for name, mask in router.routes(part):
                some = part if mask is None else part.filter(mask)
                try:
                    lines += _of_table(config, store, maker, name, some)
                except TidegateError as error:
                    lines.append(f"refused: {error}")
                verb = "change rows of" if config.changes else "append to"
                lines.append(f"{verb} {name}: {len(some)} records")
    lines += [f"refused: {error}" for error in dict.fromkeys(map(str, refused.values()))]
    return list(dict.fromkeys(lines)) if len(lines) > 1 else lines


def _of_table(config: TableSinkConfig, store: TableStore, maker: RowMaker, name: str, batch: RecordBatch) -> list[str]:
    rows = store.load(name)
    fields = row_fields(batch, config)
    if rows is not None:
        if not config.evolve_schema:
            return []
        changes = maker.schema_changes(rows, fields)
        return [f"alter table {name}: {'.'.join(change.path)} {_change(store, change)}" for change in changes]
    if not config.auto_create:
        return [f"refused: there is no table {name}"]
    return [store.planned(name, fields, batch)]


def _change(store: TableStore, change: Change) -> str:
    if change.add is not None:
        return f"is added as {store.kind_of(change.add, '.'.join(change.path))}"
    return "becomes optional" if change.widen is None else f"becomes {widened_kind(change.widen)}"
