"""A member of a streams group: one thread of a Kafka Streams client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.groups.modern.member import ModernMember
from broker.groups.streams.tasks import Assigned

__all__ = ["Endpoint", "StreamsMember"]

Endpoint = tuple[str, int]
"""Host and port at which a client answers queries about its state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMember(ModernMember):
    """A member. ``process_id`` names its client: no two threads of a client may have the same task, in any role."""

    previous_epoch: int = 0
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    assigned: Assigned = field(default_factory=Assigned)
    revoking: Assigned = field(default_factory=Assigned)
    """Tasks it still has to release; no other client gets them before."""
