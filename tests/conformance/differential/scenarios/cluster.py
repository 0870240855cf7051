"""APIs, brokers and topics from the view of clients."""

from __future__ import annotations

from typing import Final

from broker.protocol.api import ApiKey
from tests.conformance.differential.scenario import Scenario, ask
from tests.conformance.differential.scenarios.common import ABSENT_ID, create_topic

SCENARIOS: Final = (
    Scenario(
        "which APIs there are",
        ApiKey.API_VERSIONS,
        (
            ask(ApiKey.API_VERSIONS, {"client_software_name": "differential", "client_software_version": "1.0"}),
            ask(ApiKey.API_VERSIONS, {"client_software_name": "not a name", "client_software_version": ""}),
        ),
    ),
    Scenario(
        "metadata",
        ApiKey.METADATA,
        (
            *create_topic(),
            ask(
                ApiKey.METADATA,
                {
                    "topics": [{"name": "$u"}],
                    "allow_auto_topic_creation": False,
                    "include_cluster_authorized_operations": True,
                    "include_topic_authorized_operations": True,
                },
            ),
            ask(
                ApiKey.METADATA,
                {"topics": [{"name": "$u-absent"}, {"name": "no/name"}], "allow_auto_topic_creation": False},
            ),
        ),
    ),
    Scenario(
        "metadata by topic id",
        ApiKey.METADATA,
        (
            *create_topic(),
            ask(ApiKey.METADATA, {"topics": [{"topic_id": "$id", "name": None}]}),
            ask(ApiKey.METADATA, {"topics": [{"topic_id": ABSENT_ID, "name": None}]}),
        ),
        range(12, 14),
    ),
    Scenario("metadata of nothing", ApiKey.METADATA, (ask(ApiKey.METADATA, {"topics": []}),), range(1, 14)),
    Scenario(
        "metadata that creates",
        ApiKey.METADATA,
        (
            ask(ApiKey.METADATA, {"topics": [{"name": "$u-made"}], "allow_auto_topic_creation": True}, once=True),
            ask(
                ApiKey.METADATA,
                {"topics": [{"name": "$u-made"}], "allow_auto_topic_creation": True},
                until=("topics.0.error_code", "none"),
            ),
        ),
    ),
    Scenario(
        "the cluster",
        ApiKey.DESCRIBE_CLUSTER,
        (
            ask(ApiKey.DESCRIBE_CLUSTER, {"endpoint_type": 1}),
            ask(
                ApiKey.DESCRIBE_CLUSTER,
                {"endpoint_type": 1, "include_cluster_authorized_operations": True, "include_fenced_brokers": True},
            ),
            ask(ApiKey.DESCRIBE_CLUSTER, {"endpoint_type": 2}),
            ask(ApiKey.DESCRIBE_CLUSTER, {"endpoint_type": 7}),
        ),
    ),
    Scenario(
        "topics by partition",
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        (
            *create_topic("$u-a", 3, keep="a"),
            *create_topic("$u-b", 2, keep="b"),
            ask(
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                {"topics": [{"name": "$u-b"}, {"name": "$u-a"}], "response_partition_limit": 100},
            ),
            ask(
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                {"topics": [{"name": "$u-a"}, {"name": "$u-b"}], "response_partition_limit": 2},
            ),
            ask(
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                {"topics": [{"name": "$u-a"}, {"name": "$u-b"}], "response_partition_limit": 3},
            ),
            ask(
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                {"topics": [{"name": "$u-a"}, {"name": "$u-b"}], "response_partition_limit": 0},
            ),
            ask(
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                {
                    "topics": [{"name": "$u-a"}, {"name": "$u-b"}],
                    "response_partition_limit": 100,
                    "cursor": {"topic_name": "$u-a", "partition_index": 2},
                },
            ),
            ask(
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                {
                    "topics": [{"name": "$u-a"}],
                    "response_partition_limit": 100,
                    "cursor": {"topic_name": "$u-a", "partition_index": -1},
                },
            ),
            ask(
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                {
                    "topics": [{"name": "$u-absent"}, {"name": "$u-a"}, {"name": "no/name"}],
                    "response_partition_limit": 100,
                },
            ),
        ),
    ),
)
