"""What a declaration of a component says."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.kit.config import parse
from tidegate.kit.service import Service
from tidegate.security import Security

__all__ = ["Assembly", "Component", "Face"]


@dataclass(frozen=True, slots=True)
class Face:
    """One address on which a component listens."""

    name: str
    default: str
    """``host:port`` unless told otherwise."""
    is_http: bool = False
    """Whether clients are given ``http://host:port``."""


@dataclass(frozen=True)
class Assembly:
    """What the components of one platform know of each other."""

    data: Path
    listening: Mapping[str, str]
    """``host:port`` of every face that will be there, by its name."""
    bootstrap_servers: str
    """The Kafka that all use: the embedded broker, or another."""
    kafka_client: Mapping[str, str]
    """Further settings of every Kafka client: those of the platform's security, and table ``[kafka]`` of the configuration file."""
    security: Security | None = None
    """TLS and users of every face; None where everybody may come in, on loopback addresses."""
    connect_users: Path | None = None
    """Without it, who may use Connect all the same, where others may log in to this machine."""

    @property
    def has_broker(self) -> bool:
        """Whether the embedded broker is there: one node, so that one replica is all there can be."""
        return "broker" in self.listening

    def url(self, face: Face) -> str:
        """Where clients reach an HTTP face: that of this platform, else at its default address."""
        return f"{'https' if self.security is not None else 'http'}://{self.listening.get(face.name, face.default)}"

    @property
    def registry_client(self) -> Mapping[str, str]:
        """Settings of a registry client beside its URL."""
        return self.security.registry_client if self.security is not None else {}


@dataclass(frozen=True, slots=True)
class Component:
    """One component by import path, so that only what runs is imported."""

    name: str
    service: str
    """``module:Class`` of its Service."""
    config: str | None
    """``module:Class`` of its configuration; None where the service takes properties, because it hands them on to Kafka clients."""
    faces: tuple[Face, ...]
    properties: Callable[[Assembly], dict[str, str]]
    """Its properties under ``tidegate up``, before those of the configuration file."""
    many_connections: bool = False
    """As ``tidegate.kit.service.run`` has it."""

    def build(self, properties: Mapping[str, str]) -> Service:
        """The service for these properties; raises ConfigError with everything wrong in them."""
        config = properties if self.config is None else parse(self.config_class, properties)
        made: Service = _load(self.service)(config)
        return made

    @property
    def config_class(self) -> Any:
        """The class of its configuration; None where it has none."""
        return None if self.config is None else _load(self.config)


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)
