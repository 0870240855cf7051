"""States of triggers and commands to them, in the shared state of all events servers.

The process that runs the triggers writes ``trigger/state/SUBSCRIPTION``, and ``trigger/problem/FILE`` with the reason
why a file's triggers do not run. Events servers write ``trigger/command/TRIGGER``. A command has an id, and a state
names the last executed command, so that none is executed twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, TypeVar

from events.store.state import EventState
from tidegate.kit.logs import get_logger

__all__ = ["Command", "Status", "SubscriptionState", "TriggerStates"]

logger = get_logger(__name__)

T = TypeVar("T")
_STATE: Final = "trigger/state/"
_COMMAND: Final = "trigger/command/"
_PROBLEM: Final = "trigger/problem/"


class Status:
    """The supported values of EventBusSubscriber.Status; Retrying is Tidegate's."""

    RUNNING: Final = "Running"
    RETRYING: Final = "Retrying"
    ERROR: Final = "Error"
    SUSPENDED: Final = "Suspended"


@dataclass(frozen=True, slots=True)
class SubscriptionState:
    """One subscription of a trigger: ``part`` of ``parts``, and the group that stores its position."""

    trigger: str
    event: str
    kind: str
    group: str
    part: int = 0
    parts: int = 1
    partition_key: str = ""
    status: str = Status.RUNNING
    retries: int = 0
    last_error: str = ""
    changed_ms: int = 0
    obeyed: str = ""

    @property
    def name(self) -> str:
        return self.trigger if self.parts == 1 else f"{self.trigger}-{self.part}"


@dataclass(frozen=True, slots=True)
class Command:
    """A user's command to a trigger: ``status`` Running (resume) or Suspended; ``replay`` latest skips waiting events."""

    status: str
    replay: str = "processed"
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


def _read(cls: type[T], value: Any) -> T | None:
    names = {entry.name for entry in fields(cls)}  # type: ignore[arg-type]
    try:
        return cls(**{name: member for name, member in value.items() if name in names})
    except (AttributeError, TypeError) as error:
        logger.warning("a state of a trigger cannot be read", value=str(value)[:100], error=str(error))
        return None


class TriggerStates:
    """The triggers' part of the shared state. Every method raises BusUnavailable if the log does not answer."""

    def __init__(self, state: EventState) -> None:
        self._state = state

    async def states(self) -> dict[str, SubscriptionState]:
        stored = await self._state.under(_STATE)
        return {name: read for name, value in stored.items() if (read := _read(SubscriptionState, value)) is not None}

    async def put_state(self, state: SubscriptionState) -> None:
        await self._state.put(_STATE + state.name, asdict(state))

    async def forget_state(self, name: str) -> None:
        await self._state.put(_STATE + name, None)

    async def command(self, trigger: str) -> Command | None:
        value = await self._state.get(_COMMAND + trigger)
        return None if value is None else _read(Command, value)

    async def put_command(self, trigger: str, command: Command) -> None:
        await self._state.put(_COMMAND + trigger, asdict(command))

    async def wait_for_command(self, trigger: str, obeyed: str, seconds: float | None) -> None:
        """Return when there is another command than ``obeyed``, or after ``seconds``."""
        changed = asyncio.Event()

        def note(key: str) -> None:
            if key == _COMMAND + trigger:
                changed.set()

        with contextlib.suppress(TimeoutError), self._state.listening(note):
            async with asyncio.timeout(seconds):
                while (command := await self.command(trigger)) is None or command.id == obeyed:
                    changed.clear()
                    await changed.wait()

    async def problems(self) -> dict[str, str]:
        return {name: str(value) for name, value in (await self._state.under(_PROBLEM)).items()}

    async def put_problem(self, file: str, problem: str | None) -> None:
        await self._state.put(_PROBLEM + file, problem)
