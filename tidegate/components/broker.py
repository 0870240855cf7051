"""The embedded broker."""

from __future__ import annotations

from typing import Final

from tidegate.components.component import Assembly, Component, Face

__all__ = ["BROKER", "KAFKA", "METRICS"]

KAFKA: Final = Face("broker", "127.0.0.1:9092")
METRICS: Final = Face("broker-metrics", "127.0.0.1:9404")


def _properties(assembly: Assembly) -> dict[str, str]:
    return _security(assembly) | {
        "log.dirs": str(assembly.data / "broker"),
        "metrics.listen": assembly.listening[METRICS.name],
        "group.initial.rebalance.delay.ms": "0",  # as in Kafka's sample properties for one machine
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.num.partitions": "8",  # created at the first start, when the registry claims its log
    }


def _security(assembly: Assembly) -> dict[str, str]:
    address, security = assembly.listening[KAFKA.name], assembly.security
    if security is None:
        return {"listeners": f"PLAINTEXT://{address}"}
    return {
        "listeners": f"SASL_SSL://{address}",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256",
        "users.file": str(security.users_file),
        "ssl.keystore.reload": "true",
        "metrics.tls": "true",
        **security.tls_server,
    }


BROKER: Final = Component(
    "broker", "broker.server:BrokerServer", "broker.config:BrokerConfig", (KAFKA, METRICS), _properties
)
