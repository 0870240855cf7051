"""Administrative requests: leaders, replicas, voters, features."""

from __future__ import annotations

from typing import Any, Final

from broker.protocol.api import ApiKey
from tests.conformance.differential.scenario import Scenario, Step, ask
from tests.conformance.differential.scenarios.common import create_topic

_DIRECTORY: Final = "00000000-0000-4000-8000-00000000d1d1"


def quorum(topic: str, *partitions: int) -> Step:
    requested = [{"partition_index": index} for index in partitions]
    return ask(ApiKey.DESCRIBE_QUORUM, {"topics": [{"topic_name": topic, "partitions": requested}]})


def elect(partitions: Any, kind: int = 0) -> Step:
    return ask(ApiKey.ELECT_LEADERS, {"election_type": kind, "topic_partitions": partitions, "timeout": 5000})


def reassign(name: str, replicas: list[int] | None, partition: int = 0, **more: Any) -> Step:
    topics = [{"name": name, "partitions": [{"partition_index": partition, "replicas": replicas}]}]
    return ask(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        {"timeout": 5000, "topics": topics, "allow_replication_factor_change": True, **more},
        once=True,
    )


def feature(name: str, level: int, kind: int = 1, *, validate_only: bool = True) -> Step:
    update = {"feature": name, "max_version_level": level, "upgrade_type": kind, "allow_downgrade": kind != 1}
    return ask(
        ApiKey.UPDATE_FEATURES,
        {"timeout": 5000, "feature_updates": [update], "validate_only": validate_only},
        once=True,
    )


