"""The embedded broker."""

from __future__ import annotations

from typing import Final

from tidegate.components.component import Assembly, Component, Face

__all__ = ["BROKER", "KAFKA"]

KAFKA: Final = Face("broker", "127.0.0.1:9092")
METRICS: Final = Face("broker-metrics", "127.0.0.1:9404")


def _properties(assembly: Assembly) -> dict[str, str]:
    return {
        "listeners": f"PLAINTEXT://{assembly.listening[KAFKA.name]}",
        "log.dirs": str(assembly.data / "broker"),
        "metrics.listen": assembly.listening[METRICS.name],
        "group.initial.rebalance.delay.ms": "0",  # as in Kafka's own sample properties for one machine
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.num.partitions": "8",  # the registry's claim on its log makes them at the first start
    }


BROKER: Final = Component(
    "broker", "broker.server:BrokerServer", "broker.config:BrokerConfig", (KAFKA, METRICS), _properties
)
