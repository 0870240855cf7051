"""What the services of all group types share: records go to the log, and then into memory by the way they come back in."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar

from broker.errors import BrokerError, UnknownServerError
from broker.groups.clock import Clock
from broker.groups.config import GroupConfig
from broker.groups.group_settings import GroupSettings
from broker.groups.journal import Entry, GroupJournal, accepted, answer_when, fail, when_done
from broker.groups.modern.records import Record, RecordKey, RecordTypes, RecordValue, encode_entry
from broker.groups.modern.timers import Timers
from broker.groups.modern.topics import TopicCatalog
from broker.groups.namespace import AnyGroup, GroupNamespace, GroupType
from tidegate.kit.logs import logger

__all__ = ["METADATA_REFRESH_INTERVAL_MS", "GroupService", "Surroundings"]

_log = logger(__name__)

METADATA_REFRESH_INTERVAL_MS: Final = 3_600_000
"""A group looks at its topics this often, if nobody told it of a change."""
_RETRY_MS: Final = 500

A = TypeVar("A")
G = TypeVar("G", bound=AnyGroup)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every group type works with. ``settings`` gives a group's own configuration."""

    groups: GroupNamespace
    journal: GroupJournal
    clock: Clock
    topics: TopicCatalog
    config: GroupConfig
    settings: Callable[[str], GroupSettings]


class GroupService(ABC, Generic[G]):
    """One type of group: requests of its members come in, records go out.

    An operation reads the groups, decides, and hands all it changes to ``commit`` as records. Those are one batch in the
    log; ``replay`` then applies them, as it does when the log is read at start. So memory never knows what the log does
    not, and an operation that raises has changed nothing.
    """

    TYPE: ClassVar[GroupType]
    RECORDS: ClassVar[RecordTypes]

    def __init__(self, surroundings: Surroundings) -> None:
        self.around = surroundings
        self.timers = Timers(surroundings.clock)

    @abstractmethod
    def replay(self, key: RecordKey, value: RecordValue | None) -> None:
        """Apply one record. Tombstones of what is not there are passed over: compaction may have left only them."""

    @abstractmethod
    def loaded(self, group: G) -> None:
        """A group was read from the log: begin its members' sessions."""

    def stop(self) -> None:
        self.timers.clear()

    def commit(
        self, group_id: str, records: Sequence[Record], answer: A, *, before: Sequence[Entry] = ()
    ) -> asyncio.Future[A]:
        """Write records, then follow them in memory; the answer is given once they are durable.

        ``before`` are entries of another type that go first in the same batch; what they mean in memory is the caller's
        business, who learns from ``accepted`` whether they were taken.
        """
        future: asyncio.Future[A] = self.around.clock.create_future()
        written = self.append(group_id, records, before=before)
        answer_when(written, future, answer)
        return future

    def append(self, group_id: str, records: Sequence[Record], *, before: Sequence[Entry] = ()) -> asyncio.Future[None]:
        """As ``commit``, without an answer."""
        written = self.around.journal.append(group_id, [*before, *map(encode_entry, records)])
        if accepted(written):
            for key, value in records:
                self.replay(key, value)
        return written

    def refuse(self, error: BrokerError) -> asyncio.Future[A]:
        """The future of an operation that raised."""
        future: asyncio.Future[A] = self.around.clock.create_future()
        fail(future, error)
        return future

    def later(self, purpose: str, group_id: str, member_id: str, delay_ms: int, do: Callable[[], None]) -> None:
        """Do something by the clock. It is tried again if it raises, as when the log cannot be written."""
        name = (purpose, group_id, member_id)

        def attempt() -> None:
            try:
                do()
            except BrokerError as error:
                _log.warning("cannot act on a timer", group=group_id, member=member_id, timer=purpose, error=str(error))
                self.timers.schedule(name, _RETRY_MS, attempt)

        self.timers.schedule(name, delay_ms, attempt)

    def write_by_timer(self, group_id: str, records: Sequence[Record], *, before: Sequence[Entry] = ()) -> None:
        """As ``append``, for what nobody waits for: raises if the log refuses, warns if it does not become durable."""
        written = self.append(group_id, records, before=before)
        if not accepted(written):
            error = written.exception()
            raise error if isinstance(error, BrokerError) else UnknownServerError(str(error))

        def note(error: BrokerError | None) -> None:
            if error is not None:
                _log.warning("group could not be written", group=group_id, error=str(error))

        when_done(written, note)
