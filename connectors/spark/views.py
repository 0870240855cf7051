"""Topics as views, and the result that a query or a function makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from connectors.spark.functions import load_function
from connectors.spark.job import Input, Job
from connectors.spark.query_views import queried
from connectors.spark.topics import Topic
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["result", "views_of"]


def views_of(inputs: Iterable[Input], read: Mapping[str, Topic]) -> dict[str, DataFrame]:
    """The topics by the names of their views. Raises UsageError where two topics have one."""
    views: dict[str, str] = {}
    for input_ in inputs:
        if (other := views.setdefault(input_.view, input_.topic)) != input_.topic:
            raise UsageError(
                f"the topics {other} and {input_.topic} are both the view {input_.view}: read one of them in a connector of its own"
            )
    return {view: read[topic].frame for view, topic in views.items()}


def result(spark: SparkSession, job: Job, views: Mapping[str, DataFrame]) -> DataFrame:
    """The frame that the job's query or function makes of the views.

    Raises UsageError for a name that the query does not know, with those that there are, and for a function that is none or returns
    something else.
    """
    if job.function:
        return _of_function(spark, job.function, views)
    return queried(spark, job.sql or "", views)


def _of_function(spark: SparkSession, name: str, views: Mapping[str, DataFrame]) -> DataFrame:
    from pyspark.sql import DataFrame

    made = load_function(name)(dict(views), spark)
    if not isinstance(made, DataFrame):
        raise UsageError(f"spark.function {name} returned {type(made).__name__}: it must return a DataFrame")
    return made
