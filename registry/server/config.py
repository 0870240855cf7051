"""The registry's configuration keys, under Confluent's names where Confluent has them."""

from __future__ import annotations

from registry.formats.compatibility import Level
from registry.log.cluster.config import ClusterConfig
from registry.server.security.config import SecurityConfig
from tidegate.kit.config import KeyType, at_least, config, family, key, non_empty, one_of

__all__ = ["RegistryConfig"]


@config
class RegistryConfig(SecurityConfig, ClusterConfig):
    """One registry server."""

    bootstrap_servers: str = key(
        "kafkastore.bootstrap.servers",
        default="127.0.0.1:9092",
        check=non_empty,
        doc="Kafka brokers that hold the schema log, as host:port, separated by commas.",
        importance="high",
    )
    client_properties: dict[str, str] = family(
        "kafkastore.", doc="Any Kafka client setting for the connection, such as kafkastore.security.protocol."
    )
    topic: str = key(
        "kafkastore.topic",
        default="_schemas",
        check=non_empty,
        doc="The topic that is the schema log.",
        importance="high",
    )
    replication_factor: int = key(
        "kafkastore.topic.replication.factor",
        default=3,
        type=KeyType.INT,
        check=at_least(1),
        doc="Replicas of the schema log when it is created; fewer, with a warning, where there are fewer brokers.",
    )
    timeout_ms: int = key(
        "kafkastore.timeout.ms",
        default=10_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a write may wait for the schema log, in milliseconds.",
    )
    compatibility_level: str = key(
        "schema.compatibility.level",
        default="backward",
        check=one_of(*(level.value.lower() for level in Level), ignore_case=True),
        aliases=("avro.compatibility.level",),
        doc="The compatibility level of subjects that have none of their own, until a global one is set.",
        importance="high",
    )
    mode_mutability: bool = key("mode.mutability", default=True, doc="Whether modes may be changed.", importance="low")

    @property
    def default_level(self) -> Level:
        return Level[self.compatibility_level.upper()]
