"""Sources that generate their rows pass the suite that kills and stops: a Python generator and the data generator."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pytest

from connect.api import Rows, RowsConfig, RowsTask, SourceConnector, config
from connect.testing import SourceFaultSuite
from connectors.datagen.source import DatagenConnector
from tests.connectors.faults.parts import ROWS, OnBothBrokers

pytestmark = [pytest.mark.proof, pytest.mark.servers]


@config
class ManyRowsConfig(RowsConfig):
    pass


class ManyRowsTask(RowsTask[ManyRowsConfig]):
    """All rows at once, in several batches: each row is wide."""

    def rows(self, offset: Mapping[str, Any] | None) -> Iterator[Any]:
        done = int((offset or {"done": 0})["done"])
        if done < ROWS:
            rows = [{"id": n, "name": "x" * 250_000} for n in range(done, ROWS)]
            yield Rows(rows, offset={"done": ROWS})


class ManyRows(SourceConnector[ManyRowsConfig]):
    config_class, task_class = ManyRowsConfig, ManyRowsTask


@pytest.mark.long
class TestRowsOfAGenerator(OnBothBrokers, SourceFaultSuite):
    connector_class = ManyRows

    @pytest.fixture
    def properties(self) -> Mapping[str, str]:
        return {"topic": f"many{time.time_ns()}"}

    @pytest.fixture
    def expected(self) -> Collection[Any]:
        return range(ROWS)


class SingleRowsTask(RowsTask[ManyRowsConfig]):
    """A row at a time, then silence: a thread that waits is there whenever something happens to the task."""

    offset_column = "id"

    def rows(self, offset: Mapping[str, Any] | None) -> Iterator[Any]:
        for n in range(offset["id"] + 1 if offset else 0, ROWS):
            yield {"id": n}
            self.context.stopping.wait(0.02)
        self.context.stopping.wait()


class SingleRows(SourceConnector[ManyRowsConfig]):
    config_class, task_class = ManyRowsConfig, SingleRowsTask


@pytest.mark.long
class TestRowsOfAGeneratorThatWaits(OnBothBrokers, SourceFaultSuite):
    connector_class = SingleRows

    @pytest.fixture
    def properties(self) -> Mapping[str, str]:
        return {"topic": f"single{time.time_ns()}"}

    @pytest.fixture
    def expected(self) -> Collection[Any]:
        return range(ROWS)


@pytest.mark.long
class TestDatagen(OnBothBrokers, SourceFaultSuite):
    """It has no end: records after the first ROWS are ignored."""

    connector_class = DatagenConnector

    @pytest.fixture
    def properties(self) -> Mapping[str, str]:
        number = {"type": "long", "arg.properties": {"iteration": {"start": 0}}}
        form = {"type": "record", "name": "Made", "fields": [{"name": "id", "type": number}]}
        return {"kafka.topic": f"made{time.time_ns()}", "schema.string": json.dumps(form), "max.interval": "20"}

    @pytest.fixture
    def expected(self) -> Collection[Any]:
        return range(ROWS)

    def identity(self, topic: str, key: Any, value: Any) -> Any:
        return value["id"] if value["id"] < ROWS else None