SCENARIOS: Final = (
    Scenario(
        "the quorum",
        ApiKey.DESCRIBE_QUORUM,
        (
            quorum("__cluster_metadata", 0),
            quorum("__cluster_metadata", 1),
            quorum("__cluster_metadata", 0, 1),
            quorum("__cluster_metadata"),
            quorum("$u", 0),
            ask(ApiKey.DESCRIBE_QUORUM, {"topics": []}),
        ),
    ),
    Scenario(
        "elections",
        ApiKey.ELECT_LEADERS,
        (
            *create_topic(),
            elect([{"topic": "$u", "partitions": [0, 1]}]),
            elect([{"topic": "$u", "partitions": [0]}, {"topic": "$u-absent", "partitions": [0]}]),
            elect([{"topic": "$u", "partitions": [9]}]),
            elect([]),
            elect(None),
        ),
    ),
    Scenario(
        "unclean elections",
        ApiKey.ELECT_LEADERS,
        (
            *create_topic(),
            elect([{"topic": "$u", "partitions": [0, 9]}], 1),
            elect([{"topic": "$u", "partitions": [0]}], 5),
            elect(None, 1),
        ),
        range(1, 3),
    ),
    Scenario(
        "reassignments",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        (
            *create_topic(),
            reassign("$u", [1]),
            reassign("$u", None),
            reassign("$u", [9]),
            reassign("$u", [1, 9]),
            reassign("$u", [1, 1]),
            reassign("$u", [-1]),
            reassign("$u", []),
            reassign("$u", [1], partition=9),
            reassign("$u-absent", [1]),
            reassign("$u", [1], allow_replication_factor_change=False),
            reassign("$u", [1, 9], allow_replication_factor_change=False),
            ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, {"timeout": 5000, "topics": []}),
        ),
    ),
    Scenario(
        "what is being reassigned",
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        (
            *create_topic(),
            ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, {"timeout": 5000, "topics": None}),
            ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, {"timeout": 5000, "topics": []}),
            ask(
                ApiKey.LIST_PARTITION_REASSIGNMENTS,
                {"timeout": 5000, "topics": [{"name": "$u", "partition_indexes": [0, 9]}]},
            ),
            ask(
                ApiKey.LIST_PARTITION_REASSIGNMENTS,
                {"timeout": 5000, "topics": [{"name": "$u-absent", "partition_indexes": [0]}]},
            ),
        ),
    ),
    Scenario(
        "features",
        ApiKey.UPDATE_FEATURES,
        (
            feature("transaction.version", 2),
            feature("transaction.version", 1, 2),
            feature("transaction.version", 1, 3),
            feature("transaction.version", 1),
            feature("transaction.version", 9),
            feature("transaction.version", 0, 2),
            feature("transaction.version", -1, 2),
            feature("share.version", 0, 2),
            feature("no.such.feature", 1),
            feature("metadata.version", 31),
            feature("metadata.version", 30),
            feature("metadata.version", 29),
            feature("metadata.version", 29, 2),
            feature("metadata.version", 28, 2),
            feature("metadata.version", 20, 2),
            feature("metadata.version", 20, 3),
            feature("metadata.version", 3, 2),
            feature("metadata.version", 3, 3),
            feature("metadata.version", 0, 2),
            feature("kraft.version", 0, 2),
            feature("eligible.leader.replicas.version", 0, 2),
            feature("group.version", 0, 0),
            feature("group.version", 0, 7),
            feature("", 1),
            ask(ApiKey.UPDATE_FEATURES, {"timeout": 5000, "feature_updates": [], "validate_only": True}),
            ask(
                ApiKey.UPDATE_FEATURES,
                {
                    "timeout": 5000,
                    "feature_updates": [
                        {"feature": "group.version", "max_version_level": 1, "upgrade_type": 1},
                        {"feature": "no.such.feature", "max_version_level": 1, "upgrade_type": 1},
                    ],
                    "validate_only": True,
                },
            ),
            ask(
                ApiKey.UPDATE_FEATURES,
                {
                    "timeout": 5000,
                    "feature_updates": [{"feature": "group.version", "max_version_level": 1, "upgrade_type": 1}] * 2,
                    "validate_only": True,
                },
            ),
        ),
    ),
    Scenario("dynamic voters", ApiKey.UPDATE_FEATURES, (feature("kraft.version", 1),), range(1, 3)),
    Scenario(
        "features changed",
        ApiKey.UPDATE_FEATURES,
        (
            feature("eligible.leader.replicas.version", 0, 2, validate_only=False),
            ask(ApiKey.API_VERSIONS, {"client_software_name": "a", "client_software_version": "1"}, version=4),
            feature("eligible.leader.replicas.version", 1, 1, validate_only=False),
            ask(ApiKey.API_VERSIONS, {"client_software_name": "a", "client_software_version": "1"}, version=4),
        ),
        range(1, 3),
    ),
    Scenario(
        "unregister brokers",
        ApiKey.UNREGISTER_BROKER,
        (ask(ApiKey.UNREGISTER_BROKER, {"broker_id": 99}), ask(ApiKey.UNREGISTER_BROKER, {"broker_id": -1})),
    ),
    Scenario(
        "add a voter",
        ApiKey.ADD_RAFT_VOTER,
        (
            ask(ApiKey.DESCRIBE_CLUSTER, {"endpoint_type": 1}, version=1, keep={"cluster": "cluster_id"}),
            ask(
                ApiKey.ADD_RAFT_VOTER,
                {
                    "cluster_id": "$cluster",
                    "timeout": 1000,
                    "voter_id": 2,
                    "voter_directory_id": _DIRECTORY,
                    "listeners": [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 9}],
                },
            ),
            ask(
                ApiKey.ADD_RAFT_VOTER,
                {"cluster_id": "other", "timeout": 1000, "voter_id": 2, "voter_directory_id": _DIRECTORY},
            ),
            ask(
                ApiKey.ADD_RAFT_VOTER,
                {"cluster_id": None, "timeout": 1000, "voter_id": -1, "voter_directory_id": _DIRECTORY},
            ),
        ),
    ),
    Scenario(
        "remove a voter",
        ApiKey.REMOVE_RAFT_VOTER,
        (
            ask(ApiKey.DESCRIBE_CLUSTER, {"endpoint_type": 1}, version=1, keep={"cluster": "cluster_id"}),
            ask(ApiKey.REMOVE_RAFT_VOTER, {"cluster_id": "$cluster", "voter_id": 1, "voter_directory_id": _DIRECTORY}),
            ask(ApiKey.REMOVE_RAFT_VOTER, {"cluster_id": "other", "voter_id": 2, "voter_directory_id": _DIRECTORY}),
            ask(ApiKey.REMOVE_RAFT_VOTER, {"cluster_id": None, "voter_id": -1, "voter_directory_id": _DIRECTORY}),
        ),
    ),
)
