"""Every connector in the list can be found, created and described."""

from __future__ import annotations

import subprocess
import sys

import pytest

from connect.api import Connector, Plugin, SinkConnector, SourceConnector
from connect.api.plugins import PluginType
from connectors import CONNECTORS, register_plugins
from tidegate.kit.config import keys_of


@pytest.mark.parametrize("plugin", CONNECTORS, ids=lambda plugin: plugin.name)
def test_a_connector_is_what_the_list_says(plugin: Plugin) -> None:
    if (missing := plugin.missing()) is not None:
        pytest.skip(missing)
    loaded = plugin.load()
    kind = {PluginType.SOURCE: SourceConnector, PluginType.SINK: SinkConnector}[plugin.type]
    assert issubclass(loaded, Connector) and issubclass(loaded, kind)
    assert all(declared.doc for declared in keys_of(loaded.config_class))


def test_no_name_is_claimed_twice() -> None:
    names = [name for plugin in register_plugins() for name in (*plugin.names, *plugin.short_names)]
    assert sorted(set(names)) == sorted(names)


def test_the_list_imports_nothing_heavy() -> None:
    code = "import sys, connectors; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & {"pyarrow", "numpy", "sqlalchemy", "adbc_driver_manager", "fastavro", "pyspark", "hdfs_native"}
