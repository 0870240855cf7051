from __future__ import annotations

import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from connect.api import API_VERSION, Plugin, PluginType
from connect.errors import UnknownPlugin
from connect.plugins.registry import PluginRegistry, load_plugins, short_names


def source(*names, path="a:B", **more):
    return Plugin(PluginType.SOURCE, path, names, "1", **more)


JDBC = source("io.confluent.connect.jdbc.JdbcSourceConnector", "io.aiven.connect.jdbc.JdbcSourceConnector")


@pytest.mark.parametrize("name", [
    "io.confluent.connect.jdbc.JdbcSourceConnector", "io.aiven.connect.jdbc.JdbcSourceConnector",
    "JdbcSourceConnector", "JdbcSource", "a:B", "a.B",
])  # fmt: skip
def test_a_connector_goes_by_all_its_names(name):
    assert PluginRegistry([JDBC]).connector(name) is JDBC


def test_short_names_drop_the_word_of_their_type():
    json = Plugin(PluginType.CONVERTER, "a:B", ("org.apache.kafka.connect.json.JsonConverter",), "1")
    assert short_names(json) == ["JsonConverter", "Json"]
    inner = Plugin(PluginType.TRANSFORMATION, "a:B", ("org.x.Cast$Value",), "1", short_names=("Other",))
    assert short_names(inner) == ["Other", "Cast$Value"]


def test_a_short_name_claimed_twice_goes_to_confluent_s():
    other = source("org.else.JdbcSourceConnector", path="c:D")
    assert PluginRegistry([other, JDBC]).connector("JdbcSource") is JDBC
    third = source("com.third.Connector1", path="e:F")
    fourth = source("com.fourth.Connector1", path="g:H")
    assert PluginRegistry([third, fourth]).find("Connector1") is None


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(UnknownPlugin) as caught:
        PluginRegistry([JDBC]).connector("Nope")
    assert str(caught.value) == (
        "Failed to find any class that implements Connector and which name matches Nope, available connectors are: "
        "PluginDesc{class=io.confluent.connect.jdbc.JdbcSourceConnector, type=source, version='1'}"
    )


def test_a_path_that_cannot_be_imported_is_explained():
    with pytest.raises(UnknownPlugin, match="no_such_module:Thing cannot be imported: ModuleNotFoundError"):
        PluginRegistry([]).connector("no_such_module:Thing")


@pytest.mark.parametrize("name", ["os:system", "os:PathLike", "os:no_such_thing"])
def test_a_class_that_is_no_connector_is_refused(name):
    with pytest.raises(UnknownPlugin):
        PluginRegistry([]).connector(name)


def test_a_missing_package_is_named_with_its_extra():
    plugin = source("x.Y", needs=("no_such_package",), extra="toys")
    assert "pip install 'tidegate[toys]'" in str(plugin.missing())


def test_plugins_are_listed_by_kind_and_name():
    listed = [plugin.type.value for plugin in load_plugins(entry_points=False).listed()]
    assert list(dict.fromkeys(listed)) == ["transformation", "predicate", "converter", "header_converter"]


def test_finding_plugins_imports_none_of_them():
    code = (
        "import sys; from connect.plugins.registry import load_plugins; load_plugins(['connectors']);"
        "print([m for m in ('pyarrow', 'numpy', 'fastavro', 'sqlalchemy', 'pyspark') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_plugin_for_another_api_version_is_left_out_and_named(tmp_path, monkeypatch):
    (tmp_path / "plugins_of_tomorrow.py").write_text(
        "from connect.api import Plugin, PluginType, hookimpl\n\n\n"
        "@hookimpl\n"
        "def register_plugins():\n"
        "    return [\n"
        '        Plugin(PluginType.SOURCE, "a:B", ("com.tomorrow.FirstConnector",), "1", api_version=2),\n'
        '        Plugin(PluginType.SOURCE, "a:C", ("com.tomorrow.SecondConnector",), "1", api_version=API),\n'
        "    ]\n".replace("API", str(API_VERSION))
    )
    monkeypatch.syspath_prepend(tmp_path)
    with capture_logs() as lines:
        plugins = load_plugins(["plugins_of_tomorrow"], entry_points=False)
    assert plugins.find("FirstConnector") is None
    assert plugins.connector("SecondConnector").path == "a:C"
    (line,) = [line for line in lines if line["event"] == "plugin left out"]
    assert "com.tomorrow.FirstConnector is written for api_version 2" in line["reason"]
    assert line["distribution"] == "plugins_of_tomorrow"
