"""All plugins and their names in configurations. Nothing is imported until it is used."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import pluggy

from connect.api import hookspecs
from connect.api.plugins import Plugin, PluginType
from connect.errors import UnknownPlugin
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["BUILT_IN", "CONNECTORS", "PluginRegistry", "load_plugins", "short_names"]

logger = get_logger(__name__)

BUILT_IN: Final = ("connect.converters", "connect.transforms")
"""Modules of this package with a ``register_plugins`` hook; the platform adds those of the connectors."""

CONNECTORS: Final = (PluginType.SINK, PluginType.SOURCE)
_ORDER: Final = (
    PluginType.SINK,
    PluginType.SOURCE,
    PluginType.TRANSFORMATION,
    PluginType.PREDICATE,
    PluginType.CONVERTER,
    PluginType.HEADER_CONVERTER,
)
_SUFFIXES: Final = {
    PluginType.SINK: "Connector",
    PluginType.SOURCE: "Connector",
    PluginType.TRANSFORMATION: "Transformation",
    PluginType.PREDICATE: "Predicate",
    PluginType.CONVERTER: "Converter",
    PluginType.HEADER_CONVERTER: "HeaderConverter",
}


def load_plugins(
    modules: Sequence[str] = (), *, hook_modules: Sequence[str] = (), entry_points: bool = True
) -> PluginRegistry:
    """The plugins of these modules (import paths), of this package and of installed distributions; and of
    ``hook_modules`` (from folders), which are skipped if they do not work.
    """
    manager = pluggy.PluginManager("tidegate")
    manager.add_hookspecs(hookspecs)
    for module in dict.fromkeys((*BUILT_IN, *modules)):
        manager.register(importlib.import_module(module), name=module)
    for module in hook_modules:
        try:
            manager.register(importlib.import_module(module), name=module)
        except (Exception, SystemExit):
            logger.exception("plugins left out: their module cannot be imported", module=module)
    if entry_points:
        manager.load_setuptools_entrypoints("tidegate")
    declared: list[Plugin] = []
    for owner, hook in _hooks(manager):
        try:
            plugins = list(hook())
        except (Exception, SystemExit):  # another distribution must not stop the worker
            logger.exception("plugins left out: their hook failed", distribution=owner)
            continue
        for plugin in plugins:
            if reason := plugin.unsupported():
                logger.error("plugin left out", distribution=owner, reason=reason)
            else:
                declared.append(plugin)
    return PluginRegistry(declared)


def _hooks(manager: pluggy.PluginManager) -> list[tuple[str, Any]]:
    hookimpls = manager.hook.register_plugins.get_hookimpls()
    return [(implementation.plugin_name, implementation.function) for implementation in hookimpls]


def short_names(plugin: Plugin) -> list[str]:
    """The names derived from full ones, like Kafka Connect's ``PluginUtils``: simple, and without the type's word."""
    names: list[str] = list(plugin.short_names)
    for full in plugin.names:
        simple = full.replace(":", ".").rpartition(".")[2]
        names.append(simple)
        cut = simple.rfind(_SUFFIXES[plugin.type])
        if cut > 0:
            names.append(simple[:cut])
    return list(dict.fromkeys(names))


class PluginRegistry:
    """All declared plugins.

    The first declaration of a full name wins. A short name claimed twice goes to Confluent's plugin, otherwise to
    Apache's, otherwise to neither.
    """

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self.plugins: tuple[Plugin, ...] = tuple(plugins)
        self._learned: dict[str, Plugin] = {}

    def learn(self, class_name: str, kind: str, version: str) -> None:
        """Record a task host's information about a connector named ``module:Class``, which no other process imports."""
        types = {"source": PluginType.SOURCE, "sink": PluginType.SINK}
        if kind in types and self.find(class_name, *CONNECTORS) is None:
            self._learned[class_name] = Plugin(types[kind], class_name, (class_name,), version)

    @cached_property
    def _by_full_name(self) -> dict[tuple[PluginType, str], Plugin]:
        by_name: dict[tuple[PluginType, str], Plugin] = {}
        for plugin in self.plugins:
            for name in (*plugin.names, plugin.path, plugin.path.replace(":", ".")):
                by_name.setdefault((plugin.type, name), plugin)
        return by_name

    @cached_property
    def _by_short_name(self) -> dict[tuple[PluginType, str], Plugin]:
        claims: dict[tuple[PluginType, str], list[Plugin]] = {}
        for plugin in self.plugins:
            for name in short_names(plugin):
                claims.setdefault((plugin.type, name), []).append(plugin)
        won = {claim: _winner(claimants) for claim, claimants in claims.items()}
        return {claim: plugin for claim, plugin in won.items() if plugin is not None}

    @cached_property
    def names_by_class(self) -> dict[str, str]:
        """The full names of converters, transformations and predicates by the names of their Python classes."""
        parts = [plugin for plugin in self.plugins if plugin.type not in CONNECTORS]
        return {plugin.path.rpartition(":")[2]: plugin.name for plugin in parts}

    def listed(self, types: Sequence[PluginType] = _ORDER) -> list[Plugin]:
        """Plugins of these types, in Kafka Connect's order of types, by name within one."""
        types_ = [t for t in _ORDER if t in types]
        return sorted(
            (plugin for plugin in self.plugins if plugin.type in types_),
            key=lambda plugin: (types_.index(plugin.type), plugin.name),
        )

    def find(self, name: str, *types: PluginType) -> Plugin | None:
        """The plugin of one of these types (any, without types) with this name."""
        for index in (self._by_full_name, self._by_short_name):
            for kind in types or _ORDER:
                if (kind, name) in index:
                    return index[kind, name]
        learned = self._learned.get(name)
        return learned if learned is not None and (not types or learned.type in types) else None

    def connector(self, name: str) -> Plugin:
        """The connector of that name. Raises UnknownPlugin with Kafka Connect's text and the existing connectors."""
        connector_plugin = self.find(name, *CONNECTORS) or _by_path(name)
        if connector_plugin is None:
            described = ", ".join(_described(plugin) for plugin in self.listed(CONNECTORS))
            raise UnknownPlugin(
                "Failed to find any class that implements Connector and which name matches "
                f"{name}, available connectors are: {described}"
            )
        return connector_plugin


def _winner(claimants: list[Plugin]) -> Plugin | None:
    if len({plugin.path for plugin in claimants}) == 1:
        return claimants[0]
    for owner in ("io.confluent.", "org.apache.kafka."):
        owned = [plugin for plugin in claimants if plugin.name.startswith(owner)]
        if len({plugin.path for plugin in owned}) == 1:
            return owned[0]
    return None


def _described(plugin: Plugin) -> str:
    return f"PluginDesc{{class={plugin.name}, type={plugin.type.value}, version='{plugin.version}'}}"


def _by_path(name: str) -> Plugin | None:
    """An undeclared connector named ``module:Class``, for authors who are trying it out."""
    module, colon, attribute = name.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), attribute)):
        return None
    from connect.api.connector import Connector, SourceConnector

    try:
        value = getattr(importlib.import_module(module), attribute)
    except TidegateError:
        raise
    except BaseException as error:
        raise UnknownPlugin(f"connector {name} cannot be imported: {type(error).__name__}: {error}") from error
    if not (isinstance(value, type) and issubclass(value, Connector)):
        raise UnknownPlugin(f"{name} is no connector: it has to be a class below connect.api.Connector")
    kind = PluginType.SOURCE if issubclass(value, SourceConnector) else PluginType.SINK
    return Plugin(kind, name, (name,), getattr(value, "version", "0"))
