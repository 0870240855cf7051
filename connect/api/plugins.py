"""Declarations of plugins by import path, so that nothing is imported until it is used."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from tidegate.kit.errors import MissingExtra

__all__ = ["API_VERSION", "SUPPORTED_API_VERSIONS", "Plugin", "PluginType"]

API_VERSION: Final = 1
"""The documented version of ``connect.api``. It increases when plugins for the previous one would break."""

SUPPORTED_API_VERSIONS: Final = (1,)
"""The supported versions: the current one, and the previous one during its deprecation."""


class PluginType(Enum):
    """Kafka Connect's names for kinds of plugins, as ``GET /connector-plugins`` shows them."""

    SINK = "sink"
    SOURCE = "source"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin: the import path of its class (``module:Class``) and its names in configurations.

    ``names`` are full class names of the originals whose configurations it runs; the first one is displayed. Short
    names are derived as in Kafka Connect (``PluginUtils``). ``extra`` is this distribution's extra that installs the
    packages in ``needs``.
    """

    type: PluginType
    path: str
    names: tuple[str, ...]
    version: str
    needs: tuple[str, ...] = ()
    extra: str = ""
    short_names: tuple[str, ...] = ()
    """Further names, for example Confluent Cloud's (``PostgresSource``)."""
    api_version: int = 1
    """The version of ``connect.api`` that the plugin is written for. Workers ignore plugins of unsupported versions."""

    def unsupported(self) -> str | None:
        """Why this Tidegate cannot run the plugin; None if it can."""
        if self.api_version in SUPPORTED_API_VERSIONS:
            return None
        supported = ", ".join(map(str, SUPPORTED_API_VERSIONS))
        return (
            f"plugin {self.name} is written for api_version {self.api_version} of connect.api; this Tidegate supports {supported}. "
            "Install a version of the plugin or of Tidegate that fits"
        )

    @property
    def name(self) -> str:
        return self.names[0]

    def missing(self) -> str | None:
        """The message about packages to install before this plugin can be used; None if nothing is missing."""
        if any(map(_absent, self.needs)):
            return str(MissingExtra(self.name, self.extra))
        return None

    def load(self) -> Any:
        """Import the class. Raises MissingExtra if a package it needs is not installed."""
        if self.missing():
            raise MissingExtra(self.name, self.extra)
        module, _, attribute = self.path.partition(":")
        return getattr(importlib.import_module(module), attribute)


def _absent(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is None
    except ModuleNotFoundError:  # the package that it is in
        return True
