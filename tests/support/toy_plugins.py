"""The toy connectors as plugins; importing this module imports none of them."""

from __future__ import annotations

from connect.api import Plugin, PluginType, hookimpl


@hookimpl
def register_plugins() -> list[Plugin]:
    module = "tests.support.toys"
    return [
        Plugin(PluginType.SOURCE, f"{module}:NumbersConnector", ("org.toys.NumbersConnector",), "1.2"),
        Plugin(PluginType.SINK, f"{module}:RowsConnector", ("org.toys.RowsConnector",), "1.2"),
        Plugin(PluginType.SINK, f"{module}:RangesConnector", ("org.toys.RangesConnector",), "1.2"),
        Plugin(PluginType.SOURCE, "tests.support.crowd:CrowdConnector", ("org.toys.CrowdConnector",), "1.2"),
        Plugin(PluginType.SOURCE, "tests.support.troubled:TroubledSource", ("org.toys.TroubledSource",), "1.2"),
        Plugin(PluginType.SINK, "tests.support.troubled:TroubledSink", ("org.toys.TroubledSink",), "1.2"),
        Plugin(
            PluginType.SINK, "no.such.module:Absent", ("org.toys.AbsentConnector",), "1", ("no_such_package",), "toys"
        ),
    ]
