"""Tracks for which partitions share groups have state; creates and deletes it with the share coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from uuid import UUID

from broker.coordinator.futures import when_done
from broker.errors import BrokerError
from broker.groups.modern.records import Record
from broker.groups.modern.service import GroupService
from broker.groups.share import changes
from broker.groups.share.group import ShareGroup
from broker.groups.share.values import ShareState, TopicState
from tidegate.kit.logs import get_logger

__all__ = ["PartitionStates", "joined", "without"]

logger = get_logger(__name__)

TopicStates = Mapping[UUID, TopicState]


def joined(known: TopicStates, more: TopicStates) -> dict[UUID, TopicState]:
    """The partitions of both; the newer name and time win."""
    result = dict(known)
    for topic_id, state in more.items():
        before = known.get(topic_id)
        result[topic_id] = state._replace(partitions=state.partitions | (before.partitions if before else frozenset()))
    return result


def without(known: TopicStates, gone: TopicStates) -> dict[UUID, TopicState]:
    """``known`` without the partitions of ``gone``."""
    left = {
        topic_id: state._replace(partitions=state.partitions - gone[topic_id].partitions) if topic_id in gone else state
        for topic_id, state in known.items()
    }
    return {topic_id: state for topic_id, state in left.items() if state.partitions}


class PartitionStates:
    """Used by the service of share groups. ``state`` returns the share coordinator, once it exists."""

    def __init__(self, service: GroupService[ShareGroup], state: Callable[[], ShareState | None]) -> None:
        self._service = service
        self._state = state

    # Creating state

    def missing(self, group: ShareGroup, names: Collection[str]) -> TopicStates:
        """The partitions of these topics without state, and without a recent attempt to create it."""
        around = self._service.around
        now_ms, patience_ms = around.clock.now_ms(), around.config.share_initialize_retry_interval_ms
        tried = {
            topic_id: topic_state
            for topic_id, topic_state in group.initializing.items()
            if now_ms - topic_state.at_ms < patience_ms
        }
        known = joined(group.initialized, tried)
        result: dict[UUID, TopicState] = {}
        for name in names:
            topic = around.topics.by_name(name)
            if topic is None:
                continue
            state = known.get(topic.id)
            partitions = frozenset(range(topic.partitions)) - (state.partitions if state else frozenset())
            if partitions:
                result[topic.id] = TopicState(name, partitions, now_ms)
        return result

    def initializing(self, group: ShareGroup, requested: TopicStates) -> Record:
        """The record that marks their state as being created."""
        deleting = {topic_id: name for topic_id, name in group.deleting.items() if topic_id not in requested}
        return changes.partition_states(
            group.group_id, joined(group.initializing, requested), group.initialized, deleting
        )

    def initialize_soon(self, group_id: str, epoch: int, requested: TopicStates) -> None:
        """Create states that begin as ``share.auto.offset.reset`` says, after the current answer."""
        offsets = {topic_id: dict.fromkeys(topic.partitions, -1) for topic_id, topic in requested.items()}
        self._service.around.clock.call_later(0, lambda: self.initialize(group_id, epoch, offsets, requested))

    def initialize(
        self,
        group_id: str,
        epoch: int,
        offsets: Mapping[UUID, Mapping[int, int]],
        requested: TopicStates,
        done: Callable[[Mapping[tuple[UUID, int], BrokerError]], None] | None = None,
    ) -> None:
        """Create states that begin at these offsets, then record that the group has them.

        ``done`` gets the failures.
        """
        state = self._state()
        if state is None:
            return
        writes = {
            (topic_id, partition): state.initialize_partition(
                group_id, topic_id, partition, epoch=epoch, start_offset=offset
            )
            for topic_id, partitions in offsets.items()
            for partition, offset in partitions.items()
        }

        def note(failed: Mapping[tuple[UUID, int], BrokerError]) -> None:
            self._initialized(group_id, requested, failed)
            if done is not None:
                done(failed)

        _when_all_done(writes, note)

    def alter(
        self,
        group: ShareGroup,
        offsets: Mapping[UUID, Mapping[int, int]],
        requested: TopicStates,
        done: Callable[[Mapping[tuple[UUID, int], BrokerError]], None],
    ) -> None:
        """Restart states at these offsets."""
        now_ms = self._service.around.clock.now_ms()
        fresh = {topic_id: topic._replace(at_ms=now_ms) for topic_id, topic in requested.items()}
        record = self.initializing(group, fresh)
        self._service.write(group.group_id, self._service.change([record]))
        self.initialize(group.group_id, group.epoch, offsets, fresh, done)

    def _initialized(
        self, group_id: str, requested: TopicStates, failed: Mapping[tuple[UUID, int], BrokerError]
    ) -> None:
        group = self._service.around.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return
        for (topic_id, partition), error in failed.items():
            logger.warning(
                "no state for a share-partition", group=group_id, topic=topic_id, partition=partition, error=str(error)
            )
        bad = {
            topic_id: topic_state._replace(partitions=frozenset(part for topic, part in failed if topic == topic_id))
            for topic_id, topic_state in requested.items()
        }
        good = without(requested, bad)
        now_ms = self._service.around.clock.now_ms()
        good = {topic_id: topic_state._replace(at_ms=now_ms) for topic_id, topic_state in good.items()}
        self._note(group, without(group.initializing, requested), joined(group.initialized, good), group.deleting)

    def _note(
        self, group: ShareGroup, initializing: TopicStates, initialized: TopicStates, deleting: Mapping[UUID, str]
    ) -> asyncio.Future[None]:
        record = changes.partition_states(group.group_id, initializing, initialized, deleting)
        return self._service.write(group.group_id, self._service.change([record]))

    # Deleting state

    def delete(
        self,
        group: ShareGroup,
        topic_ids: Sequence[UUID],
        done: Callable[[Mapping[tuple[UUID, int], BrokerError]], None],
    ) -> None:
        """Delete the states of topics of an empty group.

        ``done`` gets the failures. The topics are ``deleting`` until then.
        """
        gone = {topic_id: group.initialized[topic_id] for topic_id in topic_ids if topic_id in group.initialized}
        again = [topic_id for topic_id in topic_ids if topic_id in group.deleting and topic_id not in gone]
        deleting = {**group.deleting, **{topic_id: topic_state.name for topic_id, topic_state in gone.items()}}
        left = {topic_id: topic_state for topic_id, topic_state in group.initialized.items() if topic_id not in gone}
        self._note(group, group.initializing, left, deleting)
        partitions = {topic_id: topic_state.partitions for topic_id, topic_state in gone.items()}
        for topic_id in again:
            topic = self._service.around.topics.by_id(topic_id)
            partitions[topic_id] = frozenset(range(topic.partitions)) if topic is not None else frozenset()

        def note(failed: Mapping[tuple[UUID, int], BrokerError]) -> None:
            bad = {topic_id for topic_id, _ in failed}
            present = self._service.around.groups.get(group.group_id)
            if isinstance(present, ShareGroup):
                remains = {
                    unique_id: name
                    for unique_id, name in present.deleting.items()
                    if unique_id not in topic_ids or unique_id in bad
                }
                self._note(present, present.initializing, present.initialized, remains)
            done(failed)

        _when_all_done(self._deletions(group.group_id, partitions), note)

    def delete_all(self, group: ShareGroup) -> None:
        """Delete all states of a group that is about to be deleted."""
        known = joined(group.initialized, group.initializing)
        if not known:
            return
        self._note(group, {}, {}, {topic_id: topic.name for topic_id, topic in known.items()})
        self._deletions(group.group_id, {topic_id: topic.partitions for topic_id, topic in known.items()})

    def _deletions(
        self, group_id: str, partitions: Mapping[UUID, Collection[int]]
    ) -> dict[tuple[UUID, int], asyncio.Future[None]]:
        state = self._state()
        if state is None:
            return {}
        return {
            (topic_id, partition): state.delete_partition(group_id, topic_id, partition)
            for topic_id, numbers in partitions.items()
            for partition in numbers
        }

    def forget(self, topic_ids: Collection[UUID]) -> None:
        """Forget deleted topics."""
        for group in self._service.around.groups.of_type(ShareGroup):
            if any(
                topic_id in known
                for topic_id in topic_ids
                for known in (group.initializing, group.initialized, group.deleting)
            ):
                self._note(
                    group,
                    {unique_id: state for unique_id, state in group.initializing.items() if unique_id not in topic_ids},
                    {unique_id: state for unique_id, state in group.initialized.items() if unique_id not in topic_ids},
                    {unique_id: name for unique_id, name in group.deleting.items() if unique_id not in topic_ids},
                )


def _when_all_done(
    writes: Mapping[tuple[UUID, int], asyncio.Future[None]],
    note: Callable[[Mapping[tuple[UUID, int], BrokerError]], None],
) -> None:
    """Call back with the failures when all writes are done."""
    failed: dict[tuple[UUID, int], BrokerError] = {}
    left = len(writes)
    if not left:
        note(failed)
        return

    def count(partition: tuple[UUID, int], error: BrokerError | None) -> None:
        nonlocal left
        left -= 1
        if error is not None:
            failed[partition] = error
        if left == 0:
            note(failed)

    for partition, write in writes.items():
        when_done(write, lambda error, item=partition: count(item, error))  # type: ignore[misc]
