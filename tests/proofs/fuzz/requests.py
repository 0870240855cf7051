"""Requests of every API and version of the broker's table, as frames; Produce and Fetch, which the broker reads by hand, by tables
of their own."""

from __future__ import annotations

import random
import struct
from typing import ClassVar, Final

from broker.handlers import ROUTES
from broker.protocol.codec import writer
from broker.protocol.fields import Field, Message
from tests.proofs.fuzz.batches import drawn_records
from tests.proofs.fuzz.values import Names, drawn
from tests.support.hostile import NOW_MS

__all__ = ["APIS", "frame", "request"]

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2


def _message(name: str, *fields: Field) -> type[Message]:
    def __init__(self: Message, **values: object) -> None:
        for field in fields:
            setattr(self, field.name, values.get(field.name))

    slots = tuple(field.name for field in fields)
    return type(name, (Message,), {"__slots__": slots, "FIELDS": fields, "__init__": __init__})


_PARTITION: Final = _message(
    "Partition", Field(name="partition_index", kind="int32"), Field(name="records", kind="records", null_since=0)
)
_TOPIC: Final = _message(
    "Topic",
    Field(name="topic", kind="string", until=12),
    Field(name="topic_id", kind="uuid", since=13),
    Field(name="partitions", kind=_PARTITION, array=True),
)
_PRODUCE: Final = _message(
    "Produce",
    Field(name="transactional_id", kind="string", null_since=3),
    Field(name="acks", kind="int16"),
    Field(name="timeout_ms", kind="int32"),
    Field(name="topics", kind=_TOPIC, array=True),
)
_FETCHED: Final = _message(
    "FetchPartition",
    Field(name="partition_index", kind="int32"),
    Field(name="current_leader_epoch", kind="int32", since=9),
    Field(name="offset", kind="int64"),
    Field(name="last_fetched_epoch", kind="int32", since=12),
    Field(name="log_start_offset", kind="int64", since=5),
    Field(name="max_bytes", kind="int32"),
    Field(name="directory_id", kind="uuid", since=17, tag=0),
)
_FETCH_TOPIC: Final = _message(
    "FetchTopic",
    Field(name="topic", kind="string", until=12),
    Field(name="topic_id", kind="uuid", since=13),
    Field(name="partitions", kind=_FETCHED, array=True),
)
_FORGOTTEN: Final = _message(
    "Forgotten",
    Field(name="topic", kind="string", until=12),
    Field(name="topic_id", kind="uuid", since=13),
    Field(name="partitions", kind="int32", array=True),
)
_FETCH: Final = _message(
    "Fetch",
    Field(name="replica_id", kind="int32", until=14),
    Field(name="max_wait_ms", kind="int32"),
    Field(name="min_bytes", kind="int32"),
    Field(name="max_bytes", kind="int32"),
    Field(name="isolation_level", kind="int8"),
    Field(name="session_id", kind="int32", since=7),
    Field(name="session_epoch", kind="int32", since=7),
    Field(name="topics", kind=_FETCH_TOPIC, array=True),
    Field(name="forgotten", kind=_FORGOTTEN, array=True, since=7),
    Field(name="rack_id", kind="string", since=11),
)


class _Api:
    def __init__(self, key: int) -> None:
        route = ROUTES[key]
        self.key, self.title = key, route.key.title
        self.versions = route.versions
        self.flexible_since = route.request.FLEXIBLE_SINCE
        self.message: type[Message] = {PRODUCE: _PRODUCE, FETCH: _FETCH}.get(key) or route.request  # type: ignore[assignment]

    WAITING: ClassVar = {"Produce", "Fetch", "JoinGroup", "SyncGroup", "ShareFetch"}


APIS: Final = tuple(_Api(key) for key in ROUTES)


def request(api: _Api, version: int, names: Names, chance: random.Random) -> bytes:
    """A whole frame without its length: header and message."""
    message = drawn(api.message, version, names, chance)
    if api.key == PRODUCE:
        for topic in message.topics:  # type: ignore[attr-defined]
            for partition in topic.partitions:
                partition.records = drawn_records(chance)
        message.acks = chance.choice([-1, -1, 1, 0, 5])  # type: ignore[attr-defined]
    if api.key == LIST_OFFSETS:
        for topic in message.topics:  # type: ignore[attr-defined]
            for partition in topic.partitions:
                partition.timestamp = chance.choice([partition.timestamp, -3, -1, 0, NOW_MS, NOW_MS + 1])
    out = bytearray(struct.pack(">hhih", api.key, version, chance.randrange(2**31), 4) + b"fuzz")
    flexible = version >= api.flexible_since
    if flexible:
        out.append(0)
    writer(api.message, version, flexible)(out, message)
    return bytes(out)


def frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content
