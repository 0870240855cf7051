"""The hand-written answer to ShareFetch agrees with the generated one."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import pytest

from broker.protocol.codec import reader
from broker.protocol.messages.share_fetch import ShareFetchResponse
from broker.protocol.share_fetch import ShareFetchAnswer, SharePartitionFetched


@dataclass(frozen=True)
class Slice:
    content: bytes
    fd: int = -1
    position: int = 0

    @property
    def size(self) -> int:
        return len(self.content)


@pytest.mark.parametrize("version", [1, 2])
def test_share_fetch_answers_are_read(version: int) -> None:
    first_id, other = uuid.UUID(int=7), uuid.UUID(int=8)
    answer = ShareFetchAnswer(
        [
            (first_id, [SharePartitionFetched(0, records=Slice(b"r" * 300), acquired=[(5, 9, 2), (11, 11, 1)])]),
            (
                other,
                [
                    SharePartitionFetched(1, 3, "no such topic"),
                    SharePartitionFetched(2, 0, None, 121, "not yours"),
                    SharePartitionFetched(3, records=Slice(b"x"), acquired=[(0, 0, 1)]),
                ],
            ),
        ],
        acquisition_lock_timeout_ms=30_000,
        throttle_time_ms=4,
    )
    parts = answer.write(version, bytearray(b"head"))
    whole = b"".join(part.content if isinstance(part, Slice) else bytes(part) for part in parts)  # type: ignore[arg-type]
    read: Any
    read, end = reader(ShareFetchResponse, version, True)(memoryview(whole), 4)
    assert end == len(whole)
    assert (read.throttle_time_ms, read.error_code, read.acquisition_lock_timeout_ms) == (4, 0, 30_000)
    assert [topic.topic_id for topic in read.responses] == [first_id, other]
    (first,) = read.responses[0].partitions
    assert bytes(first.records) == b"r" * 300
    assert [(a.first_offset, a.last_offset, a.delivery_count) for a in first.acquired_records] == [
        (5, 9, 2),
        (11, 11, 1),
    ]
    failed, refused, last = read.responses[1].partitions
    assert (failed.error_code, failed.error_message, bytes(failed.records)) == (3, "no such topic", b"")
    assert (refused.acknowledge_error_code, refused.acknowledge_error_message) == (121, "not yours")
    assert bytes(last.records) == b"x"


def test_an_error_is_all_of_an_answer() -> None:
    (part,) = ShareFetchAnswer(error_code=122).write(2, bytearray())
    read: Any
    read, _ = reader(ShareFetchResponse, 2, True)(memoryview(bytes(part)), 0)  # type: ignore[arg-type]
    assert (read.error_code, list(read.responses)) == (122, [])
