"""Says what a put would do, and does nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from connect.api import RecordBatch, TidegateError
from connectors.tables.config import TableSinkConfig
from connectors.tables.evolution import Change, widened_kind
from connectors.tables.routing import Router
from connectors.tables.row_maker import RowMaker, row_fields
from connectors.tables.rows import TableStore

__all__ = ["described"]


def described(config: TableSinkConfig, store: TableStore, batches: Sequence[RecordBatch]) -> list[str]:
    """A line for each table that is created, for each change of a table, and for the rows of each table."""
    lines: list[str] = []
    maker, router = RowMaker(config, store), Router(config)
    refused: dict[int, Exception] = {}
    planned: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for batch in batches:
        for part, _ in maker.with_schema(batch, refused):
            for name, mask in router.routes(part):
                some = part if mask is None else part.filter(mask)
                try:
                    lines += _of_table(config, store, maker, name, some, planned)
                except TidegateError as error:
                    lines.append(f"refused: {error}")
                counts[name] += len(some)
    verb = "change rows of" if config.changes else "append to"
    lines += [f"{verb} {name}: {count} records" for name, count in counts.items()]
    lines += [f"refused: {error}" for error in dict.fromkeys(map(str, refused.values()))]
    return list(dict.fromkeys(lines)) if len(lines) > 1 else lines


def _of_table(
    config: TableSinkConfig,
    store: TableStore,
    maker: RowMaker,
    name: str,
    batch: RecordBatch,
    planned: dict[str, set[str]],
) -> list[str]:
    """``planned`` has the fields of tables that earlier batches create."""
    rows = store.load(name)
    fields = row_fields(batch, config)
    if rows is not None:
        if not config.evolve_schema:
            return []
        changes = maker.schema_changes(rows, fields)
        return [f"alter table {name}: {'.'.join(change.path)} {_change(store, change)}" for change in changes]
    if not config.auto_create:
        return [f"refused: there is no table {name}"]
    names = {field.name for field in fields}
    if (earlier := planned.get(name)) is not None:
        added = [field for field in fields if field.name not in earlier] if config.evolve_schema else []
        planned[name] = earlier | names
        return [
            f"alter table {name}: {field.name} is added as {store.kind_of(field.schema, field.name)}" for field in added
        ]
    planned[name] = names
    return [store.planned(name, fields, batch)]


def _change(store: TableStore, change: Change) -> str:
    if change.add is not None:
        return f"is added as {store.kind_of(change.add, '.'.join(change.path))}"
    return "becomes optional" if change.widen is None else f"becomes {widened_kind(change.widen)}"
