"""The declaration of a component."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.kit.addresses import host_port, is_loopback
from tidegate.kit.config import parse
from tidegate.kit.service import Service
from tidegate.security import Security

__all__ = ["Assembly", "Component", "Face"]


@dataclass(frozen=True, slots=True)
class Face:
    """One address on which a component listens."""

    name: str
    default: str
    """``host:port`` by default."""
    is_http: bool = False
    """Whether clients get the address as ``http://host:port``."""


@dataclass(frozen=True)
class Assembly:
    """The facts that the components of one platform know of each other."""

    data: Path
    listening: Mapping[str, str]
    """``host:port`` of every face that will exist, by its name."""
    bootstrap_servers: str
    """The Kafka that all components use: the embedded broker, or another."""
    kafka_client: Mapping[str, str]
    """Further settings of every Kafka client, from the platform's security and the table ``[kafka]`` of the
    configuration file.
    """
    security: Security | None = None
    """TLS and users of every face; None if there are none, which is allowed only on loopback addresses."""
    connect_users: Path | None = None
    """Without security: the users of Connect, on a machine that others can log in to."""

    @property
    def has_broker(self) -> bool:
        """Whether the embedded broker is used: one node, so that topics have a single replica."""
        return "broker" in self.listening

    def url(self, face: Face) -> str:
        """The URL of an HTTP face: this platform's, otherwise its default address."""
        return f"{'https' if self.security is not None else 'http'}://{self.listening.get(face.name, face.default)}"

    @property
    def registry_client(self) -> Mapping[str, str]:
        """Settings of a registry client, in addition to its URL."""
        return self.security.registry_client if self.security is not None else {}


@dataclass(frozen=True, slots=True)
class Component:
    """One component by import path, so that only running components are imported."""

    name: str
    service: str
    """``module:Class`` of its Service."""
    config: str | None
    """``module:Class`` of its configuration; None if the service takes properties because it passes them on to Kafka
    clients.
    """
    faces: tuple[Face, ...]
    properties: Callable[[Assembly], dict[str, str]]
    """Its properties under ``tidegate up``. Those of the configuration file override them."""
    many_connections: bool = False
    """See ``tidegate.kit.service.run``."""
    listeners: str | None = None
    """``module:Class`` of the configuration that knows its listeners, if ``config`` does not."""

    def build(self, properties: Mapping[str, str]) -> Service:
        """The service for these properties. Raises ConfigError with every problem."""
        config = properties if self.config is None else parse(self.config_class, properties)
        made: Service = _load(self.service)(config)
        return made

    def open_addresses(self, properties: Mapping[str, str]) -> list[str]:
        """Addresses in its properties where anyone may do everything, on other machines too. Raises ConfigError."""
        addresses = [
            address
            for key, address in properties.items()
            if key.endswith(".listen") and address and not is_loopback(host_port(address)[0])
        ]
        cls = _load(self.listeners) if self.listeners else self.config_class
        if hasattr(cls, "open_listeners"):
            addresses += [url.partition("://")[2] or url for url in parse(cls, properties).open_listeners]
        return addresses

    @property
    def config_class(self) -> Any:
        """The class of its configuration, or None."""
        return None if self.config is None else _load(self.config)


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)
