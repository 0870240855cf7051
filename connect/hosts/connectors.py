"""A connector in its task host: planned and watched over by its own class."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connect.api import ConnectError, Connector
from connect.clients import patiently
from connect.connector_config import CommonConfig
from connect.stores.offsets import canonical
from tidegate.kit.config import parse
from tidegate.kit.logs import about, logger

if TYPE_CHECKING:
    from connect.hosts.link import ThreadedLink

__all__ = ["HostedConnector"]

log = logger(__name__)


class HostedConnector:
    """Made, started, asked for its plan, stopped."""

    def __init__(
        self,
        cls: type[Connector[Any]],
        name: str,
        properties: Mapping[str, str],
        stored: Mapping[str, str],
        link: ThreadedLink,
    ) -> None:
        """``properties`` have their placeholders replaced, ``stored`` still have them."""
        self._name, self._properties, self._link = name, dict(properties), link
        self._placeholders = {key: text for key, text in stored.items() if properties[key] != text}
        self._common = parse(CommonConfig, properties)
        self._stopping = threading.Event()
        with about(connector=name):
            self._connector = cls(parse(cls.config_class, properties), self._properties, self)

    @property
    def name(self) -> str:
        """The connector's name (ConnectorContext)."""
        return self._name

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The position committed for a source partition (ConnectorContext)."""
        wanted = canonical(partition)
        stored_offsets = patiently(
            lambda: self._link.call("offsets", connector=self._name), self._stopping, f"offsets of {self._name}"
        )
        for stored in stored_offsets:
            if canonical(stored["partition"]) == wanted:
                found: Mapping[str, Any] = stored["offset"]
                return found
        return None

    def request_task_reconfiguration(self) -> None:
        """Ask to be planned anew (ConnectorContext)."""
        self._link.event("reconfigure", connector=self._name)

    def start(self) -> None:
        with about(connector=self._name):
            self._connector.start()

    def plan(self) -> list[dict[str, str]]:
        """The tasks' properties, with the placeholders that the connector's have: they will be stored.

        Raises ConnectError where there are more tasks than ``tasks.max`` and that is enforced.
        """
        limit = self._common.tasks_max
        with about(connector=self._name):
            planned = [dict(properties) for properties in self._connector.task_properties(limit)]
        if len(planned) > limit:
            text = f"The connector {self._name} has generated {len(planned)} tasks, which is greater than {limit}, the "
            text += "maximum number of tasks it is configured to create (tasks.max)"
            if self._common.tasks_max_enforce:
                raise ConnectError(text)
            log.warning(text, connector=self._name)
        return [task | {key: text for key, text in self._placeholders.items() if key in task} for task in planned]

    def stop(self) -> None:
        self._stopping.set()
        with about(connector=self._name):
            self._connector.stop()
