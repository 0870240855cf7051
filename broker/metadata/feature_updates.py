"""Rules for raising or lowering the level of a feature (KIP-584, KIP-1022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from broker.errors import InvalidUpdateVersion
from broker.metadata.features import FEATURES

__all__ = ["FeatureUpdate", "UpgradeType", "checked"]


class UpgradeType(IntEnum):
    """The kind of change that a client permits (``FeatureUpdate.UpgradeType``)."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3

    @classmethod
    def of(cls, code: int) -> UpgradeType:
        return cls(code) if code in (1, 2, 3) else cls.UNKNOWN


class FeatureUpdate(NamedTuple):
    name: str
    level: int
    kind: UpgradeType


_METADATA: Final = "metadata.version"
_METADATA_CHANGED: Final = frozenset({8, 11, 13, 14, 15, 17, 23, 30})
"""Levels whose metadata a lower level can't read: a log at or above such a level can't be downgraded below it."""
_NEEDS: Final = {("eligible.leader.replicas.version", 1): 23}
"""The metadata.version that a level of another feature requires."""


def checked(present: Mapping[str, int], updates: Sequence[FeatureUpdate]) -> dict[str, int]:
    """The levels after the updates. Raises InvalidUpdateVersion for the first that is not allowed."""
    requested = {update.name: update for update in updates}
    metadata_level = requested[_METADATA].level if _METADATA in requested else present.get(_METADATA, 0)
    for feature_update in requested.values():
        reason = _why_not(present.get(feature_update.name, 0), feature_update) or _missing(
            feature_update, metadata_level
        )
        if reason:
            raise InvalidUpdateVersion(f"{feature_update.name} cannot be set to {feature_update.level}: {reason}.")
    return {name: feature_update.level for name, feature_update in requested.items()}


def _why_not(present: int, update: FeatureUpdate) -> str | None:
    known = FEATURES.get(update.name)
    if update.kind is UpgradeType.UNKNOWN:
        return "the kind of update is not known; 1 (upgrade), 2 (safe downgrade) and 3 (unsafe downgrade) are"
    if update.level < 0:
        return "levels are not below 0"
    if known is None:
        return "there is no such feature"
    if not known.lowest <= update.level <= known.highest:
        return f"levels {known.lowest} to {known.highest} are served"
    if update.level < present and update.kind is UpgradeType.UPGRADE:
        return f"it is {present}, and a downgrade has to be asked for as one"
    if update.level > present and update.kind is not UpgradeType.UPGRADE:
        return f"it is {present}, so that would be no downgrade"
    if update.name == "kraft.version" and update.level > present:
        return "the one voter is static"
    if update.name == _METADATA and any(update.level < level <= present for level in _METADATA_CHANGED):
        return f"the metadata may hold what only {present} can read, and would lose it"
    return None


def _missing(update: FeatureUpdate, metadata_level: int) -> str | None:
    needed = _NEEDS.get((update.name, update.level), 0)
    return f"it needs {_METADATA} {needed}, which is {metadata_level}" if metadata_level < needed else None
