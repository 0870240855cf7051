"""A worker's membership in its group: it joins, leads or follows, starts assigned items and stops revoked ones.

The group is one of Kafka's classic groups of type ``connect``. The member that Kafka makes leader also leads the
workers: it assigns connectors and tasks, and it alone writes the config topic. A rebalance has these steps:

1. somebody joins, leaves, or the leader asks for a round because there is new work;
2. all members join and report their items and their position in the config topic;
3. the leader assigns (``incremental`` or ``eager``), and each member receives its share;
4. each member stops its revoked items and, if there were any, asks for another round, which reassigns them.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from connect.errors import Conflict, Elsewhere
from connect.group.assignments import LeaderAssignments
from connect.group.pacing import Pacing
from connect.group.peers import Peers, resource
from connect.group.protocol import (
    Assignment,
    Item,
    MalformedWorkerMessage,
    WorkerState,
    decode_assignment,
    decode_state,
    encode_state,
)
from connect.group.protocol import Protocol as ConnectProtocol
from connect.group.session_keys import signed
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from broker.client import Admin, ClientConfig, Generation, GroupMember
    from connect.config.group import GroupConfig
    from connect.stores import ConfigStore

__all__ = ["Membership", "Work"]

logger = get_logger(__name__)

_ATTENTIVE_S: Final = 3.0
"""How long heartbeats are fast after a round, or after new work was seen, because rounds come in series."""
_ANNOUNCED_S: Final = 2.0
"""How long a joining worker waits for others to notice it."""
_PATIENCE_S: Final = 10.0
"""How long a request that only the leader can answer waits for a rebalance to end."""
_LEADER_LATE_S: Final = 15.0
_RETRY_S: Final = 0.5
_REFUSED_S: Final = 5.0
NO_LEADER: Final = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
)


class Work(Protocol):
    """The interface of the herder for the membership."""

    async def release(self, items: frozenset[Item]) -> None:
        """Stop items that, according to ``has``, no longer belong to this worker. Returns when they have stopped."""

    def take_up(self, names: Iterable[str]) -> None:
        """The share of these connectors has changed, or their tasks may start now."""

    async def lead(self) -> None:
        """This worker leads in this generation. Called in each such generation."""

    def expects_tasks(self) -> bool:
        """Whether assigned connectors still have to plan their tasks."""
        ...


class Membership:
    """A Group with several workers.

    Start it when the stores have been read; ``url`` is this worker's address for others.
    """

    def __init__(
        self,
        config: GroupConfig,
        client: ClientConfig,
        group_id: str,
        *,
        configs: ConfigStore,
        work: Work,
        peers: Peers,
    ) -> None:
        self._config, self._client, self._group_id = config, client, group_id
        self._configs, self._work, self._peers = configs, work, peers
        self._offered = ConnectProtocol.configured(config.connect_protocol).offered
        self.protocol = self._offered[0]
        """The group's protocol; without a group, this worker's newest."""
        self._assignments = LeaderAssignments(configs, config.scheduled_rebalance_max_delay_ms, self._catch_up)
        self._pacing = Pacing(self._ask_for_round, work.expects_tasks)
        self._member: GroupMember | None = None
        self._running: frozenset[Item] = frozenset()
        self._assignment: Assignment | None = None
        self._member_id = ""
        self._last_generation: int | None = None
        self._settled = asyncio.Event()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        """This worker's address for others; set before the start."""
        self.generation = 0
        self.rounds = 0
        """The number of rounds this worker has taken part in."""
        self.failure: TidegateError | None = None
        """Why the group refused this worker at its last attempt."""
        self.rebalanced_at = time.monotonic()
        self.rebalance_times_s: deque[float] = deque(maxlen=100)
        self._joining_since = time.monotonic()

    # -- Life ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to join; raises NotReachable."""
        from broker.client import GroupMember

        config = self._config
        self._member = GroupMember(
            self._client,
            self._group_id,
            "connect",
            self,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
        )
        await self._member.start()
        self._start(self._watch(self._member))

    async def _watch(self, member: GroupMember) -> None:
        """Log when the group refuses this worker, and retry: it may get the permission meanwhile."""
        try:
            await member.wait_failed()
        except TidegateError as error:
            self.failure = error
            logger.error("cannot take part in the group; trying again", group=self._group_id, error=str(error))
            await member.stop()
            await asyncio.sleep(_REFUSED_S)
            await self.start()

    async def meet(self, admin: Admin) -> None:
        """Inspect the group before joining it.

        A member with our address is this worker before it was killed: it is removed, because the group would wait for
        its session to expire. The others are told to expect a round, which they would otherwise notice only seconds
        later, with their next heartbeat.
        """
        try:
            described = await admin.describe_group(self._group_id)
            for member in described.members:
                with contextlib.suppress(MalformedWorkerMessage):
                    url = decode_state(member.metadata).url if member.metadata else ""
                    if url == self.url:
                        await admin.remove_member(self._group_id, member.member_id)
                        logger.info("removed what this worker was before from its group", member=member.member_id)
                    elif url:
                        self._start(self._announce(url))
        except TidegateError as error:
            logger.info("cannot look at the group before joining it", group=self._group_id, error=str(error))

    async def _announce(self, url: str) -> None:
        """A worker that does not answer, or is Kafka Connect's own, notices the round by itself."""
        with contextlib.suppress(TidegateError):
            await self._peers.order(
                "PUT", resource(url, "tidegate", "round"), headers=self._signature(b""), timeout_s=_ANNOUNCED_S
            )

    async def stop(self) -> None:
        """Leave the group. Everything must have been stopped."""
        self._pacing.stop()
        for timer in self._timers.values():
            timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        if self._member is not None:
            await self._member.stop()

    # -- Group ---------------------------------------------------------------------------------------------------

    @property
    def position(self) -> float:
        return self._assignment.offset if self._assignment is not None and not self._assignment.error else -1

    @property
    def is_leader(self) -> bool:
        return self._assignment is not None and self._assignment.leader == self._member_id != ""

    @property
    def leader_url(self) -> str | None:
        return (self._assignment.leader_url or None) if self._assignment is not None else None

    @property
    def rebalancing(self) -> bool:
        return not self._settled.is_set()

    def has(self, item: Item) -> bool:
        return item in self._running

    @property
    def running(self) -> frozenset[Item]:
        """This worker's share."""
        return self._running

    @property
    def client_id(self) -> str:
        return self._client.properties.get("client.id", f"connect-{urlsplit(self.url).netloc}-{self._group_id}")

    def work_changed(self) -> None:
        if self._member is None:
            return
        if self.is_leader:
            self._pacing.changed()
            return
        # The leader sees the same records and will start a round; if it does not, for whatever reason, another worker
        # has to.
        self._member.attend(_ATTENTIVE_S)
        if "late leader" not in self._timers:
            self._after("late leader", _LEADER_LATE_S, self._doubt_leader)

    def expect_round(self) -> None:
        if self._member is not None:
            self._member.attend(_ATTENTIVE_S)

    def _doubt_leader(self) -> None:
        if self._configs.position > self.position:
            self._ask_for_round()

    async def require_leader(self) -> None:
        await self._wait_settled()
        if not self.is_leader:
            raise Elsewhere(NO_LEADER, self.leader_url)

    async def require_owner(self, item: Item) -> None:
        await self._wait_settled()
        if self.has(item):
            return
        raise Elsewhere(NO_LEADER, self._assignments.url_of(item) if self.is_leader else self.leader_url)

    async def _wait_settled(self) -> None:
        if not await self.wait_settled_for(_PATIENCE_S):
            raise Conflict(NO_LEADER)

    async def wait_settled_for(self, seconds: float) -> bool:
        """Wait for the end of a round, at most this long. Returns whether none is in progress."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._settled.is_set():  # the next round may begin before this is notified of the end of one
                    await self._settled.wait()
        return self._settled.is_set()

    async def submit_tasks(self, connector: str, tasks: Sequence[Mapping[str, str]]) -> None:
        body = json.dumps([dict(task) for task in tasks], separators=(",", ":")).encode()
        await self._order("POST", body, "connectors", connector, "tasks")

    async def fence(self, connector: str) -> None:
        await self._order("PUT", b"", "connectors", connector, "fence")

    async def _order(self, method: str, body: bytes, *path: str) -> None:
        await self._wait_settled()
        if self.leader_url is None:
            raise Conflict(NO_LEADER)
        await self._peers.order(method, resource(self.leader_url, *path), body=body, headers=self._signature(body))

    def _signature(self, body: bytes) -> Mapping[str, str]:
        if self._configs.session_key is None or self.protocol is not ConnectProtocol.SESSIONED:
            return {}
        return signed(body, self._configs.session_key, self._config.signature_algorithm)

    # -- GroupBehaviour ------------------------------------------------------------------------------------------

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        state = WorkerState(self.url, self._configs.position, self._assignment)
        return [(protocol.value, encode_state(state, protocol)) for protocol in self._offered]

    async def before_join(self) -> None:
        self._settled.clear()
        self._joining_since = time.monotonic()
        # If nothing answers, nothing can have been reassigned; once the others have had the time to reassign, it may
        # have been.
        away_s = self._config.session_timeout_ms + self._config.rebalance_timeout_ms
        away_s += self._config.scheduled_rebalance_max_delay_ms
        self._after("cut off", away_s / 1000, lambda: self._start(self._give_up_all()))
        if self.protocol is ConnectProtocol.EAGER:
            await self._give_up_all()

    async def assign(self, protocol: str, leader_id: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return await self._assignments.assign(protocol, leader_id, members, last_generation=self._last_generation)

    async def on_generation(self, generation: Generation) -> None:
        self._cancel("cut off", "late leader", "scheduled")
        self._member_id, self.protocol = generation.member_id, ConnectProtocol(generation.protocol)
        self._last_generation = self.generation = generation.generation_id
        self.rounds += 1
        self.failure = None
        self.rebalanced_at = time.monotonic()
        self.rebalance_times_s.append(self.rebalanced_at - self._joining_since)
        self._assignments.completed(generation.generation_id, leads=generation.is_leader)
        try:
            assignment = decode_assignment(generation.assignment)
        except MalformedWorkerMessage as error:
            logger.warning("the leader sent no assignment; joining again", group=self._group_id, error=str(error))
            self._after("scheduled", _RETRY_S, self._ask_for_round)
            return
        await self._take(assignment)

    async def _take(self, assignment: Assignment) -> None:
        assert self._member is not None
        before, position = self._running, self.position
        kept = self._running - assignment.revoked if self.protocol.cooperative else frozenset()
        self._running = kept
        released = before - kept
        if released:
            await self._work.release(released)
        self._running = kept | assignment.items
        self._assignment = dataclasses.replace(assignment, items=self._running, revoked=frozenset(), delay_ms=0)
        logger.info(
            "joined the group",
            generation=self.generation,
            protocol=self.protocol.value,
            leader=assignment.leader_url,
            items=len(self._running),
            begins=len(assignment.items - before),
            stops=len(assignment.revoked),
            delay_ms=assignment.delay_ms,
        )
        if self._configs.position < assignment.offset:
            await self._catch_up()
        if self._configs.position < assignment.offset:
            self._start(self._stay_away(assignment.offset))
            return
        if assignment.error:
            self._after("scheduled", _RETRY_S, self._ask_for_round)
            return
        self._settled.set()
        self._member.attend(_ATTENTIVE_S)
        if self.is_leader:
            await self._work.lead()
        ready = {name for name, stored in self._configs.connectors.items() if stored.committed_at > position}
        self._work.take_up({item.connector for item in self._running ^ before} | ready)
        if assignment.revoked and self.protocol.cooperative:
            self._ask_for_round()
        elif assignment.delay_ms > 0:
            self._after("scheduled", assignment.delay_ms / 1000, self._ask_for_round)
        elif self.is_leader and self._configs.position > assignment.offset and self._assignments.has_new_work:
            self.work_changed()

    async def _catch_up(self) -> None:
        """Read the config topic to its end, within ``worker.sync.timeout.ms``."""
        try:
            await self._configs.refresh(self._config.worker_sync_timeout_ms / 1000)
        except (TimeoutError, TidegateError) as error:
            logger.warning("cannot read the config topic to its end in time", error=str(error) or "no answer in time")

    async def _stay_away(self, position: int) -> None:
        """Leave the group until the config topic has been read: a worker that lags behind would delay every round."""
        assert self._member is not None
        logger.warning("leaving the group until the config topic has been read", position=position)
        await self._member.stop()
        pause_s = _RETRY_S
        while self._configs.position < position:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, self._config.worker_unsync_backoff_ms / 1000)
            await self._catch_up()
        await self.start()

    async def _give_up_all(self) -> None:
        released, self._running = self._running, frozenset()
        self._assignment = None
        if released:
            await self._work.release(released)

    # -- Helpers -----------------------------------------------------------------------------------------------------

    def _ask_for_round(self) -> None:
        if self._member is not None:
            self._member.rejoin()

    def _after(self, what: str, delay_s: float, call: Callable[[], object]) -> None:
        self._cancel(what)

        def fire() -> None:
            self._timers.pop(what, None)
            call()

        self._timers[what] = asyncio.get_running_loop().call_later(delay_s, fire)

    def _cancel(self, *what: str) -> None:
        for item in what:
            timer = self._timers.pop(item, None)
            if timer is not None:
                timer.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
