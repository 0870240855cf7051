"""Executors of a cluster that a session has lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["lost_executors", "note_of"]

_MOST_WORDS: Final = 200
_MOST_TOLD: Final = 3


def lost_executors(spark: SparkSession) -> Mapping[str, str]:
    """The executors that are gone by their ids, each with its address and Spark's reason. Spark keeps the last hundred."""
    from py4j.protocol import Py4JError

    context: Any = spark.sparkContext._jsc
    try:
        listed = context.sc().statusStore().executorList(False)
        return {str(each.id()): _told(each) for each in _members(listed) if not each.isActive()}
    except Py4JError:  # a job does not fail for what it tells beside its rows
        return {}


def note_of(lost: Mapping[str, str]) -> str:
    """A sentence about executors that were lost while a job ran, which has ended well; empty without any."""
    if not lost:
        return ""
    count = "an executor was" if len(lost) == 1 else f"{len(lost)} executors were"
    more = "; ..." if len(lost) > _MOST_TOLD else ""
    return f"{count} lost, and the tasks ran again elsewhere: {'; '.join(list(lost.values())[:_MOST_TOLD])}{more}"


def _told(executor: Any) -> str:
    reason = executor.removeReason()
    words = " ".join(str(reason.get()).split())[:_MOST_WORDS] if reason.isDefined() else "Spark gives no reason"
    return f"{executor.hostPort()} ({words})"


def _members(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))
