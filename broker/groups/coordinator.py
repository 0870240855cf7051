"""The group coordinator: members join, agree on assignments, commit offsets, and are removed when they time out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker.coordinator.clock import Clock, LoopClock, Timer
from broker.coordinator.futures import accepted, succeed, when_done
from broker.coordinator.namespace import AnyGroup, GroupType
from broker.coordinator.state_log import StateLog
from broker.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InconsistentGroupProtocol,
    NotCoordinator,
)
from broker.groups.classic.group import Group
from broker.groups.classic.values import (
    DescribedGroup,
    Joined,
    JoinRequest,
    Leaving,
    Left,
    Synced,
)
from broker.groups.config.group_config import GroupConfig
from broker.groups.config.group_settings import SettingsOfGroups
from broker.groups.consumer.classic_members import ClassicMembers
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.service import ConsumerGroups
from broker.groups.loading import load
from broker.groups.modern.group import ModernGroup
from broker.groups.modern.service import GroupService, Surroundings
from broker.groups.modern.topics import TopicCatalog
from broker.groups.offsets.service import GroupOffsets, warn
from broker.groups.views import ListedGroup, described, listed
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from broker.groups.share.values import ShareState

__all__ = ["GroupCoordinator"]

logger = get_logger(__name__)

S = TypeVar("S", bound=GroupService[Any])


class GroupCoordinator(GroupOffsets):
    """All groups of this broker. Call it from one thread; nothing blocks.

    A call that has to wait for other members or for the disk returns a future. The future fails with the BrokerError to
    answer, even if the call is refused at once. Other calls return or raise. A caller that no longer waits may cancel
    the future; the member stays until its session expires.

    Every change is in the log before its answer. ``start`` reads the log back; until then every call is refused with
    CoordinatorLoadInProgress.
    """

    def __init__(
        self,
        log: StateLog,
        config: GroupConfig,
        topics: TopicCatalog,
        clock: Clock | None = None,
        *,
        settings: Callable[[str], Mapping[str, str]] | None = None,
        share_state: Callable[[], ShareState | None] = lambda: None,
    ) -> None:
        super().__init__(log, config, clock or LoopClock())
        self.settings = SettingsOfGroups(config, settings)
        self._share_state = share_state
        self._surroundings = Surroundings(
            self._groups, self._journal, self._clock, topics, config, self.settings, self._classic
        )
        consumers = ConsumerGroups(self._surroundings)
        self._services: dict[GroupType, GroupService[Any]] = {GroupType.CONSUMER: consumers}
        """The services in use, by group type."""
        self._classic_members = ClassicMembers(consumers)
        self._sweep: Timer | None = None

    def start(self) -> None:
        """Read every group and offset from the log; start the sessions of their members."""
        load(self._journal, self._groups, self._offsets, self._service_of_record, self._clock.now_ms())
        self._refusal = None
        for group in self._groups:
            if isinstance(group, Group):
                self._classic.loaded(group)
            else:
                self._service(group.group_type).loaded(group)
        self._sweep_later()

    def stop(self) -> None:
        """Abandon all groups: parked requests fail with NotCoordinator, on which clients look for another coordinator."""
        self._refusal = NotCoordinator("The broker is shutting down.")
        if self._sweep is not None:
            self._sweep.cancel()
        for group in self._groups.of_type(Group):
            self._classic.rebalance.stop(group, self._refusal)
        for service in self._services.values():
            service.stop()

    def service(self, kind: type[S]) -> S:
        """The service of a group type, by its class. Raises the error that refuses every call at the moment."""
        self._check_open()
        service = self._service(kind.TYPE)
        assert isinstance(service, kind)
        return service

    def has(self, kind: GroupType) -> bool:
        """Whether groups of a type have been used since the start, or are in the log."""
        return kind in self._services

    def _service(self, kind: GroupType) -> GroupService[Any]:
        """The service of a type. The code for share groups and streams groups is imported with their first use."""
        service = self._services.get(kind)
        if service is None:
            if kind is GroupType.SHARE:
                from broker.groups.share.service import ShareMembership

                service = ShareMembership(self._surroundings, self._share_state)
            else:
                from broker.groups.streams.service import StreamsGroups

                service = StreamsGroups(self._surroundings)
            self._services[kind] = service
        return service

    def _service_of_record(self, number: int) -> GroupService[Any] | None:
        """The service that reads records of a type; None for offsets and classic groups, and for unknown types."""
        kind = _KINDS_OF_RECORDS.get(number)
        return None if kind is None else self._service(kind)

    def topic_changed(self, name: str) -> None:
        """A topic was created, deleted or got more partitions: groups that read it need new assignments."""
        for group in self._groups:
            if isinstance(group, ModernGroup) and name in group.subscribed_topics:
                group.refresh_soon()

    # -- members of classic groups ---------------------------------------------------------------------------------

    def join_group(self, group_id: str, request: JoinRequest) -> asyncio.Future[Joined]:
        """Join a group, or its next generation. Done when all members have joined or the rebalance timeout is over.

        New members that have to join again with an id get MemberIdAssigned, a MemberIdRequired that carries the id.
        """
        try:
            self._check_open(group_id)
            group = self._groups.get(group_id)
            if isinstance(group, ConsumerGroup) and not group.is_empty:
                return self._classic_members.join(group, request)
            if group is not None and not isinstance(group, Group):
                self._make_way(group)
        except BrokerError as error:
            return self._refused(error)
        return self._classic.join(group_id, request)

    def _make_way(self, group: AnyGroup) -> None:
        """An empty group of consumers or streams becomes a classic one when a classic member joins first."""
        if group.group_type is GroupType.SHARE or not group.is_empty:
            raise InconsistentGroupProtocol(f"Group {group.group_id} is a {group.group_type.value} group.")
        written = self._journal.append(group.group_id, group.tombstones())
        if not accepted(written):
            raise CoordinatorNotAvailable(f"Group {group.group_id} could not be written: {written.exception()}")
        when_done(written, lambda error: warn(group.group_id, error))
        self._groups.remove(group.group_id)

    def sync_group(
        self,
        group_id: str,
        *,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: Mapping[str, bytes] | None = None,
    ) -> asyncio.Future[Synced]:
        """Return a member's assignment; the leader sends the assignments of all. Done when those are written.

        ``protocol_type`` and ``protocol_name`` are checked if present (SyncGroup v5 and later).
        """
        try:
            self._check_open(group_id)
        except BrokerError as error:
            return self._refused(error)
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.sync(
                group,
                generation=generation,
                member_id=member_id,
                instance_id=instance_id,
                protocol_type=protocol_type,
                protocol_name=protocol_name,
            )
        return self._classic.sync(
            group_id,
            generation=generation,
            member_id=member_id,
            instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=assignments,
        )

    def heartbeat(self, group_id: str, *, generation: int, member_id: str, instance_id: str | None = None) -> None:
        """Keep a member in its group. Raises RebalanceInProgress if it has to join again."""
        if isinstance(self._refusal, CoordinatorLoadInProgress):
            return  # it may be a member: that is known once the log is loaded
        self._check_open(group_id)
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            self._classic_members.heartbeat(group, generation=generation, member_id=member_id, instance_id=instance_id)
            return
        self._classic.heartbeat(group_id, generation=generation, member_id=member_id, instance_id=instance_id)

    def leave_group(self, group_id: str, leaving: Sequence[Leaving]) -> asyncio.Future[list[Left]]:
        """Remove members, with one result each; the remaining ones rebalance."""
        try:
            self._check_open(group_id)
        except BrokerError as error:
            return self._refused(error)
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.leave(group, leaving)
        return self._classic.leave(group_id, leaving)

    # -- groups ----------------------------------------------------------------------------------------------------

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        """The groups in these states and of these types (case-insensitive names). An empty filter matches all."""
        self._check_open()
        return listed(self._groups, states, types)

    def describe_groups(self, group_ids: Iterable[str]) -> list[DescribedGroup]:
        """Each group with its members, in the order of ``group_ids``."""
        self._check_open()
        return [described(group_id, self._groups.get(group_id)) for group_id in group_ids]

    def delete_groups(self, group_ids: Iterable[str]) -> asyncio.Future[dict[str, BrokerError | None]]:
        """Delete groups without members, and their offsets. Done when that is written, with one result each."""
        future: asyncio.Future[dict[str, BrokerError | None]] = self._clock.create_future()
        results: dict[str, BrokerError | None] = {}
        writes: list[tuple[str, asyncio.Future[None]]] = []
        for group_id in dict.fromkeys(group_ids):
            try:
                self._check_open()
                group = self._existing(group_id)
                group.check_delete()
                if group.group_type is not GroupType.CLASSIC:
                    self._service(group.group_type).before_delete(group)
                results[group_id] = None
                writes.append((group_id, self._delete(group)))
            except BrokerError as error:
                results[group_id] = error
        open_writes = len(writes)
        if not writes:
            succeed(future, results)

        def written(group_id: str) -> Callable[[BrokerError | None], None]:
            def note(error: BrokerError | None) -> None:
                nonlocal open_writes
                results[group_id] = error
                open_writes -= 1
                if not open_writes:
                    succeed(future, results)

            return note

        for group_id, write in writes:
            when_done(write, written(group_id))
        return future

    def counts(self) -> dict[tuple[GroupType, str], int]:
        """The number of groups of each type and state, for metrics."""
        counts: dict[tuple[GroupType, str], int] = {}
        for group in self._groups:
            counts[group.group_type, group.state_name] = counts.get((group.group_type, group.state_name), 0) + 1
        return counts

    def expire(self) -> None:
        """Delete expired offsets, and empty groups that have none left."""
        now_ms, retention_ms = self._clock.now_ms(), self._config.retention_minutes * 60_000
        for group in self._groups:
            gone = self._offsets.expired(group, now_ms, retention_ms)
            remains = len(self._offsets.of(group.group_id)) > len(gone) or self._offsets.pending.of(group.group_id)
            if group.is_empty and group.expires and not remains:
                write = self._delete(group)
            elif gone:
                write = self._offsets.delete(group.group_id, gone)
            else:
                continue
            logger.info("offsets expired", group=group.group_id, offsets=len(gone))
            when_done(write, lambda error, group_id=group.group_id: warn(group_id, error))  # type: ignore[misc]

    # -- inside ----------------------------------------------------------------------------------------------------

    def _delete(self, group: AnyGroup) -> asyncio.Future[None]:
        gone = [*self._offsets.of(group.group_id), *self._offsets.pending.of(group.group_id)]
        written = self._offsets.delete(group.group_id, list(dict.fromkeys(gone)), also=group.tombstones())
        if accepted(written):
            if isinstance(group, Group):
                self._classic.rebalance.stop(group, CoordinatorNotAvailable(f"Group {group.group_id} was deleted."))
            self._groups.remove(group.group_id)
        return written

    def _sweep_later(self) -> None:
        def sweep() -> None:
            self.expire()
            self._sweep_later()

        self._sweep = self._clock.call_later(self._config.retention_check_interval_ms, sweep)


_KINDS_OF_RECORDS: Final[Mapping[int, GroupType]] = {
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), GroupType.CONSUMER),
    **dict.fromkeys(range(10, 16), GroupType.SHARE),
    **dict.fromkeys((17, 19, 20, 21, 22, 23), GroupType.STREAMS),
}
"""The group type that each record type of ``__consumer_offsets`` belongs to; ``RECORDS`` of each group type has its
classes.
"""
