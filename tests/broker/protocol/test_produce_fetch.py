"""The hand-written Produce and Fetch agree with kio's, in every version."""

from __future__ import annotations

import io
import struct
import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.protocol.fetch import FetchRequest, FetchResponse, PartitionFetched
from broker.protocol.primitives import MalformedMessage
from broker.protocol.produce import PartitionProduced, ProduceRequest, ProduceResponse
from tests.broker.protocol.test_schema import theirs

kio_serial = pytest.importorskip("kio.serial")

TOPIC_ID = uuid.UUID(int=77)


@dataclass(frozen=True)
class Slice:
    content: bytes
    fd: int = -1
    position: int = 0

    @property
    def size(self) -> int:
        return len(self.content)


def written(entity: Any) -> bytes:
    buffer = io.BytesIO()
    kio_serial.entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def topic_of(version: int, name: str) -> str | uuid.UUID:
    return TOPIC_ID if version >= 13 else name


def produce_request(version: int, name: str, records: bytes) -> bytes:
    cls = theirs("produce", "request", version)
    module = __import__(cls.__module__, fromlist=["x"])
    key = {"topic_id": TOPIC_ID} if version >= 13 else {"name": name}
    partition = module.PartitionProduceData(index=3, records=records)
    import datetime as dt

    return written(
        cls(
            transactional_id=None,
            acks=-1,
            timeout=dt.timedelta(seconds=7),
            topic_data=(module.TopicProduceData(partition_data=(partition, partition), **key),),
        )
    )


@pytest.mark.parametrize("version", range(3, 14))
@settings(max_examples=10, deadline=None)
@given(name=st.text(max_size=10), records=st.binary(max_size=300))
def test_produce_requests_are_read(version: int, name: str, records: bytes) -> None:
    frame = memoryview(b"head" + produce_request(version, name, records))
    request = ProduceRequest.read(frame, version, 4)
    assert (request.acks, request.timeout_ms, request.transactional_id) == (-1, 7000, None)
    ((topic, partitions),) = request.topics
    assert topic == topic_of(version, name)
    assert [(index, bytes(data)) for index, data in partitions] == [(3, records), (3, records)]


@pytest.mark.parametrize("version", range(3, 14))
def test_produce_answers_are_read_by_kio(version: int) -> None:
    produced = PartitionProduced(3, 87, 12, -1, 5, "no good")
    out = bytearray()
    ProduceResponse([(topic_of(version, "t"), [produced, produced])], 9).write(version, out)
    read, size = kio_serial.entity_reader(theirs("produce", "response", version))(bytes(out), 0)
    assert size == len(out)
    (topic,) = read.responses
    assert (topic.topic_id if version >= 13 else topic.name) == topic_of(version, "t")
    first, other = topic.partition_responses
    assert first == other
    assert (first.index, first.error_code, first.base_offset) == (3, 87, 12)
    if version >= 5:
        assert first.log_start_offset == 5
    if version >= 8:
        assert (first.error_message, first.record_errors) == ("no good", ())


def fetch_request(version: int, name: str, offset: int) -> bytes:
    import datetime as dt

    cls = theirs("fetch", "request", version)
    module = __import__(cls.__module__, fromlist=["x"])
    key = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": name}
    partition: dict[str, Any] = {"partition": 2, "fetch_offset": offset, "partition_max_bytes": 1000}
    extra: dict[str, Any] = {}
    if version >= 9:
        partition["current_leader_epoch"] = 4
    if version >= 7:
        extra |= {"session_id": 0, "session_epoch": 3, "forgotten_topics_data": ()}
    if version >= 12:
        partition["last_fetched_epoch"] = 3
        extra["cluster_id"] = "cluster"
    if version < 15:
        extra["replica_id"] = -1
    topic = module.FetchTopic(partitions=(module.FetchPartition(**partition),) * 2, **key)
    return written(
        cls(max_wait=dt.timedelta(seconds=1), min_bytes=2, max_bytes=3, isolation_level=1, topics=(topic,), **extra)
    )


@pytest.mark.parametrize("version", range(4, 19))
@settings(max_examples=10, deadline=None)
@given(name=st.text(max_size=10), offset=st.integers(0, 2**62))
def test_fetch_requests_are_read(version: int, name: str, offset: int) -> None:
    request = FetchRequest.read(memoryview(fetch_request(version, name, offset)), version, 0)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level) == (1000, 2, 3, 1)
    assert (request.session_id, request.session_epoch) == ((0, 3) if version >= 7 else (0, -1))
    ((topic, (first, other)),) = request.topics
    assert topic == topic_of(version, name)
    assert first == other == (2, offset, 1000, 4 if version >= 9 else -1, 3 if version >= 12 else -1)


@pytest.mark.parametrize("version", range(4, 19))
def test_fetch_answers_are_read_by_kio(version: int) -> None:
    topics = [
        (topic_of(version, "t"), [PartitionFetched(0, 0, 10, 9, 1, Slice(b"records")), PartitionFetched(1, 3)]),
        (topic_of(version, "u"), [PartitionFetched(2, 0, 20, 20, 0, None, None, (4, 17))]),
    ]
    parts = FetchResponse(topics, throttle_time_ms=6).write(version, bytearray())
    whole = b"".join(part.content if isinstance(part, Slice) else bytes(part) for part in parts)  # type: ignore[arg-type]
    read, size = kio_serial.entity_reader(theirs("fetch", "response", version))(whole, 0)
    assert size == len(whole)
    first, last = read.responses
    first_partition, two = first.partitions
    assert (
        first_partition.partition_index,
        first_partition.error_code,
        first_partition.high_watermark,
        first_partition.last_stable_offset,
    ) == (0, 0, 10, 9)
    assert first_partition.records == b"records"
    assert (two.partition_index, two.error_code, two.records) == (1, 3, b"")
    assert last.partitions[0].partition_index == 2
    assert (first_partition.log_start_offset if version >= 5 else 1) == 1
    if version >= 12:
        diverging = last.partitions[0].diverging_epoch
        assert (diverging.epoch, diverging.end_offset) == (4, 17)


@pytest.mark.parametrize(("cls", "versions"), [(ProduceRequest, (3, 13)), (FetchRequest, (4, 18))])
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_bytes_are_a_request_or_malformed(cls: Any, versions: tuple[int, int], data: st.DataObject) -> None:
    version = data.draw(st.integers(*versions))
    try:
        cls.read(memoryview(data.draw(st.binary(max_size=200))), version, 0)
    except MalformedMessage:
        pass


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_produce_request_cut_off_anywhere_is_malformed(version: int) -> None:
    whole = produce_request(version, "topic", b"some records")
    for cut in range(len(whole) - 1):
        with pytest.raises(MalformedMessage):
            ProduceRequest.read(memoryview(whole[:cut]), version, 0)


def test_a_record_set_larger_than_its_request_is_malformed() -> None:
    frame = struct.pack(">hhiihciii", -1, -1, 1000, 1, 1, b"t", 1, 0, 1 << 30)
    with pytest.raises(MalformedMessage, match="1073741824 bytes of records"):
        ProduceRequest.read(memoryview(frame), 3, 0)
