"""A query over views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from connectors.spark.failures import first_words
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["queried"]

_UNKNOWN_NAMES: Final = ("TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_COLUMN", "FIELD_NOT_FOUND")


def queried(spark: SparkSession, sql: str, views: Mapping[str, DataFrame]) -> DataFrame:
    """The result of the query. Raises UsageError for a name that it does not know, with those that there are."""
    from pyspark.errors import AnalysisException

    for view, frame in views.items():
        frame.createOrReplaceTempView(view)
    try:
        return spark.sql(sql)
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith(_UNKNOWN_NAMES):
            raise
        existing = "; ".join(
            f"{view} ({', '.join(f'{name} {type_.upper()}' for name, type_ in frame.dtypes)})"
            for view, frame in views.items()
        )
        raise UsageError(f"{first_words(error)} The query can use: {existing}") from error
