"""Rights and quotas written by one broker are known to the other: Apache Kafka's directory opened by Tidegate, and
back.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from broker.protocol.api import ApiKey
from tests.conformance.access.walk import Client
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker, kafka_tool
from tests.servers.tidegate_broker import TidegateBroker

pytestmark = [pytest.mark.servers, pytest.mark.proof]

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
EVERY = AclBindingFilter(
    ResourceType.ANY,
    None,  # type: ignore[arg-type]
    ResourcePatternType.ANY,
    None,  # type: ignore[arg-type]
    None,  # type: ignore[arg-type]
    AclOperation.ANY,
    AclPermissionType.ANY,
)


def entry(name: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        name,
        ResourcePatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.DENY,
    )


def limit(port: int, user: str | None, rate: float | None) -> None:
    op = {"key": "consumer_byte_rate", "value": rate or 0.0, "remove": rate is None}
    entity = [{"entity_type": "user", "entity_name": user}, {"entity_type": "client-id", "entity_name": "c"}]
    client = Client(port)
    answer = client.ask(
        ApiKey.ALTER_CLIENT_QUOTAS, 1, {"entries": [{"entity": entity, "ops": [op]}], "validate_only": False}
    )
    client.hang_up()
    assert answer["entries"][0]["error_code"] == "none", answer


def limits(port: int) -> set[tuple[str | None, float]]:
    client = Client(port)
    answer = client.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"components": [], "strict": False})
    client.hang_up()
    return {
        (
            next(part["entity_name"] for part in entry["entity"] if part["entity_type"] == "user"),
            entry["values"][0]["value"],
        )
        for entry in answer["entries"]
    }


def entries(broker: KafkaBroker | TidegateBroker) -> list[str]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    return sorted(binding.name for binding in admin.describe_acls(EVERY).result(60))


def add(broker: KafkaBroker | TidegateBroker, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (done,) = admin.create_acls([entry(name)]).values()
    done.result(60)


def test_rights_and_quotas_go_from_broker_to_broker(tmp_path: Path) -> None:
    kafka: KafkaBroker = or_skip(lambda: KafkaBroker(tmp_path / "kafka", SETTINGS))
    or_skip(kafka.start)
    add(kafka, "a")
    add(kafka, "b")
    limit(kafka.port, "alice", 1000)
    limit(kafka.port, None, 2000)
    kafka.stop()
    log = kafka.directory / "log"

    ours = TidegateBroker(tmp_path / "ours", {**SETTINGS, "log.dirs": str(log)})
    ours.start()
    try:
        assert entries(ours) == ["a", "b"]
        assert limits(ours.port) == {("alice", 1000), (None, 2000)}
        add(ours, "c")
        limit(ours.port, None, None)
        limit(ours.port, "bob", 3000)
    finally:
        ours.stop()
    segment = max((log / "__cluster_metadata-0").glob("*.log"))
    said = kafka_tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(segment))
    assert '"type":"ACCESS_CONTROL_ENTRY_RECORD"' in said and '"resourceName":"c"' in said
    assert '"type":"CLIENT_QUOTA_RECORD"' in said and '"remove":true' in said

    kafka.start()
    try:
        assert entries(kafka) == ["a", "b", "c"]
        assert limits(kafka.port) == {("alice", 1000), ("bob", 3000)}
    finally:
        kafka.stop()
