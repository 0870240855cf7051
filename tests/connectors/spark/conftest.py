"""Fixtures of tests that load tables of both formats; a module with a driver of its own has it by the same name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.spark.client import SparkDriver
from connectors.spark.jars import PACKAGES


@pytest.fixture(scope="module")
def driver() -> Iterator[SparkDriver]:
    driver = SparkDriver(stopping=threading.Event(), idle_s=60, packages=[*PACKAGES["iceberg"], *PACKAGES["delta"]])
    yield driver
    driver.close()


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warehouse")
