"""The newest state of each row, of a table's changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from connectors.spark.inputs.planned import DELETED
from connectors.spark.tables.sql import quoted
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["newest"]


def newest(changes: DataFrame, keys: Sequence[str], *, order: str, kind: str, gone: Sequence[str]) -> DataFrame:
    """One row for each key: the one after its last change, or the one before it with ``DELETED`` where it is gone.

    ``order`` and ``kind`` are columns: the commit of a change, and its kind, one of ``gone`` for a row that is no longer
    there. Of one commit a row that is there counts: a row that moved has both kinds.
    """
    from pyspark.sql import functions as f

    columns = [name for name in changes.columns if name not in (order, kind)]
    missing = [name for name in keys if name not in columns]
    if missing:
        raise UsageError(
            f"spark.output.key.columns names {missing[0]}, and the columns of the table are {', '.join(columns)}"
        )
    deleted = f.col(kind).isin(*gone)
    state = f.struct(*(f.col(quoted(name)) for name in columns), deleted.alias(DELETED))
    last = f.max_by(state, f.struct(f.col(order), ~deleted)).alias("state")
    return changes.groupBy(*(f.col(quoted(name)) for name in keys)).agg(last).select("state.*")
