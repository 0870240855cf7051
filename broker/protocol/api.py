"""The keys of Kafka's client APIs, and the headers of messages."""

from __future__ import annotations

import struct
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from broker.protocol.primitives import MalformedMessage, read_uvarint

__all__ = ["ApiKey", "RequestHeader", "begin_response", "peek_request", "read_request_header"]


class ApiKey(IntEnum):
    """Numbers from Kafka's ``ApiKeys``."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92

    @property
    def title(self) -> str:
        """The name in Kafka's documentation and metrics: ``OffsetFetch``."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class RequestHeader(NamedTuple):
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body_at: int
    """The position of the message in the frame."""


_START: Final = Struct(">hhi")
_FIXED: Final = Struct(">hhih")
_BEGIN: Final = Struct(">ii")
_BEGIN_FLEXIBLE: Final = Struct(">iib")


def peek_request(frame: memoryview) -> tuple[int, int, int]:
    """(api key, version, correlation id), which come first in every request of every version."""
    try:
        key, version, correlation_id = _START.unpack_from(frame)
    except struct.error:
        raise MalformedMessage(f"a request of {len(frame)} bytes is too short for its header") from None
    return key, version, correlation_id


def read_request_header(frame: memoryview, flexible: bool) -> RequestHeader:
    """Read header version 1, or 2 for ``flexible`` messages. In both the client id is a plain nullable string."""
    try:
        key, version, correlation_id, length = _FIXED.unpack_from(frame)
        client_id, at = None, _FIXED.size
        if length != -1:
            at += length
            if length < 0 or at > len(frame):
                raise MalformedMessage(f"a client id of {length} bytes is announced in a request of {len(frame)}")
            client_id = str(frame[_FIXED.size : at], "utf-8")
        if flexible:
            at = _skip_tags(frame, at) if frame[at] else at + 1
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"the request's header ends early: {error}") from error
    return RequestHeader(key, version, correlation_id, client_id, at)


_MOST_TAGS: Final = 100


def _skip_tags(frame: memoryview, at: int) -> int:
    count, at = read_uvarint(frame, at)
    if count > _MOST_TAGS:
        raise MalformedMessage(f"the header announces {count} tagged fields; at most {_MOST_TAGS} are read")
    for _ in range(count):
        _, at = read_uvarint(frame, at)
        size, at = read_uvarint(frame, at)
        at += size
        if at > len(frame):
            raise MalformedMessage("a tagged field of the header is longer than the request")
    return at


def begin_response(correlation_id: int, flexible: bool) -> bytearray:
    """Four bytes for the size, then header version 0, or 1 (no tags) for ``flexible`` messages other than ApiVersions."""
    return bytearray(_BEGIN_FLEXIBLE.pack(0, correlation_id, 0) if flexible else _BEGIN.pack(0, correlation_id))
