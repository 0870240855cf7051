"""Keys for registries that share a log, under Confluent's names."""

from __future__ import annotations

from tidegate.kit.config import KeyType, at_least, config, key, non_empty

__all__ = ["ClusterConfig"]


@config
class ClusterConfig:
    """The election of the registry that writes, and its address for the others."""

    group_id: str = key(
        "schema.registry.group.id",
        default="schema-registry",
        check=non_empty,
        doc="The group of registries over one schema log, of which one is elected to write; shown by /v1/metadata/id.",
    )
    leader_eligible: bool = key(
        "leader.eligibility",
        default=True,
        aliases=("master.eligibility",),
        doc="Whether this registry may be elected. One that may not passes every write on.",
    )
    leader_sticky: bool = key(
        "leader.election.sticky",
        default=True,
        doc="Whether the registry that writes stays the one as long as it is there. Confluent's default is false: then the "
        "least URL among the eligible ones is elected.",
    )
    host_name: str | None = key(
        "host.name",
        default=None,
        doc="The name by which the other registries reach this one; without it that of its listener, or of the machine where "
        "the listener is for all addresses.",
    )
    inter_instance_protocol: str = key(
        "inter.instance.protocol",
        default="http",
        aliases=("schema.registry.inter.instance.protocol",),
        doc="The scheme of the listener to which other registries pass writes on, where inter.instance.listener.name names "
        "none; the first listener where none has it.",
    )
    inter_instance_listener: str = key(
        "inter.instance.listener.name",
        default="",
        doc="The name of the listener to which other registries pass writes on.",
    )
    session_timeout_ms: int = key(
        "kafkagroup.session.timeout.ms",
        default=6_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long the group waits for a sign of life before another registry is elected. Confluent's default is 10000; "
        "brokers allow 6000 and more unless told otherwise.",
    )
    heartbeat_interval_ms: int = key(
        "kafkagroup.heartbeat.interval.ms",
        default=1_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often signs of life are sent, and so how soon an election is heard of. Confluent's default is 3000.",
    )
    rebalance_timeout_ms: int = key(
        "kafkagroup.rebalance.timeout.ms",
        default=10_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long an election waits for registries that are alive to take part. Confluent's default is 300000.",
    )
