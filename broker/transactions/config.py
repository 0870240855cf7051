"""The configuration keys of transactions, under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from tidegate.kit.config import KeyType, at_least, config, key

__all__ = ["TransactionConfig"]


@config
class TransactionConfig:
    """The broker's keys for transactions."""

    transaction_max_timeout_ms: int = key(
        "transaction.max.timeout.ms",
        default=900_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The longest transaction.timeout.ms a producer may ask for, in milliseconds.",
    )
    transactional_id_expiration_ms: int = key(
        "transactional.id.expiration.ms",
        default=604_800_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a transactional id without a transaction is remembered, in milliseconds.",
    )
    transaction_abort_check_interval_ms: int = key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        default=10_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often transactions are looked for that took longer than their producer's transaction.timeout.ms, in "
        "milliseconds; those are aborted.",
    )
    transaction_expiry_check_interval_ms: int = key(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        default=3_600_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often transactional ids are looked for that are past transactional.id.expiration.ms, in milliseconds.",
    )
    transaction_topic_partitions: int = key(
        "transaction.state.log.num.partitions",
        default=50,
        type=KeyType.INT,
        importance="high",
        check=at_least(1),
        doc="How many partitions __transaction_state is created with. Do not change it afterwards: transactional ids would "
        "be looked for in other partitions than those they are stored in.",
    )
    transaction_topic_segment_bytes: int = key(
        "transaction.state.log.segment.bytes",
        default=100 * 1024 * 1024,
        type=KeyType.INT,
        importance="high",
        check=at_least(1_048_576),
        doc="Segment size of __transaction_state; small ones are compacted and loaded sooner.",
    )
    transaction_partition_verification: bool = key(
        "transaction.partition.verification.enable",
        default=True,
        doc="Take records of a transaction only where the coordinator knows that their partition belongs to it. Clients "
        "that take part in `transaction.version` 2 are always held to that.",
    )
    producer_id_expiration_ms: int = key(
        "producer.id.expiration.ms",
        default=86_400_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long partitions remember a producer that writes nothing, in milliseconds; what it sends again after that is "
        "not known to be a repetition.",
        importance="low",
    )
    two_phase_commit_enable: bool = key(
        "transaction.two.phase.commit.enable",
        default=False,
        doc="Accepted for the sake of Kafka's configuration files: the requests that use it (KIP-939) are not yet stable in "
        "Kafka, and not served.",
        importance="low",
    )

    def transaction_topic_configs(self) -> dict[str, str]:
        """The topic configuration __transaction_state is created with."""
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": str(self.transaction_topic_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
