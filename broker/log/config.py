"""The configuration of one log: Kafka's topic keys with Kafka's names and defaults (TopicConfig, LogConfig of 4.x)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

from broker.log.inspection import Rules
from broker.protocol.compression import Codec
from tidegate.kit.config import KeyType, at_least, between, config, key, one_of
from tidegate.kit.errors import Problem

__all__ = ["BROKER_SYNONYMS", "NO_COMPACTION_LAG", "LogConfig", "topic_defaults"]

_DAY_MS: Final = 24 * 60 * 60 * 1000
_LONG_MAX: Final = 2**63 - 1
NO_COMPACTION_LAG: Final = _LONG_MAX
"""The ``max.compaction.lag.ms`` that disables compaction by age."""


@config
class LogConfig:
    """The configuration of a topic's logs. Keys about replicas are stored and shown but have no effect on one node."""

    cleanup_policy: list[str] = key(
        "cleanup.policy",
        default=["delete"],
        check=one_of("compact", "delete"),
        doc="What happens to old segments: `delete` drops them by age and size, `compact` keeps the last record of each key, "
        "both may be given.",
    )
    compression_type: str = key(
        "compression.type",
        default="producer",
        check=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        doc="The codec records are stored with; `producer` leaves batches as they came.",
    )
    compression_gzip_level: int = key(
        "compression.gzip.level",
        default=-1,
        type=KeyType.INT,
        check=between(-1, 9),
        doc="Level when compression.type is gzip.",
    )
    compression_lz4_level: int = key(
        "compression.lz4.level",
        default=9,
        type=KeyType.INT,
        check=between(1, 17),
        doc="Level when compression.type is lz4.",
    )
    compression_zstd_level: int = key(
        "compression.zstd.level",
        default=3,
        type=KeyType.INT,
        check=between(-131072, 22),
        doc="Level when compression.type is zstd.",
    )
    delete_retention_ms: int = key(
        "delete.retention.ms",
        default=_DAY_MS,
        check=at_least(0),
        doc="How long a compacted log keeps a tombstone after the round of compaction that met it first.",
    )
    file_delete_delay_ms: int = key(
        "file.delete.delay.ms",
        default=60_000,
        check=at_least(0),
        doc="How long the files of a deleted segment or topic stay, under another name, before their space is given back.",
    )
    flush_messages: int = key(
        "flush.messages",
        default=_LONG_MAX,
        check=at_least(1),
        doc="Flush to disk after this many records; left large, flush.ms and acks=all decide.",
    )
    flush_ms: int = key(
        "flush.ms",
        default=_LONG_MAX,
        check=at_least(0),
        doc="Longest time in ms a record may wait to be flushed to disk.",
    )
    index_interval_bytes: int = key(
        "index.interval.bytes",
        default=4096,
        type=KeyType.INT,
        check=at_least(0),
        doc="About how many bytes of records lie between two entries of the offset index.",
    )
    max_compaction_lag_ms: int = key(
        "max.compaction.lag.ms",
        default=_LONG_MAX,
        check=at_least(1),
        doc="Compact a log whose oldest dirty record is older than this, however little is dirty.",
    )
    max_message_bytes: int = key(
        "max.message.bytes",
        default=1024 * 1024 + 12,
        type=KeyType.INT,
        check=at_least(0),
        doc="The largest record batch accepted, in bytes as sent (compressed, if it is).",
    )
    message_timestamp_after_max_ms: int = key(
        "message.timestamp.after.max.ms",
        default=3_600_000,
        check=at_least(0),
        doc="How far a batch's largest timestamp may lie after the broker's clock.",
    )
    message_timestamp_before_max_ms: int = key(
        "message.timestamp.before.max.ms",
        default=_LONG_MAX,
        check=at_least(0),
        doc="How far a batch's first timestamp may lie before the broker's clock.",
    )
    message_timestamp_type: str = key(
        "message.timestamp.type",
        default="CreateTime",
        check=one_of("CreateTime", "LogAppendTime"),
        doc="Whether records keep their producer's time or get that of the append.",
    )
    min_cleanable_dirty_ratio: float = key(
        "min.cleanable.dirty.ratio",
        default=0.5,
        check=between(0, 1),
        doc="Compact a log when at least this part of its bytes has not been compacted yet.",
    )
    min_compaction_lag_ms: int = key(
        "min.compaction.lag.ms", default=0, check=at_least(0), doc="Records younger than this are not compacted."
    )
    min_insync_replicas: int = key(
        "min.insync.replicas",
        default=1,
        type=KeyType.INT,
        check=at_least(1),
        doc="With acks=all, how many replicas must have a record; more than one can't be met by a single node.",
    )
    preallocate: bool = key(
        "preallocate", default=False, doc="Take the space of a whole segment on the disk when the segment begins."
    )
    retention_bytes: int = key(
        "retention.bytes", default=-1, doc="Bytes a partition may have before its oldest segments go; -1 is no limit."
    )
    retention_ms: int = key(
        "retention.ms", default=7 * _DAY_MS, check=at_least(-1), doc="Age in ms at which a segment goes; -1 is never."
    )
    segment_bytes: int = key(
        "segment.bytes",
        default=1024 * 1024 * 1024,
        type=KeyType.INT,
        check=at_least(1024 * 1024),
        doc="Size of a segment file in bytes.",
    )
    segment_index_bytes: int = key(
        "segment.index.bytes",
        default=10 * 1024 * 1024,
        type=KeyType.INT,
        check=at_least(4),
        doc="Size at which an offset index is full and its segment ends.",
    )
    segment_jitter_ms: int = key(
        "segment.jitter.ms", default=0, check=at_least(0), doc="Largest random time by which a segment ends early."
    )
    segment_ms: int = key(
        "segment.ms",
        default=7 * _DAY_MS,
        check=at_least(1),
        doc="Age in ms at which a segment ends though it is not full.",
    )
    unclean_leader_election_enable: bool = key(
        "unclean.leader.election.enable", default=False, doc="Accepted for compatibility: a single node elects nobody."
    )
    leader_throttled_replicas: list[str] = key(
        "leader.replication.throttled.replicas",
        default=[],
        doc="Accepted for compatibility: a single node replicates nothing that could be held back.",
    )
    follower_throttled_replicas: list[str] = key(
        "follower.replication.throttled.replicas",
        default=[],
        doc="Accepted for compatibility: a single node replicates nothing that could be held back.",
    )
    remote_storage_enable: bool = key(
        "remote.storage.enable",
        default=False,
        check=lambda on: "Tiered storage is not served here" if on else None,
        doc="Whether old segments go to tiered storage, which is not served here.",
    )
    remote_copy_disable: bool = key(
        "remote.log.copy.disable", default=False, doc="Accepted for compatibility: there is no tiered storage."
    )
    remote_delete_on_disable: bool = key(
        "remote.log.delete.on.disable", default=False, doc="Accepted for compatibility: there is no tiered storage."
    )
    local_retention_ms: int = key(
        "local.retention.ms",
        default=-2,
        check=at_least(-2),
        doc="Accepted for compatibility: there is no tiered storage.",
    )
    local_retention_bytes: int = key(
        "local.retention.bytes",
        default=-2,
        check=at_least(-2),
        doc="Accepted for compatibility: there is no tiered storage.",
    )
    acks_all_durability: str = key(
        "acks.all.durability",
        default="disk",
        check=one_of("disk", "page-cache"),
        doc="What an answer to acks=all means: the records are on disk (flushed), or in the operating system's page cache. "
        "A key of Tidegate's own.",
    )

    def problems(self) -> Iterator[Problem]:
        if not self.cleanup_policy:
            yield Problem(
                "cleanup.policy", "Invalid value  for configuration cleanup.policy: must name compact, delete or both"
            )

    @cached_property
    def compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @cached_property
    def record_rules(self) -> Rules | None:
        """The checks on records that an append requires; None if headers are enough, as by default."""
        if not self.compacted and self.compression_type == "producer":
            return None
        codec = None
        if self.compression_type != "producer":
            codec = Codec.NONE if self.compression_type == "uncompressed" else Codec[self.compression_type.upper()]
        level = {
            Codec.GZIP: None if self.compression_gzip_level < 0 else self.compression_gzip_level,
            Codec.LZ4: self.compression_lz4_level,
            Codec.ZSTD: self.compression_zstd_level,
        }.get(codec or Codec.NONE)
        return Rules(self.compacted, codec, level, self.max_message_bytes)

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy


BROKER_SYNONYMS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", 3_600_000)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "acks.all.durability": (("acks.all.durability", 1),),
}
"""The broker keys that set a topic key's default, with the factor of their unit. The first one that is set wins.

Source: ServerTopicConfigSynonyms.
"""


def topic_defaults(broker_settings: Mapping[str, str]) -> dict[str, str]:
    """The topic keys whose defaults a broker's settings (text by key) set."""
    defaults = {}
    for name, synonyms in BROKER_SYNONYMS.items():
        partition = next(((key_, factor) for key_, factor in synonyms if key_ in broker_settings), None)
        if partition is None:
            continue
        value, factor = broker_settings[partition[0]], partition[1]
        defaults[name] = value if factor == 1 else str(max(int(value) * factor, -1))
    return defaults
