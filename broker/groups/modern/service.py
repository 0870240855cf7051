"""The base of the services of all group types. Records are written to the log and applied to memory as on replay."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar

from broker.coordinator.clock import Clock
from broker.coordinator.futures import (
    accepted,
    answer_when,
    fail,
    when_done,
)
from broker.coordinator.journal import GroupJournal
from broker.coordinator.namespace import AnyGroup, GroupNamespace, GroupType
from broker.coordinator.records import RecordValue
from broker.coordinator.state_log import Entry
from broker.errors import BrokerError, UnknownServerError
from broker.groups.classic.service import ClassicGroups
from broker.groups.config.group_config import GroupConfig
from broker.groups.config.group_settings import GroupSettings
from broker.groups.modern.records import (
    GroupRecordKey,
    Record,
    RecordTypes,
    encode_entry,
)
from broker.groups.modern.timers import Timers
from broker.groups.modern.topics import TopicCatalog
from tidegate.kit.logs import get_logger

__all__ = ["METADATA_REFRESH_INTERVAL_MS", "Change", "GroupService", "Surroundings"]

logger = get_logger(__name__)

METADATA_REFRESH_INTERVAL_MS: Final = (1 << 31) - 1
"""A group checks its topics this often without a notification: practically never, as in Kafka."""
_RETRY_MS: Final = 500

A = TypeVar("A")
G = TypeVar("G", bound=AnyGroup)


@dataclass(frozen=True, slots=True)
class Change:
    """Entries of one batch, and their effect in memory. Without entries nothing happens in memory."""

    entries: list[Entry]
    follow: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The collaborators of every group type. ``settings`` returns a group's own configuration."""

    groups: GroupNamespace
    journal: GroupJournal
    clock: Clock
    topics: TopicCatalog
    config: GroupConfig
    settings: Callable[[str], GroupSettings]
    classic: ClassicGroups


class GroupService(ABC, Generic[G]):
    """One type of group: takes its members' requests and writes records.

    An operation reads the groups, decides, and passes all its changes to ``commit`` as records. They are one batch in
    the log. ``replay`` then applies them, as it does when the log is read at start. So memory never has more than the
    log, and an operation that raises has changed nothing.
    """

    TYPE: ClassVar[GroupType]
    RECORDS: ClassVar[RecordTypes]

    def __init__(self, surroundings: Surroundings) -> None:
        self.around = surroundings
        self.timers = Timers(surroundings.clock)

    @abstractmethod
    def replay(self, key: GroupRecordKey, value: RecordValue | None) -> None:
        """Apply one record. Ignores tombstones for things that don't exist: compaction may have left only them."""

    @abstractmethod
    def loaded(self, group: G) -> None:
        """A group was read from the log: start its members' sessions."""

    def before_delete(self, group: G) -> None:
        """An administrator is about to delete a group without members."""

    def stop(self) -> None:
        self.timers.clear()

    def commit(self, group_id: str, records: Sequence[Record], answer: A) -> asyncio.Future[A]:
        """Write records, then apply them in memory. The answer is sent once they are durable."""
        future: asyncio.Future[A] = self.around.clock.create_future()
        answer_when(self.write(group_id, self.change(records)), future, answer)
        return future

    def change(self, records: Sequence[Record]) -> Change:
        def follow() -> None:
            for key, value in records:
                self.replay(key, value)

        return Change([encode_entry(record) for record in records], follow)

    def write(self, group_id: str, change: Change) -> asyncio.Future[None]:
        """Write a change; done when it is durable. It is applied in memory at once, if the log accepts it."""
        written = self.around.journal.append(group_id, change.entries)
        if accepted(written):
            change.follow()
        return written

    def refuse(self, error: BrokerError) -> asyncio.Future[A]:
        """A failed future, for an operation that raised."""
        future: asyncio.Future[A] = self.around.clock.create_future()
        fail(future, error)
        return future

    def later(self, purpose: str, group_id: str, member_id: str, delay_ms: int, do: Callable[[], None]) -> None:
        """Run ``do`` after a delay. It is retried if it raises, for example because the log can't be written."""
        name = (purpose, group_id, member_id)

        def attempt() -> None:
            try:
                do()
            except BrokerError as error:
                logger.warning(
                    "cannot act on a timer", group=group_id, member=member_id, timer=purpose, error=str(error)
                )
                self.timers.schedule(name, _RETRY_MS, attempt)

        self.timers.schedule(name, delay_ms, attempt)

    def write_by_timer(self, group_id: str, change: Change) -> None:
        """Like ``write``, for changes without a caller: raises if the log refuses, logs a warning if it does not become
        durable.
        """
        written = self.write(group_id, change)
        if not accepted(written):
            error = written.exception()
            raise error if isinstance(error, BrokerError) else UnknownServerError(str(error))

        def note(error: BrokerError | None) -> None:
            if error is not None:
                logger.warning("group could not be written", group=group_id, error=str(error))

        when_done(written, note)
