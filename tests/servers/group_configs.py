"""Settings of a group, for tests that run against Apache Kafka and against our broker."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.servers.process import wait_until


def set_group_configs(admin: AdminClient, group: str, configs: Mapping[str, str]) -> None:
    """Set keys of a group and wait until the broker shows them; raises KafkaException if they are refused.

    Apache Kafka answers as soon as its controller has written the change. A broker applies it a moment
    later, so a request right after the answer may still meet the old values.
    """
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in configs.items()]
    change = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin.incremental_alter_configs([change])[change].result(60)
    resource = ConfigResource(ResourceType.GROUP, group)

    def shown() -> bool:
        current = admin.describe_configs([resource])[resource].result(60)
        return all(current[key].value == value for key, value in configs.items())

    wait_until(shown, f"group {group} shows {dict(configs)}")
