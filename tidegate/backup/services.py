"""The services of the platform that is backed up or restored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tidegate.backup.taking import Progress
from tidegate.configuration.events import event_parts
from tidegate.configuration.kafka import Acls, Quotas
from tidegate.configuration.schemas import Subjects

if TYPE_CHECKING:
    from broker.client import ClientConfig
    from broker.client.blocking import Admin
    from events.client import EventsClient
    from registry.client import RegistryClient
    from tidegate.clients.rest import Rest
    from tidegate.configuration.parts import Part

__all__ = ["ProgressOf", "Services"]

ProgressOf: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
"""Shows the progress of what its argument names, as ``reading``, while the context is open."""


@dataclass(frozen=True)
class Services:
    """The clients of one platform, opened by the caller. The services other than Kafka may be missing."""

    config: ClientConfig
    admin: Admin
    registry: RegistryClient | None = None
    events: EventsClient | None = None
    worker: Rest | None = None

    def parts(self) -> Iterator[Part]:
        """The parts of the configuration without topics and connectors, in the order in which they are restored."""
        if self.registry is not None:
            yield Subjects(self.registry)
        if self.events is not None:
            yield from event_parts(self.events)
        yield Acls(self.config)
        yield Quotas(self.config)
