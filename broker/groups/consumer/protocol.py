"""The messages between members of the classic protocol and their leader: subscription and assignment
(ConsumerProtocol).

If a group has members of both protocols, the coordinator reads and writes them instead of the leader. Versions 0 to 3
are known; later ones are read as 3, which Kafka guarantees to be possible.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import ClassVar, Final, TypeVar

from broker.errors import InconsistentGroupProtocol
from broker.groups.modern.member import Partitions
from broker.groups.modern.topics import TopicCatalog
from broker.protocol.codec import reader, writer
from broker.protocol.primitives import MalformedMessage
from broker.protocol.schema import Field, Message

__all__ = [
    "ProtocolAssignment",
    "ProtocolSubscription",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
]

_LATEST: Final = 3


class ProtocolPartitions(Message):
    """Partitions of a topic."""

    __slots__ = ("partitions", "topic")
    FIELDS: ClassVar = (Field(name="topic", kind="string"), Field(name="partitions", kind="int32", array=True))

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic = topic
        self.partitions = partitions


class ProtocolSubscription(Message):
    """The topics that a member subscribes to and, from version 1 on, the partitions it has."""

    __slots__ = ("generation_id", "owned_partitions", "rack_id", "topics", "user_data")
    FIELDS: ClassVar = (
        Field(name="topics", kind="string", array=True),
        Field(name="user_data", kind="bytes", null_since=0),
        Field(name="owned_partitions", kind=ProtocolPartitions, array=True, since=1),
        Field(name="generation_id", kind="int32", since=2),
        Field(name="rack_id", kind="string", since=3, null_since=3),
    )

    def __init__(
        self,
        *,
        topics: Sequence[str] = (),
        user_data: bytes | None = None,
        owned_partitions: Sequence[ProtocolPartitions] = (),
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics = topics
        self.user_data = user_data
        self.owned_partitions = owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id

    def owned(self, topics: TopicCatalog) -> Partitions:
        """Its partitions, of topics that exist."""
        result = (
            (topics.by_name(owned_partition.topic), owned_partition.partitions)
            for owned_partition in self.owned_partitions
        )
        return {topic.id: frozenset(partitions) for topic, partitions in result if topic is not None}


class ProtocolAssignment(Message):
    """The assignment of a member. ``user_data`` comes from a custom assignor of the leader."""

    __slots__ = ("assigned_partitions", "user_data")
    FIELDS: ClassVar = (
        Field(name="assigned_partitions", kind=ProtocolPartitions, array=True),
        Field(name="user_data", kind="bytes", null_since=0),
    )

    def __init__(
        self, *, assigned_partitions: Sequence[ProtocolPartitions] = (), user_data: bytes | None = None
    ) -> None:
        self.assigned_partitions = assigned_partitions
        self.user_data = user_data

    def assigned(self, topics: TopicCatalog) -> Partitions:
        """The assigned partitions, of topics that exist."""
        result = (
            (topics.by_name(assigned_partition.topic), assigned_partition.partitions)
            for assigned_partition in self.assigned_partitions
        )
        return {topic.id: frozenset(partitions) for topic, partitions in result if topic is not None and partitions}


def decode_subscription(data: bytes) -> ProtocolSubscription:
    """Raises InconsistentGroupProtocol if the bytes are not a subscription."""
    return _decode(ProtocolSubscription, data)


def decode_assignment(data: bytes) -> ProtocolAssignment:
    """Raises InconsistentGroupProtocol if the bytes are not an assignment."""
    return _decode(ProtocolAssignment, data)


M = TypeVar("M", bound=Message)


def _decode(cls: type[M], data: bytes) -> M:
    try:
        (version,) = struct.unpack_from(">h", data)
        if version < 0:
            raise MalformedMessage(f"version {version}")
        value, _ = reader(cls, min(version, _LATEST), False)(data, 2)
    except (MalformedMessage, struct.error, IndexError, UnicodeDecodeError) as error:
        raise InconsistentGroupProtocol(f"The metadata of the consumer protocol cannot be read: {error}") from error
    return value  # type: ignore[no-any-return]


def encode_assignment(partitions: Partitions, topics: TopicCatalog, like: bytes) -> bytes:
    """An assignment in the version of the subscription ``like``."""
    (version,) = struct.unpack_from(">h", like)
    known = min(max(version, 0), _LATEST)
    result = ((topics.by_id(topic_id), numbers) for topic_id, numbers in partitions.items())
    named = {topic.name: sorted(numbers) for topic, numbers in result if topic is not None}
    assignment = ProtocolAssignment(
        assigned_partitions=[
            ProtocolPartitions(topic=name, partitions=numbers) for name, numbers in sorted(named.items())
        ]
    )
    out = bytearray(struct.pack(">h", known))
    writer(ProtocolAssignment, known, False)(out, assignment)
    return bytes(out)
