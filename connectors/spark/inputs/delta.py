"""A table of Delta Lake: its rows at a version, then what later versions add, or its change data feed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connectors.spark.inputs.changes import newest
from connectors.spark.inputs.planned import Planned
from connectors.spark.load import Load
from connectors.spark.tables.sql import quoted
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["after_version", "whole"]

_FEED: Final = "delta.enableChangeDataFeed"
_MOST_VERSIONS: Final = 1000
"""Of one load: their logs are read one after the other."""


class _Table(NamedTuple):
    log: Any
    snapshot: Any

    @property
    def version(self) -> int:
        return int(self.snapshot.version())

    @property
    def id(self) -> str:
        return str(self.snapshot.metadata().id())

    @property
    def has_feed(self) -> bool:
        given = self.snapshot.metadata().configuration().get(_FEED)
        return bool(given.isDefined()) and str(given.get()).lower() == "true"


def whole(spark: SparkSession, load: Load) -> DataFrame:
    return spark.read.options(**load.options).table(_name(load))


def after_version(spark: SparkSession, load: Load, position: Mapping[str, Any] | None) -> Planned | None:
    """The rows of the current version, or what came after the one that was loaded. None where there is nothing new.

    Raises UsageError where the table has no such version any more, or was made anew.
    """
    table = _table(spark, load)
    now = table.version
    if now < 0:
        return None
    if not position:
        frame = spark.read.format("delta").options(**load.options).option("versionAsOf", now).table(_name(load))
        return Planned(frame, {"version": now, "table": table.id}, f"version {now}")
    since = int(position["version"])
    if position["table"] != table.id or since > now:
        raise UsageError(
            f"the version {since} of {_name(load)}, which was loaded last, is of another table: it was made anew, or restored. Reset the "
            "offsets of the connector to load the table again"
        )
    if since == now:
        return None
    until = min(now, since + _MOST_VERSIONS)
    after = {"version": until, "table": table.id}
    frame = (_fed if load.changes == "send" else _added)(spark, load, table, since + 1, until)
    return Planned(frame, after, f"versions {since + 1} to {until}", more=until < now)


def _name(load: Load) -> str:
    return quoted(*load.table.split(".")) if load.table else f"delta.{quoted(load.path)}"


def _table(spark: SparkSession, load: Load) -> _Table:
    path = load.path
    if load.table:
        path = spark.sql(f"DESCRIBE DETAIL {_name(load)}").select("location").collect()[0][0]
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    none = spark._jvm.scala.Option.empty
    snapshot = log.update(False, none(), none())
    if int(snapshot.version()) < 0:
        raise UsageError(f"there is no table of Delta at {path}")
    return _Table(log, snapshot)


def _fed(spark: SparkSession, load: Load, table: _Table, first: int, last: int) -> DataFrame:
    """The newest state of each row that changed."""
    if not table.has_feed:
        raise UsageError(
            f"{_name(load)} has no change data feed, which spark.input.changes=send reads: ALTER TABLE {_name(load)} SET TBLPROPERTIES "
            f"({_FEED} = true), and reset the offsets of the connector"
        )
    feed = spark.read.format("delta").options(**load.options).option("readChangeFeed", "true")
    changes = feed.option("startingVersion", first).option("endingVersion", last).table(_name(load))
    return newest(
        changes.drop("_commit_timestamp"),
        load.key_columns,
        order="_commit_version",
        kind="_change_type",
        gone=("delete", "update_preimage"),
    )


def _added(spark: SparkSession, load: Load, table: _Table, first: int, last: int) -> DataFrame:
    """The rows of the files that versions added. Raises UsageError for a version that changes rows, where those are not skipped."""
    jvm = spark._jvm
    added = jvm.java.util.ArrayList()
    versions = table.log.getChanges(first, jvm.scala.Option.empty(), True)
    while versions.hasNext():
        pair = versions.next()
        if int(pair._1()) > last:
            break
        files, changing = [], False
        actions = pair._2().iterator()
        while actions.hasNext():
            action = actions.next()
            kind = action.getClass().getSimpleName()
            if kind == "AddFile" and action.dataChange():
                files.append(action)
            changing |= kind == "AddCDCFile" or (kind == "RemoveFile" and action.dataChange())
        if not changing:
            for file in files:
                added.add(file)
        elif load.changes == "fail":
            raise UsageError(
                f"the version {pair._1()} of {_name(load)} changes or deletes rows: set spark.input.changes to 'send', with "
                "spark.output.key.columns, or to 'skip'"
            )
    from pyspark.sql import DataFrame

    frame = table.log.createDataFrame(table.snapshot, jvm.PythonUtils.toSeq(added), False, jvm.scala.Option.empty())
    return DataFrame(frame, spark)
