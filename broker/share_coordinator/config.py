"""The configuration keys of the share coordinator (KIP-932), under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from typing import Final

from tidegate.kit.config import KeyType, at_least, between, config, key

__all__ = ["SHARE_STATE_TOPIC", "ShareCoordinatorConfig"]

SHARE_STATE_TOPIC: Final = "__share_group_state"


@config
class ShareCoordinatorConfig:
    """The broker's keys for the state of share groups."""

    share_state_partitions: int = key(
        "share.coordinator.state.topic.num.partitions",
        default=50,
        type=KeyType.INT,
        importance="high",
        check=at_least(1),
        doc="Partitions of `__share_group_state`. It should not change once that topic is there.",
    )
    share_state_segment_bytes: int = key(
        "share.coordinator.state.topic.segment.bytes",
        default=104_857_600,
        type=KeyType.INT,
        check=at_least(1),
        doc="The segment size of `__share_group_state`, in bytes.",
    )
    share_state_compression: int = key(
        "share.coordinator.state.topic.compression.codec",
        default=0,
        type=KeyType.INT,
        check=between(0, 4),
        doc="The codec the state of share groups is written with: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    share_updates_per_snapshot: int = key(
        "share.coordinator.snapshot.update.records.per.snapshot",
        default=500,
        type=KeyType.INT,
        check=between(0, 500),
        doc="How many changes of a share-partition are written down between two snapshots of its whole state.",
    )
    share_prune_interval_ms: int = key(
        "share.coordinator.state.topic.prune.interval.ms",
        default=300_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often records of `__share_group_state` are deleted that newer snapshots stand for, in milliseconds.",
    )
    share_cold_snapshot_interval_ms: int = key(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        default=300_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="A share-partition that was not written for so long gets a new snapshot, so that older records can be deleted.",
    )

    def share_state_topic_configs(self) -> dict[str, str]:
        """The configuration that ``__share_group_state`` is created with."""
        return {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "retention.ms": "-1",
            "segment.bytes": str(self.share_state_segment_bytes),
        }
