"""A table of Apache Iceberg. A run is written to a branch of its attempt, which becomes the table's ``main`` in one commit.

That commit succeeds only if ``main`` is still what the attempt began with, so a driver that was given up, and works on, can't add
its rows once more after the next one has. The offsets stand in the snapshot's summary, under ``tidegate.<connector>``.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from connectors.spark.job import Job
from connectors.spark.tables.commits import Committed, OvertakenCommit
from connectors.spark.tables.sql import literal, properties_ddl, quoted
from tidegate.kit.errors import RetriableError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["EXTENSION", "IcebergTable", "loaded", "parts_of", "settings"]

EXTENSION: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_AT_PATHS: Final = "tidegate"
"""The catalog of tables that have a path and no name."""
_PROPERTY: Final = "spark.sql.iceberg.snapshot-property."
_MOST_TRIES: Final = 10


class ConcurrentCommit(RetriableError):
    """Others committed to the table again and again while the run was to be."""


def settings(table: str, path: str) -> dict[str, str]:
    """The settings of a session for a table that has a name, or a path."""
    if not table:
        catalog, of_catalog = _AT_PATHS, {"type": "hadoop", "warehouse": _root(path)}
    else:
        catalog, of_catalog = table.partition(".")[0], {}
    prefix = f"spark.sql.catalog.{catalog}"
    if catalog == "spark_catalog":
        return {}
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.cache-enabled": "false",  # a copy in the cache would not know the branch
        **{f"{prefix}.{name}": value for name, value in of_catalog.items()},
    }


def _root(path: str) -> str:
    """The folder of the tables of all topics: a catalog has one, and the folders below it are namespaces."""
    before, variable, _ = path.partition("${")
    return (before if variable else before.rstrip("/")).rpartition("/")[0]


def parts_of(spark: SparkSession, table: str, path: str, *, key: str = "spark.output.table") -> list[str]:
    """The parts of the name, in SQL, of a table that is named by a key or is at a path. Raises UsageError where Spark has no such
    catalog."""
    if not table:
        root = spark.conf.get(f"spark.sql.catalog.{_AT_PATHS}.warehouse") or ""
        return [_AT_PATHS, *path.removeprefix(root).strip("/").split("/")]
    parts = table.split(".")
    endings = ("type", "catalog-impl", "uri", "warehouse")
    given = (f"spark.sql.catalog.{parts[0]}.{ending}" for ending in endings)
    if parts[0] != "spark_catalog" and not any(spark.conf.get(name, None) for name in given):
        raise UsageError(
            f"Spark has no catalog {parts[0]}, which {key} names: set spark.conf.spark.sql.catalog.{parts[0]}.type "
            "(rest, jdbc, hive, hadoop, ...) and what that catalog needs"
        )
    return parts


def loaded(spark: SparkSession, name: str) -> Any:
    """The table of this name as an object of Iceberg's API."""
    return spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)


