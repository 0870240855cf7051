"""Membership in a group of any protocol type (``connect``, ``sr``, ...): join, sync, heartbeat, leave."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from broker.client.cluster import Cluster, check
from broker.client.config import ClientConfig
from broker.client.errors import ClientTimeout
from broker.errors import (
    NONE,
    FencedInstanceId,
    GroupAuthorizationFailed,
    IllegalGeneration,
    MemberIdRequired,
    RebalanceInProgress,
    SaslAuthenticationFailed,
    UnknownMemberId,
)
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.logs import get_logger

__all__ = ["Generation", "GroupBehaviour", "GroupMember"]

logger = get_logger(__name__)

_FINAL: Final = (UsageError, FencedInstanceId, GroupAuthorizationFailed, SaslAuthenticationFailed)
"""Errors that no retry can fix. Brokers that start or stop answer with unexpected errors, so all others are retried."""
_GRACE_MS: Final = 5_000
"""How much longer than the rebalance timeout the answer to a JoinGroup may take."""
_ATTENTIVE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Generation:
    """A completed rebalance, as this member sees it."""

    generation_id: int
    member_id: str
    leader_id: str
    protocol: str
    assignment: bytes

    @property
    def is_leader(self) -> bool:
        return self.member_id == self.leader_id


class GroupBehaviour(Protocol):
    """The purpose-specific part of a member. All methods run on the member's event loop, one at a time, while
    heartbeats continue.

    The order is: before_join, protocols, assign (on the leader only), on_generation, and from the start again when the
    group changes. An exception in on_generation or before_join is logged and membership continues. An exception in
    assign makes the member leave and fail.
    """

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """The protocols that this member supports, preferred first, each with its metadata."""

    async def assign(self, protocol: str, leader_id: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The assignment of each member, computed from the members' metadata.

        A member without an entry gets empty bytes.
        """

    async def before_join(self) -> None:
        """Called before the group is joined (again): release what must not be kept through a rebalance."""

    async def on_generation(self, generation: Generation) -> None:
        """A new generation has begun."""


