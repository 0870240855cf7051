"""A table of Delta Lake. A run is one commit of its log, under the transaction of its connector (``txnAppId``, ``txnVersion``).

The version counts the connector's commits in its upper half and has a part of the run's id in the lower one, so the newest run is
told by the table's state alone. Delta lets one of two commits through that follow the same version, so a driver that was given up,
and works on, can't add its rows once more. The offsets stand in the commit's ``userMetadata``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from connectors.spark.job import Job
from connectors.spark.tables.commits import Committed, OvertakenCommit
from connectors.spark.tables.sql import properties_ddl, quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["EXTENSION", "DeltaTable", "settings"]

EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_CONF: Final = "spark.databricks.delta."
_RECENT: Final = 20
_RUN_BITS: Final = 32


def settings() -> dict[str, str]:
    """The settings of a session for tables."""
    return {
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        _CONF + "snapshotPartitions": "4",  # by default 50 tasks read the state of each table
    }


class DeltaTable:
    """``name`` is its name in SQL."""

    format = "delta"

    def __init__(self, spark: SparkSession, job: Job, *, table: str, path: str) -> None:
        self._spark, self._job = spark, job
        self.name = quoted(*table.split(".")) if table else f"delta.{quoted(path)}"
        self._application = f"tidegate/{job.connector}"
        self._path = path if not table else None
        self._namespace = table.split(".")[:-1]

    def exists(self) -> bool:
        if self._path is None:
            return bool(self._spark.catalog.tableExists(self.name))
        return int(self._log().update(False, *self._nones()).version()) >= 0

    def create(self, columns: str, partitioned: str) -> None:
        if self._namespace:
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(*self._namespace)}")
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}) USING delta {partitioned} {properties_ddl(self._job.properties)}"
        )

    def before_changes(self, *, widens: bool, types: str) -> None:
        """Turn on what the table needs for columns of these types, and for wider ones."""
        features = {"delta.enableTypeWidening": "true"} if widens else {}
        if "TIMESTAMP_NTZ" in types:
            features["delta.feature.timestampNtz"] = "supported"
        if features:
            self._spark.sql(f"ALTER TABLE {self.name} SET {properties_ddl(features)}")

    def committed(self) -> Committed:
        """The offsets are known as long as the table keeps the history of the commit (30 days by default), the run always."""
        version = self._version()
        if version is None:
            return Committed()
        sequence = version >> _RUN_BITS
        for limit in (f"LIMIT {_RECENT}", ""):
            for row in self._spark.sql(f"DESCRIBE HISTORY {self.name} {limit}").select("userMetadata").collect():
                noted = _noted(row["userMetadata"]).get(self._application)
                if noted is not None and (found := Committed.from_json(noted)).sequence == sequence:
                    return found
        return Committed(sequence=sequence)

    def commit(self, after: Committed, write: Callable[[str], None], *, appends: bool) -> bool:
        """Have ``write`` write to the table of that name, which commits. False: a commit of the same run was first.

        Raises OvertakenCommit where the table has one of another run.
        """
        version = (after.sequence << _RUN_BITS) | _part_of(after.run_id)
        settings = {
            "write.txnAppId": self._application,
            "write.txnVersion": str(version),
            "commitInfo.userMetadata": json.dumps({self._application: after.to_json()}),
        }
        from py4j.protocol import Py4JJavaError
        from pyspark.errors.exceptions.captured import CapturedException

        overtaken: Exception | None = None
        with self._configured(settings):
            try:
                write(self.name)
            except (Py4JJavaError, CapturedException) as error:
                if "ConcurrentTransaction" not in str(error):
                    raise
                overtaken = error
        there = self._version() or 0
        if there == version:
            return overtaken is None
        if there >> _RUN_BITS >= after.sequence or overtaken is not None:
            raise OvertakenCommit(
                f"another driver of {self._job.connector} committed to {self.name} meanwhile"
            ) from overtaken
        return True  # nothing had to change, so there is no commit

    def maintain(self) -> str:
        """Put small files together, and delete files that no version needs which is kept. Returns words on that."""
        size = {"optimize.maxFileSize": str(self._job.file_bytes)} if self._job.file_bytes else {}
        with self._configured(size):
            done = self._spark.sql(f"OPTIMIZE {self.name}").collect()[0]["metrics"]
        checked = {"retentionDurationCheck.enabled": "false"} if self._job.maintenance.keep_hours < 168 else {}
        listing = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
        before = self._spark.conf.get(listing)
        self._spark.conf.set(
            listing, str(4 * self._spark.sparkContext.defaultParallelism)
        )  # else 10,000 tasks list files
        try:
            with self._configured(checked):
                self._spark.sql(f"VACUUM {self.name} RETAIN {self._job.maintenance.keep_hours} HOURS")
        finally:
            self._spark.conf.set(listing, before)
        return f"{done['numFilesRemoved']} files became {done['numFilesAdded']}"

    def _version(self) -> int | None:
        """The version of the connector's transaction in the table's newest state."""
        found = self._log().update(False, *self._nones()).transactions().get(self._application)
        return int(found.get()) if found.isDefined() else None

    def _log(self) -> Any:
        path = self._path or self._spark.sql(f"DESCRIBE DETAIL {self.name}").select("location").collect()[0][0]
        return self._spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._spark._jsparkSession, path)

    def _nones(self) -> tuple[Any, Any]:
        none = self._spark._jvm.scala.Option.empty
        return none(), none()

    @contextlib.contextmanager
    def _configured(self, settings: Mapping[str, str]) -> Iterator[None]:
        for name, value in settings.items():
            self._spark.conf.set(_CONF + name, value)
        try:
            yield
        finally:
            for name in settings:
                self._spark.conf.unset(_CONF + name)


def _part_of(run_id: str) -> int:
    return int(run_id[-8:], 16)


def _noted(text: str | None) -> Mapping[str, str]:
    """Our notes in a commit; others have words of their own there."""
    try:
        noted = json.loads(text or "{}")
    except ValueError:
        return {}
    return noted if isinstance(noted, dict) else {}
