"""A connector in its task host: planned and watched over by its own class, in a thread of its own.

Whatever a plugin's call takes, the worker waits for none: orders return at once, and what came of them is told by events.
"""

from __future__ import annotations

import queue
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connect.api import ConnectError, Connector, RetriableConnectError
from connect.config.connector import CommonConfig
from connect.plugins.config_providers import resolved
from connect.plugins.registry import PluginRegistry
from connect.stores.offsets import canonical
from connect.task.clients import patiently
from connect.task.control import Stopped, TaskControl
from connect.worker.host.tasks import trace_of
from tidegate.kit.config import parse
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import about, get_logger
from tidegate.kit.scrubbing import Secrets, knowing, noted_config, scrubbed

if TYPE_CHECKING:
    from connect.worker.link import ThreadedLink

__all__ = ["ConnectorSetup", "HostedConnector"]

logger = get_logger(__name__)

_SLOW_S: Final = 10.0
"""A call that takes longer is shown in the connector's status until it returns."""
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class ConnectorSetup:
    """The worker's order to start a connector. ``properties`` have their placeholders; ``attempt`` tells its starts apart, for
    events that arrive late."""

    name: str
    attempt: int
    properties: Mapping[str, str]
    worker: Mapping[str, str]


class HostedConnector:
    """Orders come from the worker's requests, each in a thread of its own; all calls of the connector from its own thread.

    Events: ``connector_started`` (type, version), ``connector_planned`` (tasks), and ``connector_trouble``: why it has not
    started or planned yet; ``failed`` says that it will not without a new order.
    """

    def __init__(self, setup: ConnectorSetup, plugins: PluginRegistry, link: ThreadedLink) -> None:
        self._setup, self._plugins, self._link = setup, plugins, link
        self._control = TaskControl()
        self._orders: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._told_slow = False
        self._common: CommonConfig
        self._resolved_config: dict[str, str]
        name = f"connector {setup.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    # ConnectorContext

    @property
    def name(self) -> str:
        """The connector's name."""
        return self._setup.name

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The position committed for a source partition."""
        key = canonical(partition)
        stored_offsets = patiently(
            lambda: self._link.call("offsets", connector=self.name), self._control.stopping, f"offsets of {self.name}"
        )
        for stored in stored_offsets:
            if canonical(stored["partition"]) == key:
                offset: Mapping[str, Any] = stored["offset"]
                return offset
        return None

    def request_task_reconfiguration(self) -> None:
        """Ask to be planned anew."""
        self._event("reconfigure")

    # Orders

    def start(self) -> None:
        self._thread.start()

    def plan(self) -> None:
        """Have it planned; the answer is an event."""
        self._orders.put("plan")

    def stop(self, timeout_s: float) -> bool:
        """Stop it; whether its thread has ended in time."""
        self._control.stop(timeout_s)
        self._orders.put("stop")
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def watch(self) -> None:
        """Tell the worker of a call that does not return, and again when it has. Called from time to time by one thread."""
        call = self._control.running_call
        slow = call is not None and call[1] >= _SLOW_S
        if slow and not self._told_slow and call is not None:
            frame = sys._current_frames().get(self._thread.ident or 0)
            where = "".join(traceback.format_stack(frame)) if frame is not None else ""
            logger.warning("connector hangs", connector=self.name, call=call[0], seconds=call[1])
            self._trouble(f"{call[0]} has not returned for {call[1]:.0f} s; it is here:\n{where}")
        elif self._told_slow and not slow and self._thread.is_alive():
            self._event("connector_fine")
        self._told_slow = slow

    # The connector's thread

    def _run(self) -> None:
        with about(connector=self.name), knowing(Secrets()):
            connector: Connector[Any] | None = None
            try:
                connector = self._made()
                self._repeated("start", connector.start)
                self._event("connector_started", type=self._plugin.type.value, version=self._plugin.version)
                while self._orders.get() == "plan":
                    self._tell_plan(connector)
            except Stopped:  # the word to stop came while a call was to be repeated
                logger.info("stopped before the connector was ready")
            except BaseException as error:  # noqa: BLE001 - a plugin's own code, which may even raise SystemExit
                self._fail(error)
            finally:
                if connector is not None:
                    self._end(connector)

    def _made(self) -> Connector[Any]:
        stored = self._setup.properties
        resolved_config = self._resolved_config = resolved(self._setup.worker, stored)
        noted_config(self._setup.worker)
        noted_config(resolved_config)
        self._plugin = self._plugins.connector(resolved_config.get("connector.class", ""))
        cls: type[Connector[Any]] = self._plugin.load()
        self._common = parse(CommonConfig, resolved_config)
        return cls(parse(cls.config_class, resolved_config), resolved_config, self)

    def _repeated(self, call: str, act: Any) -> Any:
        """Return the result of a call, repeated while its error is retriable. Raises Stopped."""
        pause_s = _FIRST_PAUSE_S
        while not self._control.stopping.is_set():
            try:
                with self._control.calling(call):
                    result = act()
            except RetriableConnectError as error:
                logger.warning("a connector's call will be repeated", call=call, error=str(error), again_in_s=pause_s)
                self._trouble(f"{call} will be repeated; {trace_of(error)}")
                self._control.stopping.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                self._told_slow = False
                return result
        raise Stopped

    def _tell_plan(self, connector: Connector[Any]) -> None:
        try:
            planned = self._repeated("task_properties", lambda: self._planned(connector))
        except Stopped:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin's own code; the connector goes on with its last plan
            self._fail(error)
        else:
            self._event("connector_planned", tasks=planned)

    def _planned(self, connector: Connector[Any]) -> list[dict[str, str]]:
        """The tasks' properties, with the placeholders that stand behind what the connector left as it was: they will be stored.

        Raises ConnectError where there are more tasks than ``tasks.max`` and that is enforced.
        """
        limit = self._common.tasks_max
        planned = [dict(properties) for properties in connector.task_properties(limit)]
        if len(planned) > limit:
            text = f"The connector {self.name} has generated {len(planned)} tasks, which is greater than {limit}, the "
            text += "maximum number of tasks it is configured to create (tasks.max)"
            if self._common.tasks_max_enforce:
                raise ConnectError(text)
            logger.warning(text, connector=self.name)
        stored, resolved_config = self._setup.properties, self._resolved_config
        return [
            {key: stored[key] if resolved_config.get(key) == text else text for key, text in task.items()}
            for task in planned
        ]

    def _end(self, connector: Connector[Any]) -> None:
        try:
            with self._control.ending("stop"):
                connector.stop()
        except BaseException as error:
            logger.exception("connector did not stop as it should", error=str(error))

    def _fail(self, error: BaseException) -> None:
        known = {"error": str(error)} if isinstance(error, TidegateError) else {"exc_info": error}
        logger.error("connector failed", connector=self.name, **known)
        self._trouble(scrubbed(str(error)) if isinstance(error, TidegateError) else trace_of(error), failed=True)

    def _trouble(self, trace: str, *, failed: bool = False) -> None:
        self._event("connector_trouble", trace=trace, failed=failed)

    def _event(self, name: str, **values: Any) -> None:
        self._link.event(name, connector=self.name, attempt=self._setup.attempt, **values)
