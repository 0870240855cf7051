"""All hooks of Connect for other distributions. Entry-point group ``tidegate``; built-in plugins use the same hook."""

from __future__ import annotations

import pluggy

from connect.api.plugins import Plugin

__all__ = ["hookimpl", "hookspec"]

hookspec = pluggy.HookspecMarker("tidegate")
hookimpl = pluggy.HookimplMarker("tidegate")


@hookspec
def register_plugins() -> list[Plugin]:  # type: ignore[empty-body]
    """Declarations of connectors, converters, transforms and predicates. Import nothing heavy here.

    The worker and each of its task hosts call it once, when they start. A plugin's class is imported on first use, so a
    declaration names it as text::

        @hookimpl
        def register_plugins() -> list[Plugin]:
            return [Plugin(PluginType.SOURCE, "my_package.source:MySource", ("my_package.MySource",), "1.0")]

    Tidegate's plugins come first: another plugin with the full name of one of them is not used. If the hook raises, the
    worker logs the error with the distribution's name and starts without its plugins.
    """
