"""Triggers and flows of platform events. They listen nowhere, and run if ``triggers.dir`` names a folder."""

from __future__ import annotations

from typing import Final

from tidegate.components import events, registry
from tidegate.components.component import Assembly, Component

__all__ = ["TRIGGERS"]


def _properties(assembly: Assembly) -> dict[str, str]:
    made = {
        "bootstrap.servers": assembly.bootstrap_servers,
        "schema.registry.url": assembly.url(registry.REST),
        "events.url": assembly.url(events.REST),
        "data.dir": str(assembly.data / "triggers"),
    }
    made |= {f"registry.client.{key}": value for key, value in assembly.registry_client.items()}
    return made | {f"kafka.{key}": value for key, value in assembly.kafka_client.items()}


TRIGGERS: Final = Component(
    "triggers",
    "events.server.triggers:TriggersServer",
    "events.triggers.config:TriggersConfig",
    (),
    _properties,
)
