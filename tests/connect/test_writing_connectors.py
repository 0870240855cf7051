"""The guide's connector, as it is printed there, passes the suite."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from connect.plugins import PluginRegistry
from connect.testing import SourceSuite

GUIDE = Path(__file__).parents[2] / "docs" / "writing-connectors.md"


def printed(number: int) -> str:
    return re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[number]


counter = types.ModuleType("counter")
sys.modules["counter"] = counter
exec(compile(printed(0), str(GUIDE), "exec"), counter.__dict__)


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
    exec(compile(printed(1), str(GUIDE), "exec"), scope)
    assert issubclass(scope["TestCounter"], SourceSuite)


def test_it_is_found_by_its_names():
    plugins = PluginRegistry(counter.register_plugins())
    for name in ("counter.CounterSource", "CounterSource", "counter:CounterSource"):
        assert plugins.connector(name).load() is counter.CounterSource


def test_it_needs_no_declaration_while_it_is_tried_out():
    assert PluginRegistry([]).connector("counter:CounterSource").load() is counter.CounterSource
