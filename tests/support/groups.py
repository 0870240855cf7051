"""A group coordinator whose clock the test advances and whose log is a list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from broker.errors import BrokerError
from broker.groups import GroupConfig, GroupCoordinator, GroupTopic, Joined, JoinRequest, MemberIdAssigned, Synced
from broker.protocol.records import Record
from tidegate.kit.config import parse

__all__ = ["Cluster", "ListLog", "ListTopics", "ManualClock", "failure", "value"]

T = TypeVar("T")


class _Timer:
    def __init__(self, at_ms: int, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """Time passes in ``advance`` only; what comes due runs in its order."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.loop = asyncio.new_event_loop()
        self._now_ms = now_ms
        self._timers: list[_Timer] = []

    def now_ms(self) -> int:
        return self._now_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> _Timer:
        timer = _Timer(self._now_ms + delay_ms, callback)
        self._timers.append(timer)
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        return self.loop.create_future()

    def advance(self, by_ms: int) -> None:
        self.settle()
        end_ms = self._now_ms + by_ms
        while True:
            self._timers = [timer for timer in self._timers if not timer.cancelled]
            due = min(self._timers, key=lambda timer: timer.at_ms, default=None)
            if due is None or due.at_ms > end_ms:
                break
            self._timers.remove(due)
            self._now_ms = max(self._now_ms, due.at_ms)
            due.callback()
            self.settle()
        self._now_ms = end_ms

    def settle(self) -> None:
        """Let the callbacks of futures run; within one of them, they come after it."""
        if not self.loop.is_running():
            self.loop.run_until_complete(asyncio.sleep(0))

    def close(self) -> None:
        self.loop.close()


class ListLog:
    """``__consumer_offsets`` as lists. ``held`` keeps appends from becoming durable until ``release``."""

    def __init__(self, clock: ManualClock, partitions: int = 3) -> None:
        self._clock = clock
        self._partitions = partitions
        self.entries: list[list[tuple[bytes, bytes | None]]] = [[] for _ in range(partitions)]
        self.transactional: list[dict[int, int]] = [{} for _ in range(partitions)]
        """The producer of each record that is part of a transaction, by the record's place."""
        self.markers: list[list[tuple[int, int, bool]]] = [[] for _ in range(partitions)]
        """(place in front of which it stands, producer, whether it commits) of each transaction that has ended."""
        self.held = False
        self.refusal: BrokerError | None = None
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def partitions(self) -> int:
        return self._partitions

    def append(
        self,
        partition: int,
        entries: Sequence[tuple[bytes, bytes | None]],
        producer: tuple[int, int] | None = None,
    ) -> asyncio.Future[None]:
        if self.refusal is not None:
            raise self.refusal
        self.entries[partition].extend(entries)
        for at in range(len(self.entries[partition]) - len(entries), len(self.entries[partition])):
            if producer is not None:
                self.transactional[partition][at] = producer[0]
        future = self._clock.create_future()
        if self.held:
            self._waiting.append(future)
        else:
            future.set_result(None)
        return future

    def release(self, error: BrokerError | None = None) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
        self._clock.settle()

    def end_transaction(self, partition: int, producer_id: int, *, commit: bool) -> None:
        """Apply the end of a transaction, as its marker would."""
        self.markers[partition].append((len(self.entries[partition]), producer_id, commit))

    def read(
        self, partition: int, still_open: dict[int, list[Record]] | None = None
    ) -> Iterable[tuple[int, bytes | None, bytes | None]]:
        pending: dict[int, list[Record]] = {} if still_open is None else still_open
        markers = list(self.markers[partition])
        for offset in range(len(self.entries[partition]) + 1):
            while markers and markers[0][0] == offset:
                _, producer_id, commit = markers.pop(0)
                ended = pending.pop(producer_id, [])
                yield from ((record.offset, record.key, record.value) for record in (ended if commit else ()))
            if offset == len(self.entries[partition]):
                return
            key, value = self.entries[partition][offset]
            if offset in self.transactional[partition]:
                pending.setdefault(self.transactional[partition][offset], []).append(Record(key, value, (), 0, offset))
            else:
                yield offset, key, value

    @property
    def size(self) -> int:
        return sum(map(len, self.entries))


