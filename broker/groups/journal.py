"""Writing groups and offsets to ``__consumer_offsets`` and reading them back; where each group's partition is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

from broker.errors import (
    BrokerError,
    CoordinatorNotAvailable,
    InvalidReplicationFactor,
    KafkaStorageError,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    RecordListTooLarge,
    RequestTimedOut,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from broker.groups.clock import Clock
from broker.groups.group import Group
from broker.groups.records import Entry, StoredGroup, StoredMember, encode_group, encode_group_key
from broker.protocol.records import Record

__all__ = [
    "OFFSETS_TOPIC",
    "Entry",
    "GroupJournal",
    "OffsetsLog",
    "accepted",
    "answer_when",
    "fail",
    "group_entry",
    "partition_for",
    "succeed",
    "when_done",
]

OFFSETS_TOPIC: Final = "__consumer_offsets"


class OffsetsLog(Protocol):
    """The log of ``__consumer_offsets``.

    ``append`` has written the records, all or none, when it returns (BrokerError if it cannot); the future it gives
    is done when they are as durable as an acknowledged record is, and fails with a BrokerError if that does not come
    to be. Futures of one partition are done in the order of the appends. With a ``producer`` (id, epoch) the records are
    part of its transaction. ``read`` gives the records of a partition from its start, and is called before the first append.
    """

    @property
    def partitions(self) -> int: ...

    def append(
        self, partition: int, entries: Sequence[Entry], producer: tuple[int, int] | None = None
    ) -> asyncio.Future[None]: ...

    def read(
        self, partition: int, still_open: dict[int, list[Record]] | None = None
    ) -> Iterable[tuple[int, bytes | None, bytes | None]]:
        """(offset, key, value) of each record once it counts; open transactions stay in ``still_open``, by producer id."""
        ...


def partition_for(group_id: str, partitions: int) -> int:
    """Kafka's choice: the magnitude of Java's ``String.hashCode`` (over UTF-16 units), modulo the partitions.

    The smallest int has no magnitude in Java; Kafka takes 0 for it.
    """
    units = group_id.encode("utf-16-be", "surrogatepass")
    code = 0
    for position in range(0, len(units), 2):
        code = (code * 31 + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    magnitude = min(code, (1 << 32) - code) & 0x7FFFFFFF
    return magnitude % partitions


_ANSWERS: Final[Sequence[tuple[type[BrokerError], type[BrokerError]]]] = (
    (UnknownTopicOrPartition, CoordinatorNotAvailable),
    (NotEnoughReplicas, CoordinatorNotAvailable),
    (InvalidReplicationFactor, CoordinatorNotAvailable),
    (RequestTimedOut, CoordinatorNotAvailable),
    (NotLeaderOrFollower, NotCoordinator),
    (KafkaStorageError, NotCoordinator),
    (MessageTooLarge, UnknownServerError),
    (RecordListTooLarge, UnknownServerError),
)
"""What a client of the coordinator is told when the log refuses: errors of Produce mean other things to it."""


def _answer(error: BaseException) -> BrokerError:
    for cause, answer in _ANSWERS:
        if isinstance(error, cause):
            return answer(str(error))
    return error if isinstance(error, BrokerError) else UnknownServerError(f"The coordinator's log: {error}")


T = TypeVar("T")


def succeed(future: asyncio.Future[T], value: T) -> None:
    """Resolve a request's future, unless nobody waits any more (the connection is gone and it was cancelled)."""
    if not future.done():
        future.set_result(value)


def fail(future: asyncio.Future[Any], error: BrokerError) -> None:
    """As ``succeed``; and an error that nobody fetches is no news: the client has gone, and will ask again."""
    if not future.done():
        future.set_exception(error)
        future.exception()


def when_done(future: asyncio.Future[None], callback: Callable[[BrokerError | None], None]) -> None:
    """Call back with the failure or None: at once if the future is done, so that no other request comes in between."""

    def call(done: asyncio.Future[None]) -> None:
        if done.cancelled():
            callback(NotCoordinator("The broker stopped before the record was on disk."))
        else:
            error = done.exception()
            callback(None if error is None else _answer(error))

    if future.done():
        call(future)
    else:
        future.add_done_callback(call)


def answer_when(written: asyncio.Future[None], future: asyncio.Future[T], answer: T) -> None:
    """Give a request its answer once what it changed is durable, or else what kept it from being so."""
    when_done(written, lambda error: succeed(future, answer) if error is None else fail(future, error))


def accepted(written: asyncio.Future[None]) -> bool:
    """Whether the log took a write, be it durable yet or not: then memory follows, whatever comes next."""
    return not written.done() or (not written.cancelled() and written.exception() is None)


class GroupJournal:
    """Appends the records of groups, each to the partition of its group."""

    def __init__(self, log: OffsetsLog, clock: Clock) -> None:
        self.log = log
        self._clock = clock

    def partition(self, group_id: str) -> int:
        """Where a group's records are."""
        return partition_for(group_id, self.log.partitions)

    def append(
        self, group_id: str, entries: Sequence[Entry], producer: tuple[int, int] | None = None
    ) -> asyncio.Future[None]:
        """A failure to write is a failed future, like a failure to make durable; no entries are done at once."""
        if not entries:
            return self._done(None)
        try:
            return self.log.append(self.partition(group_id), entries, producer)
        except BrokerError as error:
            return self._done(error)

    def write_group(self, group: Group, assignments: dict[str, bytes] | None = None) -> asyncio.Future[None]:
        """Write the group's generation, with ``assignments`` or those its members have."""
        return self.append(group.group_id, [group_entry(group, assignments)])

    def _done(self, error: BrokerError | None) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._clock.create_future()
        if error is None:
            future.set_result(None)
        else:
            fail(future, error)
        return future


def group_entry(group: Group, assignments: dict[str, bytes] | None = None) -> Entry:
    """The record of a classic group's generation, with ``assignments`` or those its members have."""
    stored = StoredGroup(
        group.protocol_type or "",
        group.generation,
        group.protocol_name,
        group.leader,
        group.state_since_ms,
        tuple(
            StoredMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.protocols.get(group.protocol_name or "", b""),
                member.assignment if assignments is None else assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ),
    )
    return encode_group_key(group.group_id), encode_group(stored)
