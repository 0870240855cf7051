"""All hooks of Connect: what a distribution may add. Entry-point group ``tidegate``; built-ins use the same door."""

from __future__ import annotations

import pluggy

from connect.api.plugins import Plugin

__all__ = ["hookimpl", "hookspec"]

hookspec = pluggy.HookspecMarker("tidegate")
hookimpl = pluggy.HookimplMarker("tidegate")


@hookspec
def register_plugins() -> list[Plugin]:  # type: ignore[empty-body]
    """Connectors, converters, transforms and predicates, as declarations. Import nothing heavy to answer."""
