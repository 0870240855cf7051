"""One Spark, one broker and one registry for all files of this folder; the JVM takes five seconds to start, and its first jobs more."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from connectors.spark.java import find_java
from tests.support.broker import BrokerThread, settings
from tests.support.registry import RegistryThread
from tests.support.spark import QUICK_CONF, collect_connections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STARTED: list[SparkSession] = []
"""The Spark, once a test has asked for it. It ends with the folder's last test: other tests of this process may need another."""


@pytest.fixture
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    if not _STARTED:
        _STARTED.append(_start(tmp_path_factory.mktemp("spark")))
    return _STARTED[0]


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        _stop()


def _start(scratch: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ |= {
        "JAVA_HOME": str(find_java(scratch)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(scratch),
    }
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", QUICK_CONF["spark.driver.extraJavaOptions"])
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def _stop() -> None:
    from pyspark import SparkContext

    if not _STARTED:
        return
    session = _STARTED.pop()
    gateway = session.sparkContext._gateway
    session.stop()
    # The JVM ends with its standard input; connections to it would be left open.
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
    SparkContext._gateway = SparkContext._jvm = None
    del session, gateway
    collect_connections()


@pytest.fixture(autouse=True)
def _connections_to_the_jvm() -> Iterator[None]:
    yield
    collect_connections()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(settings(tmp_path_factory.mktemp("broker"))) as started:
        yield started


@pytest.fixture(scope="session")
def registry() -> Iterator[RegistryThread]:
    with RegistryThread() as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
