"""The features of this broker with their levels. The levels that a cluster has agreed on are in its metadata."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, NamedTuple

__all__ = ["FEATURES", "Feature"]


class Feature(NamedTuple):
    """The supported levels. A new cluster starts with the highest, as in Kafka."""

    lowest: int
    highest: int
    in_metadata: bool = True
    """Whether a new cluster records it at its highest level; otherwise it is at its lowest until it is raised."""


FEATURES: Final = MappingProxyType(
    {
        "metadata.version": Feature(7, 30),  # 30 is 4.3-IV0
        "transaction.version": Feature(0, 2),  # KIP-890
        "group.version": Feature(0, 1),  # KIP-848
        "eligible.leader.replicas.version": Feature(0, 1),  # KIP-966
        "share.version": Feature(0, 1),  # KIP-932
        "streams.version": Feature(0, 1),  # KIP-1071
        "kraft.version": Feature(0, 1, in_metadata=False),  # KIP-853; 0 means static voters
    }
)
