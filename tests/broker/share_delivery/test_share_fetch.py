"""Share fetches and acknowledgements as clients send them."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from broker.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateData,
)
from broker.protocol.messages.initialize_share_group_state import PartitionData as InitializePartition
from broker.protocol.messages.share_acknowledge import AcknowledgementBatch as Acknowledgement
from broker.protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from broker.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from broker.protocol.records import Record, batches, encode_batch
from tests.support.broker import BrokerThread, settings
from tests.support.requests import Wire
from tests.support.wire import produce_frame, produced

Batches = Sequence[tuple[int, int, Sequence[int]]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    broker_settings = {
        "share_coordinator_state_topic_num_partitions": "2",
        "group_share_min_record_lock_duration_ms": "1000",
    }
    with BrokerThread(settings(tmp_path_factory.mktemp("share"), **broker_settings)) as running:
        yield running


class Member:
    """A member of a share group with a session, on a separate connection."""

    def __init__(self, broker: BrokerThread, topic: uuid.UUID, *, group: str = "g", version: int = 2) -> None:
        self.wire = Wire(broker.port)
        self.topic = topic
        self.group = group
        self.member = str(uuid.uuid4())
        self.version = version
        self.epoch = 0

    def close(self) -> None:
        self.wire.__exit__()

    def fetch(
        self, acknowledge: Batches = (), *, partitions: Sequence[int] = (0,), forget: Sequence[int] = (), **more: Any
    ) -> ShareFetchResponse:
        topics = []
        if partitions:
            parts = [FetchPartition(partition_index=index) for index in partitions]
            parts[0].acknowledgement_batches = [
                AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
                for first, last, types in acknowledge
            ]
            topics = [FetchTopic(topic_id=self.topic, partitions=parts)]
        fields = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.epoch,
            topics=topics,
            forgotten_topics_data=[ForgottenTopic(topic_id=self.topic, partitions=forget)] if forget else [],
            **{**fields, **more},
        )
        answer = self.wire.send(request, ShareFetchResponse, self.version)
        if not answer.error_code and self.epoch >= 0:
            self.epoch += 1
        return answer

    def acknowledge(self, *batches: tuple[int, int, Sequence[int]], renew: bool = False) -> int:
        batch = [
            Acknowledgement(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in batches
        ]
        partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=batch)
        request = ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.epoch,
            is_renew_ack=renew,
            topics=[AcknowledgeTopic(topic_id=self.topic, partitions=[partition])],
        )
        answer = self.wire.send(request, ShareAcknowledgeResponse, self.version)
        self.epoch += 1 if self.epoch > 0 else 0
        return answer.error_code or answer.responses[0].partitions[0].error_code


def got(answer: ShareFetchResponse) -> list[tuple[int, int, int, int]]:
    """(partition, first offset, last offset, deliveries) of what was acquired."""
    assert not answer.error_code
    return [
        (part.partition_index, records.first_offset, records.last_offset, records.delivery_count)
        for topic in answer.responses
        for part in topic.partitions
        for records in part.acquired_records
    ]


Join = Callable[..., Member]
_topics = iter(range(1000))


@pytest.fixture
def topic(broker: BrokerThread) -> uuid.UUID:
    return new_topic(broker)


def new_topic(broker: BrokerThread) -> uuid.UUID:
    """The id of a new topic with two partitions; the groups g and hasty have its state."""
    name = f"t{next(_topics)}"
    with Wire(broker.port) as wire:
        made = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        answer = wire.send(CreateTopicsRequest(topics=[made]), CreateTopicsResponse, 7)
        topic_id = answer.topics[0].topic_id
        state = InitializeStateData(
            topic_id=topic_id,
            partitions=[InitializePartition(partition=index, state_epoch=1, start_offset=0) for index in (0, 1)],
        )
        for group in ("g", "hasty"):
            initialized = wire.send(
                InitializeShareGroupStateRequest(group_id=group, topics=[state]), InitializeShareGroupStateResponse, 0
            )
            assert not initialized.results[0].partitions[0].error_code
    return topic_id


def produce(broker: BrokerThread, topic: uuid.UUID, *sizes: int, partition: int = 0) -> None:
    name = broker.server.broker.topics.name_of(topic)
    assert name is not None
    with Wire(broker.port) as wire:
        for size in sizes:
            batch = encode_batch([Record(None, b"value", (), 1)] * size)
            error, _ = produced(wire.exchange(produce_frame(name, partition, batch)))
            assert error == 0


@pytest.fixture
def join(broker: BrokerThread, topic: uuid.UUID) -> Iterator[Join]:
    """Makes members of the group g."""
    with contextlib.ExitStack() as members:

        def join(**options: Any) -> Member:
            return members.enter_context(contextlib.closing(Member(broker, topic, **options)))

        yield join


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_fetched_with_their_batches_and_acknowledged(
    broker: BrokerThread, topic: uuid.UUID, join: Join, version: int
) -> None:
    produce(broker, topic, 2, 3)
    member = join(version=version)
    assert got(member.fetch(partitions=())) == []
    answer = member.fetch()
    assert got(answer) == [(0, 0, 4, 1)]
    assert answer.acquisition_lock_timeout_ms == 30_000
    (part,) = answer.responses[0].partitions
    assert [header.record_count for _, header in batches(memoryview(part.records))] == [2, 3]
    answer = member.fetch([(0, 3, [1]), (4, 4, [2])])
    assert answer.responses[0].partitions[0].acknowledge_error_code == 0
    assert got(answer) == [] or got(answer) == [(0, 4, 4, 2)]
    answer = member.fetch()
    (part,) = answer.responses[0].partitions if answer.responses else (part,)
    assert [header.record_count for _, header in batches(memoryview(part.records))][-1:] in ([3], [])


def test_two_members_do_not_get_the_same_records(broker: BrokerThread, topic: uuid.UUID, join: Join) -> None:
    produce(broker, topic, *[1] * 10)
    first_member, other = join(), join()
    first = got(first_member.fetch(max_records=4))
    second = got(other.fetch(max_records=4))
    assert first == [(0, 0, 3, 1)]
    assert second == [(0, 4, 7, 1)]
    assert other.acknowledge((0, 3, [1])) == 121
    assert first_member.acknowledge((0, 3, [1, 1, 3, 0])) == 0


def test_a_waiting_fetch_gets_what_comes_and_what_is_released(
    broker: BrokerThread, topic: uuid.UUID, join: Join
) -> None:
    first, other = join(), join()
    first.fetch()
    other.fetch()
    results: list[list[tuple[int, int, int, int]]] = []
    waiting = threading.Thread(target=lambda: results.append(got(first.fetch(partitions=(), max_wait_ms=60_000))))
    waiting.start()
    produce(broker, topic, 1)
    waiting.join()
    assert results == [[(0, 0, 0, 1)]]
    waiting = threading.Thread(target=lambda: results.append(got(other.fetch(partitions=(), max_wait_ms=60_000))))
    waiting.start()
    assert first.acknowledge((0, 0, [2])) == 0
    waiting.join()
    assert results[1] == [(0, 0, 0, 2)]


def test_records_of_a_member_that_is_gone_are_delivered_again(
    broker: BrokerThread, topic: uuid.UUID, join: Join
) -> None:
    produce(broker, topic, 3)
    first, other, third = (join() for _ in range(3))
    other.fetch(partitions=(1,))
    assert got(first.fetch()) == [(0, 0, 2, 1)]
    first.epoch = -1
    assert first.acknowledge((0, 0, [1])) == 0
    assert got(other.fetch(max_wait_ms=60_000)) == [(0, 1, 2, 2)]
    other.close()
    assert got(third.fetch(max_wait_ms=60_000)) == [(0, 1, 2, 3)]


def test_locks_end(broker: BrokerThread, topic: uuid.UUID, join: Join) -> None:
    duration = AlterableConfig(name="share.record.lock.duration.ms", value="1000")
    hasty = AlterConfigsResource(resource_type=32, resource_name="hasty", configs=[duration])
    with Wire(broker.port) as wire:
        changed = wire.send(IncrementalAlterConfigsRequest(resources=[hasty]), IncrementalAlterConfigsResponse, 1)
    assert not changed.responses[0].error_code
    produce(broker, topic, 1)
    first, other = join(group="hasty"), join(group="hasty")
    assert got(first.fetch()) == [(0, 0, 0, 1)]
    assert got(other.fetch(max_wait_ms=60_000)) == [(0, 0, 0, 2)]


def test_sessions_are_checked(broker: BrokerThread, topic: uuid.UUID, join: Join) -> None:
    member = join()
    member.epoch = 5
    assert member.fetch().error_code == 122
    assert member.acknowledge((0, 0, [1])) == 122
    member.epoch = 0
    assert member.acknowledge((0, 0, [1])) == 123
    assert member.fetch([(0, 0, [1])]).error_code == 42
    assert member.fetch().error_code == 0
    member.epoch = 7
    assert member.fetch().error_code == 123
    member.member = "x" * 37
    assert member.fetch().error_code == 42


def test_errors_are_told_by_partition(broker: BrokerThread, topic: uuid.UUID, join: Join) -> None:
    member = join(group="h")
    answer = member.fetch(partitions=(0, 9))
    codes = {part.partition_index: part.error_code for part in answer.responses[0].partitions}
    assert codes == {0: -1, 9: 3}, "the state of this group was not initialized"
    answer = member.fetch(partitions=(), forget=(0, 9))
    assert not answer.responses


@pytest.mark.parametrize(
    ("batches", "renew", "error"),
    [
        ([(3, 2, [1])], False, 42),
        ([(0, 1, [1, 1, 1])], False, 42),
        ([(0, 0, [])], False, 42),
        ([(0, 0, [5])], False, 42),
        ([(0, 0, [4])], False, 42),
        ([(0, 0, [4])], True, 0),
        ([(1, 1, [1]), (0, 0, [1])], False, 42),
        ([(0, 9, [1])], False, 42),
    ],
)
def test_acknowledgements_are_checked(
    broker: BrokerThread, topic: uuid.UUID, join: Join, batches: Batches, renew: bool, error: int
) -> None:
    produce(broker, topic, 2)
    member = join()
    assert got(member.fetch()) == [(0, 0, 1, 1)]
    assert member.acknowledge(*batches, renew=renew) == error


def test_no_more_records_than_wanted_in_exact_mode(broker: BrokerThread, topic: uuid.UUID, join: Join) -> None:
    produce(broker, topic, 10)
    member = join()
    assert got(member.fetch(max_records=3, share_acquire_mode=1)) == [(0, 0, 2, 1)]
    assert got(member.fetch(max_records=3, share_acquire_mode=0)) == [(0, 3, 9, 1)]


def test_state_outlives_the_broker(tmp_path: Path) -> None:
    broker_settings = settings(tmp_path, share_coordinator_state_topic_num_partitions="2")
    with BrokerThread(broker_settings) as broker:
        topic_id = new_topic(broker)
        produce(broker, topic_id, 4)
        with contextlib.closing(Member(broker, topic_id)) as member:
            assert got(member.fetch()) == [(0, 0, 3, 1)]
            assert member.acknowledge((0, 2, [1, 1, 2])) == 0
    with BrokerThread(broker_settings) as broker:
        with contextlib.closing(Member(broker, topic_id)) as member:
            assert got(member.fetch()) == [(0, 2, 3, 2)]