class IcebergTable:
    """``name`` is its name in SQL."""

    format = "iceberg"

    def __init__(self, spark: SparkSession, job: Job, *, table: str, path: str) -> None:
        self._spark, self._job = spark, job
        self._parts = parts_of(spark, table, path)
        self.name = quoted(*self._parts)
        self._property = f"tidegate.{job.connector}"

    def exists(self) -> bool:
        return bool(self._spark.catalog.tableExists(self.name))

    def create(self, columns: str, partitioned: str) -> None:
        if self._parts[0] != _AT_PATHS:
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(*self._parts[:-1])}")
        properties = dict(self._job.properties)
        if self._job.file_bytes:
            properties.setdefault("write.target-file-size-bytes", str(self._job.file_bytes))
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}) USING iceberg {partitioned} {properties_ddl(properties)}"
        )

    def before_changes(self, *, widens: bool, types: str) -> None:
        """Iceberg needs nothing."""

    def committed(self) -> Committed:
        return self._newest_commit()[0]

    def _newest_commit(self) -> tuple[Committed, int]:
        """The connector's newest commit, and how many snapshots are newer than its."""
        table, newer = self._loaded(), 0
        snapshot = table.currentSnapshot()
        while snapshot is not None:
            text = snapshot.summary().get(self._property)
            if text is not None:
                return Committed.from_json(text), newer
            newer, parent = newer + 1, snapshot.parentId()
            snapshot = table.snapshot(parent) if parent is not None else None
        return Committed(), 0

    def _run_of(self, snapshot: Any) -> str:
        text = snapshot.summary().get(self._property) if snapshot is not None else None
        return Committed.from_json(text).run_id if text is not None else ""

    def commit(self, after: Committed, write: Callable[[str], None], *, appends: bool) -> bool:
        """Have ``write`` write to the table of that name, and commit. False: a commit of the same run was first.

        Raises OvertakenCommit where the table has a later run, and ConcurrentCommit where others committed at each of several tries.
        """
        for leftover in self._branches():  # of attempts that were killed, or given up
            self._drop(leftover)
        run = after.run_id
        branch = self._branched(run)
        with self._properties({self._property: after.to_json()}):
            write(f"{self.name}.{quoted(f'branch_{branch}')}")
        for _ in range(_MOST_TRIES):
            there = branch in self._branches()
            if (
                there and self._run_of(self._loaded().snapshot(branch)) != run
            ):  # there were no rows, and no snapshot of them
                self._drop(branch)
                return True
            if there and self._published(branch):
                return True
            other = self.committed()
            if other.sequence >= after.sequence and other.run_id == run:
                self._drop(branch)
                return False
            if other.sequence >= after.sequence or not there:  # the next driver drops the branches of those before
                self._drop(branch)
                raise OvertakenCommit(
                    f"another driver of {self._job.connector} works on {self.name} since this one began"
                )
            again = self._branched(run)
            if appends:
                self._append_files(branch, again, after)
            else:
                with self._properties({self._property: after.to_json()}):
                    write(f"{self.name}.{quoted(f'branch_{again}')}")
            self._drop(branch)
            branch = again
        raise ConcurrentCommit(
            f"others committed to {'.'.join(self._parts)} {_MOST_TRIES} times while the run {run} was to be committed"
        )

    def maintain(self) -> str:
        """Put small files together, and drop snapshots that are older than is to be kept, but not the one that has the offsets.
        Returns words on that."""
        catalog, table = quoted(self._parts[0]), ".".join(quoted(part) for part in self._parts[1:])
        rewritten = self._spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => {literal(table)})").collect()[0]
        hours = self._job.maintenance.keep_hours
        older = self._spark.sql(f"SELECT date_format(now() - INTERVAL {hours} HOURS, 'yyyy-MM-dd HH:mm:ss')").collect()[
            0
        ][0]
        self._spark.sql(
            f"CALL {catalog}.system.expire_snapshots(table => {literal(table)}, older_than => TIMESTAMP '{older}', "
            f"retain_last => {self._newest_commit()[1] + 1})"
        )
        return f"{rewritten['rewritten_data_files_count']} files became {rewritten['added_data_files_count']}"

    def _loaded(self) -> Any:
        return loaded(self._spark, self.name)

    def _branched(self, run_id: str) -> str:
        name = f"{self._prefix}{run_id}_{uuid.uuid4().hex[:8]}"
        self._loaded().manageSnapshots().createBranch(name).commit()
        return name

    @property
    def _prefix(self) -> str:
        return f"tidegate_{uuid.uuid5(uuid.NAMESPACE_OID, self._job.connector).hex[:12]}_"

    def _branches(self) -> list[str]:
        """The branches of attempts."""
        return [name for name in self._loaded().refs().keySet() if name.startswith(self._prefix)]

    def _drop(self, branch: str) -> None:
        if branch in self._branches():
            self._loaded().manageSnapshots().removeBranch(branch).commit()

    def _published(self, branch: str) -> bool:
        """Whether the branch has become ``main``; it is dropped then."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import IllegalArgumentException

        try:
            self._loaded().manageSnapshots().fastForwardBranch("main", branch).removeBranch(branch).commit()
        except IllegalArgumentException:  # main is not what the branch began with, or the branch was dropped
            return False
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "CommitFailedException":
                return False
            raise
        return True

    def _append_files(self, branch: str, to: str, after: Committed) -> None:
        """Append the files that were written for one branch to another: nothing is computed again."""
        table = self._loaded()
        append = table.newAppend()
        append.toBranch(to)
        for file in table.snapshot(branch).addedDataFiles(table.io()):
            append.appendFile(file)
        append.set(self._property, after.to_json())
        append.commit()

    @contextlib.contextmanager
    def _properties(self, properties: Mapping[str, str]) -> Iterator[None]:
        """While rows are written: their snapshot has these properties."""
        for name, value in properties.items():
            self._spark.conf.set(_PROPERTY + name, value)
        try:
            yield
        finally:
            for name in properties:
                self._spark.conf.unset(_PROPERTY + name)
