"""One Spark, one broker and one registry for all files of a test process; the JVM takes five seconds to start, and its first jobs more."""

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


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("spark")
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
    yield session
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
