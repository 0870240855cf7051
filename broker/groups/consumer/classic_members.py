"""Members of the classic protocol in a consumer group. The coordinator does the work of their leader."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import replace

from broker.coordinator.futures import succeed, when_done
from broker.errors import (
    BrokerError,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from broker.groups.classic.subscription import CONSUMER
from broker.groups.classic.values import Joined, JoinRequest, Leaving, Left, MemberIdAssigned, Synced
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ClassicMember, ConsumerMember, partitions_of
from broker.groups.consumer.migration import Successor
from broker.groups.consumer.protocol import decode_subscription, encode_assignment
from broker.groups.consumer.service import ConsumerGroups, check_instance
from broker.groups.consumer.step import Step
from broker.groups.modern.group import NO_PARTITIONS
from broker.groups.modern.member import MemberState
from tidegate.kit.logs import get_logger

__all__ = ["ClassicMembers"]

logger = get_logger(__name__)

JOIN = "join"
"""The timer of a member that has to join again."""
SYNC = "sync"
"""The timer of a member that has joined and has to send SyncGroup."""


class ClassicMembers:
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup of consumer groups. Futures are those of ``GroupCoordinator``."""

    def __init__(self, service: ConsumerGroups) -> None:
        self._service = service
        self._around = service.around

    def join(self, group: ConsumerGroup, request: JoinRequest) -> asyncio.Future[Joined]:
        """Join the group. The answer is a follower's: a generation (the member's epoch) without leader."""
        try:
            return self._join(group, request)
        except BrokerError as error:
            return self._service.refuse(error)

    def _join(self, group: ConsumerGroup, request: JoinRequest) -> asyncio.Future[Joined]:
        service = self._service
        service.migration.check_classic_join(group)
        newcomer = not request.member_id
        member_id = request.member_id or str(uuid.uuid4())
        service.check_room(group, member_id)
        if not group.supports(request.protocol_type, request.protocols):
            raise InconsistentGroupProtocol(f"Member {member_id}'s protocols are not supported.")
        if newcomer and request.instance_id is None and request.requires_known_member_id:
            raise MemberIdAssigned(member_id)
        step = Step(self._around, group)
        if request.instance_id is None:
            member = service.dynamic_member(group, member_id, create=True)
        else:
            member = service.static_member(step, member_id, request.instance_id, create=newcomer, request=None)
        subscription = decode_subscription(next(iter(request.protocols.values())))
        updated = replace(
            member,
            instance_id=request.instance_id if request.instance_id is not None else member.instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            topics=frozenset(subscription.topics),
            regex="",
            client_id=request.client_id,
            client_host=request.client_host,
            classic=ClassicMember(request.session_timeout_ms, tuple(request.protocols.items())),
        )
        owned = subscription.owned(self._around.topics)
        left = step.members_with(updated)
        holder = group.static_member(request.instance_id)
        downgrades = holder is not None and holder.classic is None and service.migration.may_downgrade(group, left)
        now_ms = self._around.clock.now_ms()
        changed = step.note_member(member, updated)
        changed = service.regexes.changed(step, member, updated, None).changed or changed
        epoch = step.note_epoch(updated, bump=changed, now_ms=now_ms)
        if downgrades:
            rebalance = group.assignment_epoch < epoch
            if not rebalance:
                heir_of = step.replaced.member_id if step.replaced is not None else member_id
                target = group.target.get(heir_of, NO_PARTITIONS)
                updated = step.reconcile(updated, group.assignment_epoch, target, owned, subscription_changed=changed)
            change = service.migration.downgrade(
                group,
                {**left, member_id: updated},
                "a static member came back with the classic protocol",
                successor=Successor(updated, holder.member_id if holder is not None else member_id),
                rebalance=rebalance,
                before=step.records,
            )
        else:
            target_epoch, target = step.renew_target(updated, epoch, now_ms)
            updated = step.reconcile(updated, target_epoch, target, owned, subscription_changed=changed)
            change = service.change(step.records)
        return self._answer_join(group.group_id, updated, request, service.write(group.group_id, change), downgrades)

    def _answer_join(
        self,
        group_id: str,
        member: ConsumerMember,
        request: JoinRequest,
        written: asyncio.Future[None],
        downgraded: bool,
    ) -> asyncio.Future[Joined]:
        future: asyncio.Future[Joined] = self._around.clock.create_future()
        joined = Joined(
            member_id=member.member_id,
            generation=member.epoch,
            protocol_type=CONSUMER,
            protocol_name=next(iter(request.protocols)),
            leader="",
        )

        def answer(error: BrokerError | None) -> None:
            if error is not None:
                if not future.done():
                    future.set_exception(error)
                    future.exception()
                return
            self._service.timers.cancel((JOIN, group_id, member.member_id))
            if not downgraded:
                self._service.restart_session(group_id, member)
                self._expect(SYNC, group_id, member.member_id, request.rebalance_timeout_ms, "it did not sync in time")
            succeed(future, joined)

        when_done(written, answer)
        return future

    def sync(
        self,
        group: ConsumerGroup,
        *,
        generation: int,
        member_id: str,
        instance_id: str | None,
        protocol_type: str | None,
        protocol_name: str | None,
    ) -> asyncio.Future[Synced]:
        """The member's assignment, encoded as its leader would encode it."""
        try:
            member, classic = self._member(group, member_id, instance_id, generation)
            first, metadata = classic.protocols[0]
            for provided, present in ((protocol_type, CONSUMER), (protocol_name, first)):
                if provided is not None and provided != present:
                    raise InconsistentGroupProtocol(f"Group {group.group_id} uses {present!r}, not {provided!r}.")
            if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED:
                self._expect_join(group.group_id, member)
                raise RebalanceInProgress(f"Group {group.group_id} has a new assignment: join again.")
        except BrokerError as error:
            return self._service.refuse(error)
        self._service.timers.cancel((SYNC, group.group_id, member.member_id))
        self._service.restart_session(group.group_id, member)
        assignment = encode_assignment(partitions_of(member.assigned), self._around.topics, metadata)
        return self._service.commit(group.group_id, [], Synced(protocol_type, protocol_name, assignment))

    def heartbeat(self, group: ConsumerGroup, *, generation: int, member_id: str, instance_id: str | None) -> None:
        """Raises RebalanceInProgress if the member has to join again."""
        member, _ = self._member(group, member_id, instance_id, generation)
        self._service.restart_session(group.group_id, member)
        released = member.state is MemberState.UNRELEASED and not group.waits_for_others(member)
        if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED or released:
            self._expect_join(group.group_id, member)
            raise RebalanceInProgress(f"Group {group.group_id} is rebalancing: join again.")

    def leave(self, group: ConsumerGroup, leaving: Sequence[Leaving]) -> asyncio.Future[list[Left]]:
        """Remove members of either protocol, with one result each."""
        results: list[Left] = []
        gone: dict[str, ConsumerMember] = {}
        for leaver in leaving:
            left = Left(leaver.member_id, leaver.instance_id)
            try:
                member = self._leaving(group, leaver)
            except BrokerError as error:
                results.append(replace(left, error=error))
                continue
            logger.info("member leaves", group=group.group_id, member=member.member_id, reason=leaver.reason)
            gone[member.member_id] = member
            results.append(left)
        future: asyncio.Future[list[Left]] = self._around.clock.create_future()
        written = self._service.write(group.group_id, self._service.removal(group, list(gone.values())))

        def answer(error: BrokerError | None) -> None:
            if error is None:
                succeed(future, results)
            elif not future.done():
                future.set_exception(error)
                future.exception()

        when_done(written, answer)
        return future

    def _leaving(self, group: ConsumerGroup, leaving: Leaving) -> ConsumerMember:
        if leaving.instance_id is None:
            return group.member(leaving.member_id)
        holder = group.static_member(leaving.instance_id)
        if holder is None:
            raise UnknownMemberId(f"Instance id {leaving.instance_id} is unknown.")
        if leaving.member_id:
            check_instance(holder, leaving.member_id)
        return holder

    def _member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[ConsumerMember, ClassicMember]:
        if instance_id is None:
            member = group.member(member_id)
        else:
            holder = group.static_member(instance_id)
            if holder is None:
                raise UnknownMemberId(f"Group {group.group_id} has no member with instance id {instance_id}.")
            check_instance(holder, member_id)
            member = holder
        if member.classic is None:
            raise UnknownMemberId(f"Member {member_id} does not use the classic protocol.")
        if generation != member.epoch:
            raise IllegalGeneration(f"Member {member_id} is at epoch {member.epoch}, not {generation}.")
        return member, member.classic

    def _expect_join(self, group_id: str, member: ConsumerMember) -> None:
        if (JOIN, group_id, member.member_id) not in self._service.timers:
            self._expect(JOIN, group_id, member.member_id, member.rebalance_timeout_ms, "it did not join again in time")

    def _expect(self, purpose: str, group_id: str, member_id: str, within_ms: int, reason: str) -> None:
        self._service.later(
            purpose, group_id, member_id, within_ms, lambda: self._service.fence(group_id, member_id, reason)
        )
