"""The configuration of single groups for clients (``ConfigResource.Type`` GROUP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from broker.config import BrokerConfig
from broker.errors import InvalidRequest
from broker.groups import GroupSettings, SettingsOfGroups
from tidegate.kit.config import Key, keys_of

__all__ = ["GroupResources", "GroupValue"]


class GroupValue(NamedTuple):
    """The value of a group key that is not set: the corresponding broker key's, or a constant."""

    name: str
    value: object
    is_default: bool


class GroupResources:
    """The keys that can be set for groups. ``broker`` supplies defaults and bounds."""

    def __init__(self, broker: BrokerConfig) -> None:
        self._broker = broker
        self._settings = SettingsOfGroups(broker)
        self._broker_keys = {key.name: key for key in keys_of(type(broker))}

    def go_by(self, broker: BrokerConfig) -> None:
        """Use another broker configuration from now on."""
        self._broker = broker
        self._settings.go_by(broker)

    def keys(self) -> tuple[Key, ...]:
        return keys_of(GroupSettings)

    def inherited(self, key: Key) -> list[GroupValue]:
        """The broker's value, if set, and the default behind it."""
        broker_key = self._broker_keys.get(f"group.{key.name}")
        if broker_key is None:
            return [GroupValue(key.name, key.default, is_default=True)]
        value = getattr(self._broker, broker_key.attribute)
        default = GroupValue(broker_key.name, broker_key.default, is_default=True)
        if value == broker_key.default:
            return [default]
        return [GroupValue(broker_key.name, value, is_default=False), default]

    def check_name(self, name: str) -> None:
        if not name:
            raise InvalidRequest("The name of a group must not be empty.")

    def check(self, after: Mapping[str, str]) -> None:
        """Validate the complete settings of a group. Raises InvalidConfiguration."""
        self._settings.check(after)
