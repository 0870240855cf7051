"""Every API asked by clients that may do little, and what of each answer says what they may."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from broker.protocol.api import ApiKey
from broker.protocol.records import Record, encode_batch
from tests.conformance.differential.exchange import Peer

__all__ = ["PASSWORD", "RECORDED", "SETTINGS", "Client", "findings", "prepare"]

RECORDED: Final = Path(__file__).with_name("recorded.json")
"""What Apache Kafka 4.3.1 answers; made by ``python -m tests.conformance.access``."""

PASSWORD: Final = "secret"
SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{name}="{PASSWORD}"' for name in ("nobody", "some", "alice", "bob"))
        + ";"
    ),
    "quota.window.num": "2",
}
"""Nobody has to log in on PLAINTEXT, where everyone may do everything; on the listener CLIENTS ``nobody`` and ``some`` may."""

TOPICS: Final = ("described", "hidden", "read", "read-not", "written", "written-too")
_ABSENT: Final = "absent"

_TOPIC, _GROUP, _CLUSTER, _TXN = 2, 3, 4, 5
_LITERAL, _PREFIXED = 3, 4
_READ, _WRITE, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS = 3, 4, 6, 8, 10
_DENY, _ALLOW = 2, 3
RIGHTS: Final = (
    (_TOPIC, "described", _LITERAL, _DESCRIBE, _ALLOW),
    (_TOPIC, "described", _LITERAL, _DESCRIBE_CONFIGS, _ALLOW),
    (_TOPIC, "read", _PREFIXED, _READ, _ALLOW),
    (_TOPIC, "read-not", _LITERAL, _READ, _DENY),
    (_TOPIC, "written", _PREFIXED, _WRITE, _ALLOW),
    (_TOPIC, _ABSENT, _LITERAL, _DESCRIBE, _ALLOW),
    (_GROUP, "read", _PREFIXED, _READ, _ALLOW),
    (_GROUP, "deleted", _LITERAL, _DELETE, _ALLOW),
    (_TXN, "written", _LITERAL, _WRITE, _ALLOW),
    (_CLUSTER, "kafka-cluster", _LITERAL, _DESCRIBE, _ALLOW),
)
"""What ``some`` may do; ``nobody`` may do nothing."""

_TOLD: Final = ("error_code", "authorized_operations", "config_error_code")


class Client(Peer):
    """Logs in as ``user`` where there is one."""

    def __init__(self, port: int, user: str | None = None) -> None:
        super().__init__(port)
        self._user = user

    def _connection(self, name: str) -> socket.socket:
        connected = name in self._connections
        made = super()._connection(name)
        if not connected and self._user is not None:
            self._exchange(made, struct.pack(">hhihh5s", 17, 1, 0, -1, 5, b"PLAIN"))
            token = f"\0{self._user}\0{PASSWORD}".encode()
            answer = self._exchange(made, struct.pack(">hhihi", 36, 1, 0, -1, len(token)) + token)
            assert answer[4:6] == b"\0\0", answer
        return made

    @staticmethod
    def _exchange(connection: socket.socket, frame: bytes) -> bytes:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        with connection.makefile("rb") as answers:
            (size,) = struct.unpack(">i", answers.read(4))
            return answers.read(size)


def prepare(admin: Peer) -> dict[str, str]:
    """Make the topics, commit offsets, give ``some`` its rights; the ids of the topics."""
    ask = admin.ask
    made = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in TOPICS]
    ask(ApiKey.CREATE_TOPICS, 4, {"topics": made, "timeout": 10_000})
    _until(lambda: all(_leads(admin, name) for name in TOPICS))
    # These make the brokers' own topics.
    ask(ApiKey.FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": ["read"]})
    asked = {"key_type": 1, "coordinator_keys": ["written"]}
    _until(lambda: _codes(ask(ApiKey.FIND_COORDINATOR, 4, asked)) == {"none"})
    producer = {"transactional_id": None, "transaction_timeout": 1000, "producer_id": -1, "producer_epoch": -1}
    _until(lambda: _codes(ask(ApiKey.INIT_PRODUCER_ID, 4, producer)) == {"none"})
    for group in ("read", "deleted", "hidden"):
        offsets = [
            {"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]}
            for name in TOPICS
        ]
        body = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": offsets}
        _until(
            lambda body=body: _codes(ask(ApiKey.OFFSET_COMMIT, 8, body)) <= {"none"}  # type: ignore[misc]
        )
    creations = [
        {
            "resource_type": kind,
            "resource_name": name,
            "resource_pattern_type": pattern,
            "principal": "User:some",
            "host": "*",
            "operation": operation,
            "permission_type": permission,
        }
        for kind, name, pattern, operation, permission in RIGHTS
    ]
    assert _codes(ask(ApiKey.CREATE_ACLS, 3, {"creations": creations})) == {"none"}
    found = ask(ApiKey.METADATA, 12, {"topics": [{"name": name} for name in TOPICS]})
    return {one["name"]: one["topic_id"] for one in found["topics"]}


def _leads(admin: Peer, name: str) -> bool:
    wanted = {"replica_id": -1, "topics": [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}]}
    return _codes(admin.ask(ApiKey.LIST_OFFSETS, 6, wanted)) == {"none"}


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _codes(answer: Any) -> set[str]:
    return {value for path, value in _leaves("", answer) if path.endswith("error_code")}


def findings(client: Client, served: Mapping[ApiKey, range], ids: Mapping[str, str]) -> dict[str, Any]:
    """By request: what its answer says of rights."""
    found: dict[str, Any] = {}
    for api, title, body in _requests(ids):
        for version in _versions(api, served[api]) if api in served else ():
            answer = client.ask(api, version, body)
            name = f"{api.title} v{version}{' ' + title if title else ''}"
            found[name] = _told(answer, {uuid: topic for topic, uuid in ids.items()})
    return found


def _versions(api: ApiKey, served: range) -> list[int]:
    lowest = 3 if api is ApiKey.PRODUCE else served.start
    return sorted({lowest, *({9, 10, 12} & set(range(lowest, served.stop))), served.stop - 1})


def _told(answer: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(answer, dict) or "connection" in answer:
        return answer
    told: dict[str, Any] = {}
    for path, value in _leaves("", answer):
        for topic_id, name in names.items():
            path = path.replace(topic_id, f"<{name}>")
        if path.endswith(_TOLD):
            told[path] = value
    return dict(sorted(told.items()))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Fields with their paths; items of lists by what names them, so that their order says nothing."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}" if path else name, inner)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(f"{path}[{_named(inner, place)}]", inner)
    else:
        yield path, value


def _named(item: Any, place: int) -> str:
    if isinstance(item, dict):
        for name in ("name", "topic_name", "group_id", "resource_name", "transactional_id", "key", "topic_id", "topic"):
            if item.get(name):
                return str(item[name])
        for name in ("partition_index", "index", "partition"):
            if name in item:
                return str(item[name])
    return str(place)


def _each(topics: tuple[str, ...], partitions: str, *, name: str = "name", ids: Mapping[str, str] | None = None) -> Any:
    """Every topic with one partition, under the names that the API has for such."""
    one: dict[str, Any] = {
        "partition_index": 0,
        "partition": 0,
        "index": 0,
        "timestamp": -1,
        "offset": 0,
        "leader_epoch": 0,
        "current_leader_epoch": -1,
        "partition_max_bytes": 1000,
        "committed_offset": 1,
        "records": encode_batch([Record(b"k", b"v", timestamp_ms=1_700_000_000_000)]),
    }
    made = []
    for topic in topics:
        entry: dict[str, Any] = {name: topic, partitions: [one]}
        if ids is not None:
            entry["topic_id"] = ids.get(topic, "00000000-0000-4000-8000-00000000abcd")
        made.append(entry)
    return made


def _requests(ids: Mapping[str, str]) -> Iterator[tuple[ApiKey, str, dict[str, Any]]]:
    """(API, what is particular, fields of all versions). None of these changes anything for who may do what ``some`` may."""
    every = (*TOPICS, _ABSENT)
    key = ApiKey
    yield key.PRODUCE, "", {"acks": -1, "timeout": 5000, "topic_data": _each(every, "partition_data", ids=ids)}
    transactional = {"transactional_id": "hidden", "acks": -1, "timeout": 5000}
    yield key.PRODUCE, "transactional", {**transactional, "topic_data": _each(every, "partition_data", ids=ids)}
    fetched = {"max_wait": 0, "min_bytes": 0, "max_bytes": 10_000, "replica_id": -1, "session_epoch": -1}
    yield key.FETCH, "", {**fetched, "topics": _each(every, "partitions", name="topic", ids=ids)}
    yield key.LIST_OFFSETS, "", {"replica_id": -1, "topics": _each(every, "partitions")}
    yield key.OFFSET_FOR_LEADER_EPOCH, "", {"replica_id": -2, "topics": _each(every, "partitions", name="topic")}
    wanted = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    yield key.METADATA, "all", {"topics": None, **wanted}
    yield (
        key.METADATA,
        "named",
        {"topics": [{"name": name} for name in TOPICS], "allow_auto_topic_creation": False, **wanted},
    )
    made = {"topics": [{"name": "absent"}, {"name": "absent-too"}], "allow_auto_topic_creation": True}
    yield key.METADATA, "to create", made
    for group in ("read", "hidden"):
        commit = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
        yield key.OFFSET_COMMIT, group, {**commit, "topics": _each(every, "partitions", ids=ids)}
        indexes = [
            {"name": n, "topic_id": ids.get(n, "00000000-0000-4000-8000-00000000abcd"), "partition_indexes": [0]}
            for n in every
        ]
        fetching = {"group_id": group, "topics": indexes, "groups": [{"group_id": group, "topics": indexes}]}
        yield key.OFFSET_FETCH, group, fetching
        yield (
            key.OFFSET_FETCH,
            f"all of {group}",
            {"group_id": group, "topics": None, "groups": [{"group_id": group, "topics": None}]},
        )
    for group in ("deleted", "hidden"):
        yield key.OFFSET_DELETE, group, {"group_id": group, "topics": _each(("hidden", "described"), "partitions")}
    coordinators = {"key": "hidden", "coordinator_keys": ["hidden", "read", "written"]}
    for kind in (0, 1):
        yield key.FIND_COORDINATOR, str(kind), {**coordinators, "key_type": kind}
    member = {
        "group_id": "hidden",
        "generation_id": 1,
        "member_id": "m",
        "protocol_type": "consumer",
        "protocol_name": "range",
    }
    timeouts = {"session_timeout": 10_000, "rebalance_timeout": 10_000}
    yield key.JOIN_GROUP, "", {**member, **timeouts, "protocols": [{"name": "range", "metadata": b""}]}
    yield key.SYNC_GROUP, "", {**member, "assignments": []}
    yield key.HEARTBEAT, "", member
    yield key.LEAVE_GROUP, "", {**member, "members": [{"member_id": "m"}]}
    groups = ["read", "hidden", "deleted"]
    yield key.DESCRIBE_GROUPS, "", {"groups": groups, "include_authorized_operations": True}
    yield key.LIST_GROUPS, "", {"states_filter": [], "types_filter": []}
    yield key.DELETE_GROUPS, "", {"groups_names": ["hidden", "read"]}
    new = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("new", "described", "hidden")]
    yield key.CREATE_TOPICS, "", {"topics": new, "timeout": 5000, "validate_only": True}
    gone = [{"name": name} for name in ("described", "hidden", _ABSENT)]
    yield key.DELETE_TOPICS, "by name", {"topic_names": [one["name"] for one in gone], "topics": gone, "timeout": 5000}
    by_id = [{"name": None, "topic_id": ids[name]} for name in ("described", "hidden")]
    yield key.DELETE_TOPICS, "by id", {"topic_names": [], "topics": by_id, "timeout": 5000}
    grown = [{"name": name, "count": 2} for name in ("described", "hidden", _ABSENT)]
    yield key.CREATE_PARTITIONS, "", {"topics": grown, "timeout": 5000, "validate_only": True}
    yield key.DELETE_RECORDS, "", {"topics": _each(("described", "hidden", _ABSENT), "partitions"), "timeout": 5000}
    resources = [
        *({"resource_type": _TOPIC, "resource_name": name} for name in ("described", "hidden")),
        {"resource_type": 4, "resource_name": "1"},
        {"resource_type": 32, "resource_name": "read"},
        {"resource_type": 16, "resource_name": "metrics"},
    ]
    described = [{**one, "configuration_keys": ["retention.ms", "log.retention.ms"]} for one in resources]
    yield key.DESCRIBE_CONFIGS, "", {"resources": described}
    configs = [{"name": "retention.ms", "config_operation": 0, "value": "1"}]
    altered = [{**one, "configs": configs} for one in resources]
    yield key.INCREMENTAL_ALTER_CONFIGS, "", {"resources": altered, "validate_only": True}
    yield key.ALTER_CONFIGS, "", {"resources": altered[:3], "validate_only": True}
    yield key.DESCRIBE_LOG_DIRS, "", {"topics": None}
    moved = [{"path": "/nowhere", "topics": [{"name": "hidden", "partitions": [0]}]}]
    yield key.ALTER_REPLICA_LOG_DIRS, "", {"dirs": moved}
    for transactional_id in (None, "hidden"):
        yield (
            key.INIT_PRODUCER_ID,
            str(transactional_id),
            {
                "transactional_id": transactional_id,
                "transaction_timeout": 1000,
                "producer_id": -1,
                "producer_epoch": -1,
            },
        )
    producer = {"transactional_id": "hidden", "producer_id": 1, "producer_epoch": 0}
    transaction_topics = [{"name": "hidden", "partitions": [0]}]
    transactions = [{**producer, "verify_only": False, "topics": transaction_topics}]
    adding = {
        "v3_and_below_transactional_id": "hidden",
        "v3_and_below_producer_id": 1,
        "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": transaction_topics,
        "transactions": transactions,
    }
    yield key.ADD_PARTITIONS_TO_TXN, "", adding
    yield key.ADD_OFFSETS_TO_TXN, "", {**producer, "group_id": "hidden"}
    yield key.ADD_OFFSETS_TO_TXN, "group", {**producer, "transactional_id": "written", "group_id": "hidden"}
    yield key.END_TXN, "", {**producer, "committed": True}
    markers = [
        {
            "producer_id": 1,
            "producer_epoch": 0,
            "transaction_result": True,
            "coordinator_epoch": 0,
            "topics": [{"name": "hidden", "partition_indexes": [0]}],
        }
    ]
    yield key.WRITE_TXN_MARKERS, "", {"markers": markers}
    committed = {
        **producer,
        "group_id": "hidden",
        "generation_id": -1,
        "member_id": "",
        "topics": _each(("hidden",), "partitions"),
    }
    yield key.TXN_OFFSET_COMMIT, "", committed
    yield key.TXN_OFFSET_COMMIT, "group", {**committed, "transactional_id": "written"}
    yield (
        key.DESCRIBE_ACLS,
        "",
        {
            "resource_type_filter": 1,
            "resource_name_filter": None,
            "pattern_type_filter": 1,
            "principal_filter": None,
            "host_filter": None,
            "operation": 1,
            "permission_type": 1,
        },
    )
    acl = {
        "resource_type": 2,
        "resource_name": "x",
        "resource_pattern_type": 3,
        "principal": "User:x",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    yield key.CREATE_ACLS, "", {"creations": [acl]}
    acl_filter = {
        "resource_type_filter": 2,
        "resource_name_filter": "nothing",
        "pattern_type_filter": 3,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    yield key.DELETE_ACLS, "", {"filters": [acl_filter]}
    yield (
        key.CREATE_DELEGATION_TOKEN,
        "",
        {"owner_principal_type": "User", "owner_principal_name": "x", "renewers": [], "max_lifetime": 1000},
    )
    yield key.DESCRIBE_DELEGATION_TOKEN, "", {"owners": None}
    yield (
        key.ELECT_LEADERS,
        "",
        {"election_type": 0, "topic_partitions": [{"topic": "hidden", "partitions": [0]}], "timeout": 5000},
    )
    reassigned = [{"name": "hidden", "partitions": [{"partition_index": 0, "replicas": [1]}]}]
    yield key.ALTER_PARTITION_REASSIGNMENTS, "", {"topics": reassigned, "timeout": 5000}
    yield key.LIST_PARTITION_REASSIGNMENTS, "", {"topics": None, "timeout": 5000}
    yield key.DESCRIBE_CLIENT_QUOTAS, "", {"components": [], "strict": False}
    quota = [
        {
            "entity": [{"entity_type": "user", "entity_name": "x"}],
            "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}],
        }
    ]
    yield key.ALTER_CLIENT_QUOTAS, "", {"entries": quota, "validate_only": True}
    yield key.DESCRIBE_USER_SCRAM_CREDENTIALS, "", {"users": [{"name": "x"}]}
    yield key.ALTER_USER_SCRAM_CREDENTIALS, "", {"deletions": [{"name": "x", "mechanism": 1}], "upsertions": []}
    yield (
        key.DESCRIBE_QUORUM,
        "",
        {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
    )
    yield key.UPDATE_FEATURES, "", {"timeout": 5000, "feature_updates": [], "validate_only": True}
    yield key.DESCRIBE_CLUSTER, "", {"include_cluster_authorized_operations": True, "endpoint_type": 1}
    yield key.DESCRIBE_PRODUCERS, "", {"topics": [{"name": name, "partition_indexes": [0]} for name in every]}
    yield key.UNREGISTER_BROKER, "", {"broker_id": 77}
    yield key.DESCRIBE_TRANSACTIONS, "", {"transactional_ids": ["hidden", "written"]}
    yield key.LIST_TRANSACTIONS, "", {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
    beat = {
        "group_id": "hidden",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout": 1000,
        "subscribed_topic_names": ["hidden"],
        "topic_partitions": [],
    }
    yield key.CONSUMER_GROUP_HEARTBEAT, "", {**beat, "server_assignor": "range"}
    yield key.CONSUMER_GROUP_DESCRIBE, "", {"group_ids": groups, "include_authorized_operations": True}
    yield key.LIST_CONFIG_RESOURCES, "", {"resource_types": []}
    yield key.DESCRIBE_TOPIC_PARTITIONS, "all", {"topics": [], "response_partition_limit": 100, "cursor": None}
    yield (
        key.DESCRIBE_TOPIC_PARTITIONS,
        "named",
        {"topics": [{"name": name} for name in every], "response_partition_limit": 100, "cursor": None},
    )
    yield key.SHARE_GROUP_HEARTBEAT, "", beat
    yield key.SHARE_GROUP_DESCRIBE, "", {"group_ids": groups, "include_authorized_operations": True}
    yield (
        key.SHARE_FETCH,
        "",
        {
            "group_id": "hidden",
            "member_id": "AAAAAAAAAAAAAAAAAAAAAQ",
            "share_session_epoch": 0,
            "max_wait": 0,
            "max_bytes": 1000,
            "topics": [],
        },
    )
    yield (
        key.SHARE_ACKNOWLEDGE,
        "",
        {"group_id": "hidden", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "share_session_epoch": 1, "topics": []},
    )
    yield (
        key.STREAMS_GROUP_HEARTBEAT,
        "",
        {
            "group_id": "hidden",
            "member_id": "m",
            "member_epoch": 0,
            "process_id": "p",
            "rebalance_timeout": 1000,
            "client_tags": [],
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            "topology": {"epoch": 0, "subtopologies": []},
        },
    )
    yield key.STREAMS_GROUP_DESCRIBE, "", {"group_ids": groups, "include_authorized_operations": True}
    shared = {
        "group_id": "hidden",
        "topics": [
            {
                "topic_name": "hidden",
                "topic_id": ids["hidden"],
                "partitions": [{"partition_index": 0, "start_offset": 0}],
            }
        ],
    }
    yield key.DESCRIBE_SHARE_GROUP_OFFSETS, "", {"groups": [{"group_id": "hidden", "topics": None}]}
    yield key.ALTER_SHARE_GROUP_OFFSETS, "", shared
    yield key.DELETE_SHARE_GROUP_OFFSETS, "", shared
    yield (
        key.ADD_RAFT_VOTER,
        "",
        {"cluster_id": None, "timeout": 1000, "voter_id": 9, "voter_directory_id": ids["hidden"], "listeners": []},
    )
    yield key.REMOVE_RAFT_VOTER, "", {"cluster_id": None, "voter_id": 9, "voter_directory_id": ids["hidden"]}
    state = {"group_id": "hidden", "topics": [{"topic_id": ids["hidden"], "partitions": [{"partition": 0}]}]}
    for api in (
        key.INITIALIZE_SHARE_GROUP_STATE,
        key.READ_SHARE_GROUP_STATE,
        key.WRITE_SHARE_GROUP_STATE,
        key.DELETE_SHARE_GROUP_STATE,
        key.READ_SHARE_GROUP_STATE_SUMMARY,
    ):
        yield api, "", state


def recorded() -> dict[str, Any]:
    return dict(json.loads(RECORDED.read_text()))
