"""The schema registry."""

from __future__ import annotations

from typing import Final

from tidegate.components.component import Assembly, Component, Face

__all__ = ["REGISTRY", "REST"]

REST: Final = Face("registry", "127.0.0.1:8081", is_http=True)


def _properties(assembly: Assembly) -> dict[str, str]:
    made = {
        "listeners": assembly.url(REST),
        "kafkastore.bootstrap.servers": assembly.bootstrap_servers,
    }
    if assembly.security is not None:
        made |= assembly.security.tls_server
        made |= {"ssl.keystore.reload": "true", "users.file": str(assembly.security.users_file)}
    if assembly.has_broker:  # one replica on purpose, without a warning
        made["kafkastore.topic.replication.factor"] = "1"
    return made | {f"kafkastore.{key}": value for key, value in assembly.kafka_client.items()}


REGISTRY: Final = Component(
    "registry", "registry.server.service:RegistryServer", "registry.server.config:RegistryConfig", (REST,), _properties
)
