"""How plugins are found: declarations by import path, so that nothing is imported until it is used."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tidegate.kit.errors import MissingExtra

__all__ = ["Plugin", "PluginType"]


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
    """One plugin: where its class is (``module:Class``) and by which names configurations call it.

    ``names`` are full class names of the originals whose configurations it runs, the first being the one shown; the
    short names that Kafka Connect derives (``PluginUtils``) follow from them. ``extra`` is the extra of this
    distribution that brings the packages in ``needs``.
    """

    type: PluginType
    path: str
    names: tuple[str, ...]
    version: str
    needs: tuple[str, ...] = ()
    extra: str = ""
    short_names: tuple[str, ...] = ()
    """Further names, such as those Confluent Cloud uses (``PostgresSource``)."""

    @property
    def name(self) -> str:
        return self.names[0]

    def missing(self) -> str | None:
        """What to install before this plugin can be used; None when it can."""
        if any(importlib.util.find_spec(package) is None for package in self.needs):
            return str(MissingExtra(self.name, self.extra))
        return None

    def load(self) -> Any:
        """The class. Raises MissingExtra when a package it needs is not installed."""
        if self.missing():
            raise MissingExtra(self.name, self.extra)
        module, _, attribute = self.path.partition(":")
        return getattr(importlib.import_module(module), attribute)
