"""docs/how-to/connect-groups.md: its properties are a worker's, its defaults are the declared ones, and its commands
are run by tests.
"""

from __future__ import annotations

import re
from pathlib import Path

import javaproperties

from connect.config.worker import WorkerConfig
from tidegate.kit.config import keys_of, parse, unknown_keys

PAGE = (Path(__file__).parents[3] / "docs/how-to/connect-groups.md").read_text()


def test_the_properties_are_a_workers():
    (block,) = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
    properties = javaproperties.loads(block)
    assert parse(WorkerConfig, properties).group_id == "connect-cluster"
    assert unknown_keys(properties, keys_of(WorkerConfig), []) == []


def test_the_defaults_are_the_declared_ones():
    declared = {key.name: key.default for key in keys_of(WorkerConfig)}
    rows = re.findall(r"^\| `([a-z.]+)` \| (\w+) \|", PAGE, re.MULTILINE)
    assert len(rows) == 7
    for name, shown in rows:
        assert str(declared[name]) == shown, name


def test_the_commands_are_those_that_tests_run():
    commands = re.findall(r"```sh\n(.*?)\n```", PAGE, re.DOTALL)
    assert commands == [
        "tidegate serve connect worker.properties",  # bench/connect_groups.py
        "tidegate serve connect worker.properties source.properties sink.json",  # standalone/test_standalone.py
    ]
