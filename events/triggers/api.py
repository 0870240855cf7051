"""The API of triggers. Names and rules are those of Salesforce's EventBus namespace (Apex Reference)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pluggy

from events.model.changes.schemas import is_change_event
from tidegate.kit.errors import UsageError

__all__ = [
    "MAX_BATCH",
    "InvalidReplayIdException",
    "RetryableException",
    "Trigger",
    "TriggerContext",
    "TriggerEvent",
    "TriggerFunction",
    "hookimpl",
    "hookspec",
    "trigger",
]

MAX_BATCH: Final = 2000
MAX_PARTITIONS: Final = 10
MAX_RETRIES: Final = 9
EVENT_UUID: Final = "EventUuid"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")

hookspec = pluggy.HookspecMarker("tidegate")
hookimpl = pluggy.HookimplMarker("tidegate")


class RetryableException(Exception):
    """Raise it in a trigger to be called again later with the same events. Output of the failed call is discarded."""


class InvalidReplayIdException(UsageError):
    """The resume checkpoint is not the replay id of an event in the current batch."""


@dataclass(frozen=True, slots=True)
class TriggerEvent:
    """One event. ``fields`` have CometD's form: instants and dates as ISO 8601 text, absent values None.

    For a change event they include the ChangeEventHeader, and None for unchanged fields. A change event has no UUID:
    ``uuid`` is empty, and name and replay id identify it.
    """

    name: str
    replay_id: int
    uuid: str
    fields: Mapping[str, Any]

    def __getitem__(self, field: str) -> Any:
        """A field by its name; ``ReplayId`` and ``EventUuid`` are fields too, as in Salesforce."""
        if field == "ReplayId":
            return str(self.replay_id)
        return self.uuid if field == EVENT_UUID else self.fields[field]


@dataclass(slots=True)
class Output:
    """Output to write when the batch is done: an event by its fields, or a record of any topic."""

    topic: str
    fields: Mapping[str, Any] | None = None
    key: bytes | None = None
    value: bytes | None = None


class TriggerContext:
    """The context of one call. Use it only in the trigger's own thread, during the call."""

    def __init__(self, trigger: Trigger, events: Sequence[TriggerEvent], retries: int) -> None:
        self.trigger, self.retries = trigger, retries
        self.last_error = ""
        self.outputs: list[Output] = []
        self._ids = {event.replay_id for event in events}
        self._checkpoint: tuple[int, int] | None = None

    def set_resume_checkpoint(self, replay_id: int | str) -> None:
        """Mark the events up to this one as done: after a failure the trigger resumes after it.

        Earlier ``publish`` and ``send`` calls are kept with it. If a call returns early without an error, the trigger
        is called again with the events after its checkpoint, as in Salesforce. Raises InvalidReplayIdException for an
        id that no event in this batch has.
        """
        number = int(replay_id) if str(replay_id).isdecimal() else -1
        if number not in self._ids:
            raise InvalidReplayIdException(
                f"the resume checkpoint {replay_id!r} of trigger {self.trigger.name} is not the replay id of an event in this batch"
            )
        self._checkpoint = (number, len(self.outputs))

    @property
    def resume_checkpoint(self) -> int | None:
        return None if self._checkpoint is None else self._checkpoint[0]

    @property
    def outputs_of_checkpoint(self) -> list[Output]:
        return [] if self._checkpoint is None else self.outputs[: self._checkpoint[1]]

    def publish(self, event: str, fields: Mapping[str, Any]) -> None:
        """Publish an event atomically with this batch's position."""
        self.outputs.append(Output(event, fields=dict(fields)))

    def send(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Write a record to any topic atomically with this batch's position. Raises UsageError for a key or value that is not
        bytes: how records are encoded is up to the function.
        """
        for what, given in (("key", key), ("value", value)):
            if not isinstance(given, bytes | None):
                raise UsageError(
                    f"trigger {self.trigger.name} sends to {topic} a {what} that is {type(given).__name__}: give bytes or None, "
                    "such as json.dumps(...).encode()"
                )
        self.outputs.append(Output(topic, key=key, value=value))


TriggerFunction = Callable[[Sequence[TriggerEvent], TriggerContext], Any]


@dataclass(frozen=True, slots=True)
class Trigger:
    """A function, plain or ``async``, and the events it is called with. The position is stored by ``name``: a renamed
    trigger is a new one.

    ``batch_size`` counts events, 2,000 at most. With ``partitions`` above 1 (10 at most) that many calls run
    concurrently, each with the events that its share of ``partition_key`` values selects (EventUuid by default), in
    order. A new trigger begins at ``replay``. Events that do not pass ``filter`` are skipped (the expressions of
    channel members: ``Amount__c > 100 AND Express__c = true``).
    """

    name: str
    event: str
    function: TriggerFunction = field(repr=False)
    batch_size: int = MAX_BATCH
    partitions: int = 1
    partition_key: str = EVENT_UUID
    replay: Literal["latest", "earliest"] = "latest"
    kind: Literal["trigger", "flow"] = "trigger"
    filter: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"trigger name {self.name!r} is not possible: a letter, then letters, digits, '_', '-' and '.', 100 at most"
            )
        if not (self.event.endswith("__e") or is_change_event(self.event)):
            raise UsageError(
                f"trigger {self.name} is for {self.event!r}, which is no event's name: those end in __e or ChangeEvent"
            )
        for what, value, most in (
            ("batch_size", self.batch_size, MAX_BATCH),
            ("partitions", self.partitions, MAX_PARTITIONS),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise UsageError(f"trigger {self.name}: {what} is {value!r}; 1 to {most} is possible")
        if self.partitions > 1 and self.partition_key == EVENT_UUID and is_change_event(self.event):
            raise UsageError(
                f"trigger {self.name}: change events have no {EVENT_UUID} to share them among {self.partitions} calls by; "
                "give partition_key, such as the field with the rows' key"
            )
        if self.replay not in ("latest", "earliest"):
            raise UsageError(f"trigger {self.name}: replay is {self.replay!r}; latest and earliest are possible")


def trigger(
    event: str,
    *,
    name: str | None = None,
    batch_size: int = MAX_BATCH,
    partitions: int = 1,
    partition_key: str = EVENT_UUID,
    replay: Literal["latest", "earliest"] = "latest",
    filter: str = "",  # noqa: A002 - as in Salesforce's filterExpression
) -> Callable[[TriggerFunction], TriggerFunction]:
    """Make a function ``(events, context)`` in a project's module a trigger, named after the function unless ``name``
    is set.
    """

    def mark(function: TriggerFunction) -> TriggerFunction:
        made = Trigger(
            name or str(getattr(function, "__name__", "")),
            event,
            function,
            batch_size,
            partitions,
            partition_key,
            replay,
            filter=filter,
        )
        function.tidegate_trigger = made  # type: ignore[attr-defined]
        return function

    return mark


@hookspec
def register_triggers() -> list[Trigger]:  # type: ignore[empty-body]
    """Triggers of an installed distribution.

    The process that runs triggers calls it when it loads the project, and again when a file of the project has
    changed::

        @hookimpl
        def register_triggers() -> list[Trigger]:
            return [Trigger(name="restock", event="Order_Shipped__e", function=restock)]
    """
