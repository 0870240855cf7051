"""Connectors in files, in each of the formats that connect-standalone accepts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.server.standalone.connector_files import ConnectorFile, read_connector_file
from connect.stores import TargetState
from tidegate.kit.errors import UsageError

CONFIG = {"name": "lines", "connector.class": "FileStreamSource", "tasks.max": "1"}
SHAPES = {
    "map.json": json.dumps({**CONFIG, "tasks.max": 1}),
    "request.json": json.dumps({"name": "lines", "config": {**CONFIG, "tasks.max": 1}, "unknown": []}),
    "nameless.json": json.dumps({"name": "lines", "config": {k: v for k, v in CONFIG.items() if k != "name"}}),
    "plain.properties": "name=lines\n# a comment\nconnector.class = FileStreamSource\ntasks.max: 1\n",
    "properties.json": "name=lines\nconnector.class=FileStreamSource\ntasks.max=1\n",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_file_format_is_accepted_under_any_name(shape, tmp_path):
    path = tmp_path / shape
    path.write_text(SHAPES[shape])
    assert read_connector_file(path) == ConnectorFile("lines", dict(CONFIG))


def test_an_initial_state_is_taken(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"name": "lines", "config": CONFIG, "initial_state": "paused"}))
    assert read_connector_file(path).initial is TargetState.PAUSED


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"connector.class": "X"}', "missing the mandatory 'name'"),
        ("connector.class=X", "missing the mandatory 'name'"),
        ('{"name": "a", "config": {"name": "b"}}', "doesn't match"),
        ('{"name": "a", "config": {"x": {}}}', "values are texts"),
        ('{"name": "a", "config": {}, "initial_state": "ASLEEP"}', "ASLEEP must be one of RUNNING"),
        ("[1]", "no object"),
    ],
)
def test_errors_name_the_file(text, words, tmp_path):
    path = tmp_path / "bad"
    path.write_text(text)
    with pytest.raises(UsageError, match=words) as caught:
        read_connector_file(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot read .*none.json: No such file"):
        read_connector_file(tmp_path / "none.json")


@given(data=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: ('{"name": "a", ' + text).encode()))
def test_any_file_is_taken_or_refused(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(data)
    try:
        assert read_connector_file(path).name
    except UsageError:
        pass
