"""The connectors in the guide pass the suite as printed, and its notebook cell works."""

from __future__ import annotations

import re
import sqlite3
import sys
import types
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from connect.notebook import read
from connect.plugins.registry import PluginRegistry
from connect.testing import SourceSuite
from connect.validation.validation import validate_connector

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "writing-connectors.md"


def printed(word: str) -> str:
    """The guide's Python block that has the word in it."""
    (example,) = [text for text in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL) if word in text]
    return example


def module(name: str, text: str) -> types.ModuleType:
    made = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, str(GUIDE), "exec"), made.__dict__)
    return made


gauge = module("gauge", printed("class GaugeConfig"))
counter = module("counter", printed("class CounterConfig"))
lines = module("lines", printed("class LinesConfig"))


class TestGauge(SourceSuite):
    connector_class = gauge.GaugeSource

    @pytest.fixture
    def properties(self):
        return {"topic": "levels", "station": "Battery", "poll.interval.ms": "10", "batch.max.rows": "25"}

    @pytest.fixture
    def expected_rows(self):
        return 60


class TestCounter(SourceSuite):
    connector_class = counter.CounterSource

    @pytest.fixture
    def properties(self):
        return {"topic": "numbers", "limit": "20"}

    @pytest.fixture
    def expected_rows(self):
        return 20


def test_the_guide_s_test_is_a_suite_too():
    scope: dict[str, object] = {}
    exec(compile(printed("class TestCounter"), str(GUIDE), "exec"), scope)
    assert issubclass(scope["TestCounter"], SourceSuite)


def test_the_notebook_cell_writes_what_it_selected(tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as shop:
        shop.execute("create table orders (id integer primary key, total real)")
        shop.executemany("insert into orders values (?, ?)", [(n, n * 50.0) for n in range(1, 6)])
    cell = printed("import read, write").replace("shop.db", str(tmp_path / "shop.db"))
    exec(compile(cell.replace("/tmp/big-orders", str(tmp_path / "out")), str(GUIDE), "exec"), {})
    written = [row["id"] for path in (tmp_path / "out").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    assert sorted(written) == [3, 4, 5]


def test_the_connector_is_found_by_its_names():
    plugins = PluginRegistry(counter.register_plugins())
    for name in ("counter.CounterSource", "CounterSource", "counter:CounterSource"):
        assert plugins.connector(name).load() is counter.CounterSource


def test_the_connector_can_be_tried_out_without_a_declaration():
    assert PluginRegistry([]).connector("counter:CounterSource").load() is counter.CounterSource


def test_the_check_of_the_guide_names_a_file_that_is_not_there(tmp_path):
    plugins = PluginRegistry(lines.register_plugins())
    config = {"connector.class": "LinesSource", "name": "l", "topic": "t", "path": str(tmp_path / "none")}

    def problems():
        shown = validate_connector(plugins, config).to_json()
        return {e["value"]["name"]: e["value"]["errors"] for e in shown["configs"] if e["value"]["errors"]}

    assert problems() == {"path": [f"there is no file {tmp_path}/none; give the path of one"]}
    (tmp_path / "none").write_text("a\nb\n")
    assert problems() == {}
    assert read("lines:LinesSource", config).to_pylist() == [{"line": "a"}, {"line": "b"}]