class ListTopics:
    """A catalog of topics that tests fill; ``ids`` count up from 1."""

    def __init__(self, **partitions: int) -> None:
        self.version = self.created_version = 0
        self._topics: dict[str, GroupTopic] = {}
        for name, count in partitions.items():
            self.put(name, count)

    def put(self, name: str, partitions: int) -> GroupTopic:
        before = self._topics.get(name)
        self.version += 1
        if before is None:
            self.created_version = self.version
        topic_id = before.id if before is not None else UUID(int=self.version)
        self._topics[name] = GroupTopic(topic_id, name, partitions)
        return self._topics[name]

    def remove(self, name: str) -> None:
        self.version += 1
        del self._topics[name]

    def by_name(self, name: str) -> GroupTopic | None:
        return self._topics.get(name)

    def by_id(self, topic_id: UUID) -> GroupTopic | None:
        return next((topic for topic in self._topics.values() if topic.id == topic_id), None)

    def names(self) -> Iterable[str]:
        return self._topics


class Cluster:
    """A coordinator with its clock and log, and the steps of clients."""

    def __init__(self, **settings: str) -> None:
        properties = {"group.initial.rebalance.delay.ms": "0"}
        properties.update({name.replace("_", "."): value for name, value in settings.items()})
        self.config = parse(GroupConfig, properties)
        self.clock = ManualClock()
        self.log = ListLog(self.clock)
        self.topics = ListTopics()
        self.coordinator = self.reload()

    def reload(self) -> GroupCoordinator:
        """Another coordinator on the same log, as after a restart."""
        coordinator = GroupCoordinator(self.log, self.config, self.topics, self.clock)
        coordinator.start()
        return coordinator

    def join(
        self,
        group_id: str = "g",
        member_id: str = "",
        *,
        instance_id: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "connect",
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 30_000,
        known_id: bool = True,
        skipping: bool = True,
    ) -> asyncio.Future[Joined]:
        request = JoinRequest(
            member_id=member_id,
            instance_id=instance_id,
            client_id="client",
            client_host="/127.0.0.1",
            protocol_type=protocol_type,
            protocols={"default": b"meta"} if protocols is None else protocols,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            requires_known_member_id=known_id,
            supports_skipping_assignment=skipping,
        )
        return self.coordinator.join_group(group_id, request)

    def member_id(self, group_id: str = "g", **fields: Any) -> str:
        """The member id that a newcomer gets and has to send again."""
        error = failure(self.join(group_id, **fields))
        assert isinstance(error, MemberIdAssigned)
        return error.member_id

    def sync(
        self, joined: Joined, group_id: str = "g", assignments: Mapping[str, bytes] | None = None, **fields: Any
    ) -> asyncio.Future[Synced]:
        return self.coordinator.sync_group(
            group_id,
            generation=joined.generation,
            member_id=joined.member_id,
            assignments=assignments,
            **fields,
        )

    def stable(self, count: int, group_id: str = "g", **fields: Any) -> list[Joined]:
        """A stable group of ``count`` dynamic members, the leader first; member n is assigned b"n"."""
        ids = [self.member_id(group_id, **fields) for _ in range(count)]
        joins = [self.join(group_id, member_id, **fields) for member_id in ids]
        self.clock.advance(0)
        joined = [value(join) for join in joins]
        joined.sort(key=lambda member: member.member_id != member.leader)
        assignments = {member.member_id: str(number).encode() for number, member in enumerate(joined)}
        syncs = [
            self.sync(member, group_id, assignments if member.member_id == member.leader else None) for member in joined
        ]
        self.clock.settle()
        assert [value(sync).assignment for sync in syncs] == list(assignments.values())
        return joined


def value(future: asyncio.Future[T]) -> T:
    """The answer of a request that has one."""
    assert future.done(), "the request is still parked"
    return future.result()


def failure(future: asyncio.Future[Any]) -> BrokerError:
    """The error of a request that was refused."""
    assert future.done(), "the request is still parked"
    error = future.exception()
    assert isinstance(error, BrokerError), f"the request succeeded: {future}"
    return error
