"""Elects the writer through the group; tracks the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from broker.client import ClientConfig, Generation, GroupMember
from broker.client.errors import FencedInstanceId
from registry.log.cluster.identity import (
    DUPLICATE_URLS,
    PROTOCOL,
    PROTOCOL_TYPE,
    Assignment,
    Identity,
    InvalidAssignment,
)
from registry.log.errors import NotLeader, UnknownLeader
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["Election", "Outcome"]

logger = get_logger(__name__)

_RETRY_S: Final = 1.0


class Outcome:
    """The writer, as far as this registry knows. ``changed`` is set, and replaced, whenever that changes."""

    def __init__(self) -> None:
        self.me: Identity | None = None
        self.leader: Identity | None = None
        self.term = 0
        """Incremented whenever this registry is elected again: its knowledge of the log may be stale by then."""
        self.changed = asyncio.Event()

    @property
    def is_me(self) -> bool:
        return self.leader is not None and self.leader == self.me

    def require(self) -> None:
        """Raises NotLeader or UnknownLeader unless this registry may write."""
        if self.leader is None:
            raise UnknownLeader
        if not self.is_me:
            raise NotLeader(self.leader.url)

    def set(self, leader: Identity | None) -> None:
        if leader == self.leader:
            return
        self.leader = leader
        if self.is_me:
            self.term += 1
        moved, self.changed = self.changed, asyncio.Event()
        moved.set()

    async def wait_changed(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.changed.wait(), seconds)
        except TimeoutError:
            return


class Election:
    """Membership in the registries' group until stopped, and the resulting ``Office``.

    The writer continues to write during a rebalance: if another registry is elected, that one claims the log, which
    then refuses this one (``broker.client.FencedWriter``). A registry restarted at the same address rejoins at once by
    its group instance id, so that a single registry need not wait for its old session to expire.
    """

    def __init__(
        self,
        config: ClientConfig,
        group_id: str,
        *,
        sticky: bool,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        heartbeat_interval_ms: int,
    ) -> None:
        self.outcome = Outcome()
        self._config, self._group_id, self._sticky = config, group_id, sticky
        self._me: Identity
        self._elected: Callable[[], Awaitable[None]]
        self._instance_id: str | None = None
        self._timing = {
            "session_timeout_ms": session_timeout_ms,
            "rebalance_timeout_ms": rebalance_timeout_ms,
            "heartbeat_interval_ms": heartbeat_interval_ms,
        }
        self._member: GroupMember | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._living: asyncio.Task[None] | None = None

    async def start(self, me: Identity, elected: Callable[[], Awaitable[None]]) -> None:
        """Join the group as ``me``. If that is impossible at the moment, keep trying, with one log message.

        ``elected`` is called, in a separate task, at the beginning of each term.
        """
        self.outcome.me = self._me = me
        self._elected = elected
        self._instance_id = f"registry-{me.host}-{me.port}".replace(":", ".")
        self._living = asyncio.create_task(self._live(), name=f"election in group {self._group_id}")

    async def stop(self) -> None:
        """Leave, so that another can be elected at once."""
        self.outcome.set(None)
        for task in (self._living, *self._tasks):
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in (self._living, *self._tasks) if task), return_exceptions=True)
        if self._member is not None:
            await self._member.stop(leave=True)

    @property
    def term(self) -> int:
        return self.outcome.term

    def require(self) -> None:
        self.outcome.require()

    async def confirm(self) -> bool:
        """Ask the coordinator whether this registry is the elected one now. Raises the request's errors."""
        return self._member is not None and await self._member.confirm() and self.outcome.is_me

    @property
    def certain(self) -> bool:
        """Whether this registry writes and its session has not expired, so that its state is complete."""
        return self.outcome.is_me and self._member is not None and self._member.in_session

    async def _live(self) -> None:
        said = False
        while True:
            member = GroupMember(
                self._config, self._group_id, PROTOCOL_TYPE, self, instance_id=self._instance_id, **self._timing
            )
            try:
                await member.start()
                self._member, said = member, False
                await member.wait_failed()
            except FencedInstanceId:
                # Another process has this address. With an id from the coordinator both are in the group, and both are
                # told that their addresses are equal, instead of fencing each other in turn.
                logger.warning("another registry came with this address", group=self._group_id, url=self._me.url)
                self._instance_id = None
            except TidegateError as error:
                if not said:
                    logger.warning(
                        "no part in the election of the writer; trying on", group=self._group_id, reason=str(error)
                    )
                said = True
            self.outcome.set(None)
            self._member = None
            await member.stop()
            await asyncio.sleep(_RETRY_S)

    # -- GroupBehaviour

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [(PROTOCOL, self._me.encode(leader=self.outcome.is_me))]

    async def assign(self, protocol: str, leader_id: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        identities: dict[str, tuple[Identity, bool]] = {}
        for member_id, metadata in members.items():
            try:
                identities[member_id] = Identity.decode(metadata)
            except InvalidAssignment as error:
                logger.warning(
                    "a member of the group is no registry", group=self._group_id, member=member_id, reason=str(error)
                )
        assignment = choose(identities, sticky=self._sticky).encode()
        return dict.fromkeys(members, assignment)

    async def before_join(self) -> None:
        """Does nothing: the writer continues until another one is elected."""

    async def on_generation(self, generation: Generation) -> None:
        try:
            assignment = Assignment.decode(generation.assignment)
        except InvalidAssignment as error:
            logger.warning(
                "nobody is known to write: the assignment cannot be read", group=self._group_id, reason=str(error)
            )
            self.outcome.set(None)
            return
        if assignment.error == DUPLICATE_URLS:
            logger.error(
                "nobody may write: several registries of the group say that they listen at the same address; give each "
                "a host.name or listener of its own",
                group=self._group_id,
                url=self._me.url,
            )
        elif assignment.leader is None:
            logger.warning(
                "nobody may write: no registry of the group has leader.eligibility=true", group=self._group_id
            )
        before = self.outcome.leader
        self.outcome.set(None if assignment.error else assignment.leader)
        if self.outcome.leader is not None and self.outcome.leader != before:
            logger.info("the writer is known", group=self._group_id, url=self.outcome.leader.url, me=self.outcome.is_me)
        if self.outcome.is_me and before != self._me:
            task = asyncio.create_task(self._tell(), name="registry elected")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        try:
            await self._elected()
        except TidegateError as error:  # the first write tries again
            logger.warning("could not take over the schema log yet", reason=str(error))


def choose(members: Mapping[str, tuple[Identity, bool]], *, sticky: bool) -> Assignment:
    """The writer of a group: with ``sticky`` the current one, otherwise the eligible member with the smallest URL."""
    urls = {identity.url for identity, _ in members.values()}
    eligible = {member_id: entry for member_id, entry in members.items() if entry[0].eligible}
    error = DUPLICATE_URLS if len(urls) != len(members) else 0
    if not eligible:
        return Assignment(error)
    writing = [member_id for member_id, (_, leads) in eligible.items() if leads]
    best = min(eligible, key=lambda member_id: eligible[member_id][0].url)
    chosen = writing[0] if sticky and len(writing) == 1 else best
    return Assignment(error, chosen, eligible[chosen][0])
