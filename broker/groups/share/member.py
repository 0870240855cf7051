"""A member of a share group."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker.groups.modern.member import ModernMember, Partitions

__all__ = ["ShareMember"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMember(ModernMember):
    assigned: Partitions = field(default_factory=dict)
