"""The answer to ShareFetch, written by hand like that of Fetch, so that records go from file to socket.

Versions 1 and 2, which have the same answer; the request of version 2 adds an acquire mode and renewals (KIP-1206,
KIP-1222).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import ClassVar, Final, NamedTuple

from broker.protocol.fetch import FileSlice
from broker.protocol.primitives import write_array_length, write_string, write_uvarint

__all__ = ["ShareFetchAnswer", "SharePartitionFetched"]

_PARTITION: Final = Struct(">ih")
_INT16: Final = Struct(">h")
_LEADER: Final = Struct(">iix")
_ACQUIRED: Final = Struct(">qqhx")
_HEAD: Final = Struct(">ih")
_INT32: Final = Struct(">i")


class SharePartitionFetched(NamedTuple):
    """The result for one partition; ``acquired`` are first offset, last offset and number of deliveries."""

    partition: int
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    records: FileSlice | None = None
    acquired: Sequence[tuple[int, int, int]] = ()


class ShareFetchAnswer:
    __slots__ = ("acquisition_lock_timeout_ms", "error_code", "throttle_time_ms", "topics")
    API_KEY: ClassVar = 78
    FLEXIBLE_SINCE: ClassVar = 1

    def __init__(
        self,
        topics: Iterable[tuple[uuid.UUID, list[SharePartitionFetched]]] = (),
        *,
        error_code: int = 0,
        acquisition_lock_timeout_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.topics = list(topics)
        self.error_code = error_code
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.throttle_time_ms = throttle_time_ms

    def write(self, version: int, out: bytearray) -> list[bytearray | FileSlice]:
        """The parts of the answer in order; the first begins with the content of ``out``."""
        parts: list[bytearray | FileSlice] = []
        out += _HEAD.pack(self.throttle_time_ms, self.error_code)
        write_string(out, None, True)
        out += _INT32.pack(self.acquisition_lock_timeout_ms)
        write_array_length(out, len(self.topics), True)
        for topic_id, partitions in self.topics:
            out += topic_id.bytes
            write_array_length(out, len(partitions), True)
            for fetched in partitions:
                out += _PARTITION.pack(fetched.partition, fetched.error_code)
                write_string(out, fetched.error_message, True)
                out += _INT16.pack(fetched.acknowledge_error_code)
                write_string(out, fetched.acknowledge_error_message, True)
                out += _LEADER.pack(0, 0)
                if fetched.records is None:
                    out.append(1)
                else:
                    write_uvarint(out, fetched.records.size + 1)
                    parts += (out, fetched.records)
                    out = bytearray()
                write_array_length(out, len(fetched.acquired), True)
                for acquired in fetched.acquired:
                    out += _ACQUIRED.pack(*acquired)
                out.append(0)
            out.append(0)
        write_array_length(out, 0, True)  # node endpoints
        out.append(0)
        parts.append(out)
        return parts