class GroupMember:
    """Stays in a group until stopped, across broker restarts, lost sessions and rebalances."""

    def __init__(
        self,
        config: ClientConfig,
        group_id: str,
        protocol_type: str,
        behaviour: GroupBehaviour,
        *,
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        heartbeat_interval_ms: int = 3_000,
        instance_id: str | None = None,
    ) -> None:
        patient = {"request.timeout.ms": str(rebalance_timeout_ms + _GRACE_MS)}
        self._cluster = Cluster(config.with_properties(patient), kind="member")
        self._retry_s = config.connection().retry_backoff_ms / 1000
        self._group_id, self._protocol_type, self._behaviour = group_id, protocol_type, behaviour
        self._session_timeout_ms, self._rebalance_timeout_ms = session_timeout_ms, rebalance_timeout_ms
        self._heartbeat_s = heartbeat_interval_ms / 1000
        self._instance_id = instance_id
        self._member_id = ""
        self._generation: Generation | None = None
        self._heard = 0.0
        self._change = asyncio.Event()
        self._attend, self._attentive_until = asyncio.Event(), 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def generation(self) -> Generation | None:
        """This member's current generation; None if it has none."""
        return self._generation

    @property
    def in_session(self) -> bool:
        """Whether this member is in a generation and its session can't have expired.

        Time during which the process was suspended counts.
        """
        silent_s = time.monotonic() - self._heard
        return self._generation is not None and silent_s * 1000 < self._session_timeout_ms

    async def start(self) -> None:
        """Connect and begin to join. ``on_generation`` is called when the group is stable. Raises NotReachable."""
        await self._cluster.start()
        self._task = asyncio.create_task(self._live(), name=f"member of group {self._group_id}")

    async def stop(self, *, leave: bool | None = None) -> None:
        """Leave, so that the other members need not wait for the session to expire.

        Unless ``leave`` says otherwise, a member with an instance id does not leave: it can come back within its
        session.
        """
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, TidegateError):
                await self._task
        if self._member_id and (self._instance_id is None if leave is None else leave):
            about = f"leaving group {self._group_id}"
            with contextlib.suppress(TidegateError, TimeoutError):
                request = LeaveGroupRequest(self._group_id, self._member_id)
                async with asyncio.timeout(self._heartbeat_s):
                    await self._cluster.ask_coordinator(self._group_id, request, about=about)
        self._generation, self._member_id = None, ""
        await self._cluster.stop()

    def rejoin(self) -> None:
        """Join again with the current ``protocols``. If the leader joins again, the group is reassigned."""
        self._change.set()

    async def confirm(self) -> bool:
        """Ask the coordinator now whether the group is still in this member's generation.

        Raises the request's errors.
        """
        generation = self._generation
        if generation is None:
            return False
        about = f"confirming membership in group {self._group_id}"
        request = HeartbeatRequest(self._group_id, generation.generation_id, generation.member_id)
        answer = await self._cluster.ask_coordinator(self._group_id, request, about=about)
        return bool(answer.error_code == NONE) and self._generation is generation

    def attend(self, for_s: float) -> None:
        """Expect a rebalance: send heartbeats every 0.1 s for this long, so that it is noticed at once."""
        self._attentive_until = max(self._attentive_until, time.monotonic() + for_s)
        self._attend.set()

    async def wait_failed(self) -> None:
        """Returns only by raising: the reason that makes membership impossible (a fenced instance id, no right to
        join).
        """
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _live(self) -> None:
        beating: asyncio.Task[None] | None = None
        try:
            while True:
                await self._tell("before_join", self._behaviour.before_join())
                await _ended(beating)
                self._change.clear()
                while (joined := await self._joined()) is None:
                    pass
                self._generation = joined
                beating = asyncio.create_task(self._beat(joined))
                await self._tell("on_generation", self._behaviour.on_generation(joined))
                await self._change.wait()
                self._generation = None
        finally:
            self._generation = None
            await _ended(beating)

    async def _tell(self, what: str, call: Any) -> None:
        try:
            await call
        except Exception:
            logger.exception("a member of a group failed to follow it", group=self._group_id, step=what)

    async def _joined(self) -> Generation | None:
        """Try once to join and sync; None if another attempt should follow. Raises errors that no retry can fix."""
        try:
            async with asyncio.timeout((self._rebalance_timeout_ms + _GRACE_MS) / 1000):
                return await self._join()
        except UnknownMemberId:
            self._member_id = ""
        except (MemberIdRequired, RebalanceInProgress, IllegalGeneration):
            pass  # there is a new member id, or the group has moved on: join at once
        except TimeoutError:
            logger.warning("no answer to a join in time", group=self._group_id)  # the wait itself was long enough
        except TidegateError as error:
            if isinstance(error, _FINAL):
                raise
            logger.info("joining a group, trying again", group=self._group_id, error=str(error))
            await asyncio.sleep(self._retry_s)
        return None

    async def _join(self) -> Generation:
        about = f"joining group {self._group_id}"
        request = JoinGroupRequest(
            self._group_id,
            self._session_timeout_ms,
            self._rebalance_timeout_ms,
            self._member_id,
            self._instance_id,
            self._protocol_type,
            list(self._behaviour.protocols()),
        )
        answer = await self._cluster.ask_coordinator(self._group_id, request, about=about)
        if answer.error_code == MemberIdRequired.code:
            self._member_id = answer.member_id
        check(answer.error_code, about)
        self._member_id = answer.member_id
        shares: Mapping[str, bytes] = {}
        if answer.leader_id == answer.member_id:
            members = {member[0]: bytes(member[-1]) for member in answer.members}
            shares = await self._behaviour.assign(answer.group_protocol, answer.leader_id, members)
        assignment = await self._sync(answer.generation_id, shares)
        return Generation(
            answer.generation_id, answer.member_id, answer.leader_id, answer.group_protocol, bytes(assignment)
        )

    async def _sync(self, generation_id: int, shares: Mapping[str, bytes]) -> bytes:
        about = f"syncing with group {self._group_id}"
        request = SyncGroupRequest(
            self._group_id, generation_id, self._member_id, self._instance_id, list(shares.items())
        )
        answer = await self._cluster.ask_coordinator(self._group_id, request, about=about)
        check(answer.error_code, about)
        return bytes(answer.member_assignment)

    async def _beat(self, generation: Generation) -> None:
        """Send heartbeats until cancelled or out of the group.

        A rebalance and a lost membership both request a new join.
        """
        about = f"heartbeat in group {self._group_id}"
        self._heard = time.monotonic()
        while True:
            await self._pause()
            asked = time.monotonic()
            request = HeartbeatRequest(self._group_id, generation.generation_id, generation.member_id)
            try:
                async with asyncio.timeout(self._session_timeout_ms / 1000):
                    answer = await self._cluster.ask_coordinator(self._group_id, request, about=about)
                check(answer.error_code, about)
                self._heard = asked
            except RebalanceInProgress:
                self._heard = asked
                self._change.set()
            except (TidegateError, TimeoutError) as error:
                lost = not isinstance(error, TimeoutError | ClientTimeout) and not getattr(error, "retriable", False)
                if lost or (time.monotonic() - self._heard) * 1000 > self._session_timeout_ms:
                    logger.info("lost the place in a group", group=self._group_id, error=str(error) or "no answer")
                    self._member_id = "" if isinstance(error, UnknownMemberId) else self._member_id
                    self._change.set()
                    return

    async def _pause(self) -> None:
        """Wait until the next heartbeat is due."""
        attentive = time.monotonic() < self._attentive_until
        if attentive:
            await asyncio.sleep(min(_ATTENTIVE_S, self._heartbeat_s))
            return
        self._attend.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._heartbeat_s):
                await self._attend.wait()


async def _ended(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
