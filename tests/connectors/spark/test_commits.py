"""Commits to tables that meet each other: the second is made while the first is under way, in one Spark in this process."""

from __future__ import annotations

import sys
import uuid

import pytest

from connectors.spark.jars import PACKAGES, fetch_jars
from connectors.spark.java import find_java
from connectors.spark.tables import delta, iceberg
from connectors.spark.tables.commits import Committed, OvertakenCommit
from connectors.spark.tables.delta import DeltaTable
from connectors.spark.tables.iceberg import IcebergTable
from tests.support.spark import QUICK_CONF, collect_connections, make_job

pytestmark = [
    pytest.mark.proof,
    # py4j leaves connections to the garbage collector, which comes when it likes
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("spark")
    java = find_java(scratch)
    jars = fetch_jars(java, scratch, [*PACKAGES["iceberg"], *PACKAGES["delta"]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(java))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        settings = delta.settings() | iceberg.settings("", str(scratch / "table"))
        settings |= QUICK_CONF | {
            "spark.jars": ",".join(map(str, jars)),
            "spark.sql.extensions": f"{iceberg.EXTENSION},{delta.EXTENSION}",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        gateway = session.sparkContext._gateway
        session.stop()
        # The JVM ends with its standard input; connections to it would be left open.
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
        SparkContext._gateway = SparkContext._jvm = None
        del session, gateway, builder
        collect_connections()


@pytest.fixture(autouse=True)
def _connections_to_the_jvm():
    yield
    collect_connections()


@pytest.fixture(params=["iceberg", pytest.param("delta", marks=pytest.mark.long)])
def made(request, spark, tmp_path_factory):
    """Makes objects for one table, each as another driver has it."""
    folder = spark.conf.get("spark.sql.catalog.tidegate.warehouse")
    path = f"{folder}/{request.param}{uuid.uuid4().hex[:8]}"

    def table(connector="mine"):
        kind = IcebergTable if request.param == "iceberg" else DeltaTable
        return kind(
            spark.newSession(), make_job("", [], path, format=request.param, connector=connector), table="", path=path
        )

    first = table()
    first.create("id BIGINT", "")
    return table


def rows(spark, table):
    return sorted(row["id"] for row in spark.table(table.name).collect())


def writes(table, number, meanwhile=lambda: None):
    """Writes one row, and has something else happen once before that is committed."""
    left = [meanwhile]

    def write(name):
        table._spark.range(number, number + 1).writeTo(name).append()
        if left:
            left.pop()()

    return write


def after(run, before):
    return before.after(run, [])


A, B, C = (f"{letter * 16}" for letter in "abc")


def test_a_run_that_another_driver_commits_meanwhile_is_there_once(spark, made):
    table, other = made(), made()
    before = table.committed()

    def same():
        assert other.commit(after(A, before), writes(other, 1), appends=True)

    if table.format == "delta":  # a commit is part of its write, so the other one comes before it
        same()
        assert table.commit(after(A, before), writes(table, 1), appends=True)
    else:
        assert not table.commit(after(A, before), writes(table, 1, same), appends=True)
    assert rows(spark, table) == [1]
    assert table.committed().run_id[-8:] == A[-8:]


@pytest.mark.parametrize("appends", [True, False])
def test_a_driver_that_was_given_up_does_not_commit_after_later_runs(spark, made, appends):
    table, other = made(), made()
    before = table.committed()

    def later():
        assert other.commit(first := after(A, before), writes(other, 1), appends=True)
        assert other.commit(after(B, first), writes(other, 2), appends=True)

    if table.format == "delta":
        later()
    with pytest.raises(OvertakenCommit):
        table.commit(
            after(A, before), writes(table, 1, later if table.format == "iceberg" else lambda: None), appends=appends
        )
    assert rows(spark, table) == [1, 2]


@pytest.mark.parametrize("appends", [True, False])
def test_others_may_commit_meanwhile(spark, made, appends):
    table, other = made(), made("of another")

    def by_others():
        assert other.commit(after(B, Committed()), writes(other, 2), appends=True)

    assert table.commit(after(A, Committed()), writes(table, 1, by_others), appends=appends)
    assert rows(spark, table) == [1, 2]
    assert (table.committed().run_id, other.committed().run_id) == (A, B)
    assert table.commit(after(C, table.committed()), writes(table, 3), appends=appends)
    assert rows(spark, table) == [1, 2, 3]
    if table.format == "iceberg":
        assert list(table._loaded().refs().keySet()) == ["main"]
