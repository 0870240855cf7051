"""The configuration keys of the metadata log, under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from tidegate.kit.config import KeyType, at_least, config, key

__all__ = ["MetadataLogConfig"]

_WEEK_MS = 7 * 24 * 60 * 60 * 1000


@config
class MetadataLogConfig:
    """When a snapshot of ``__cluster_metadata-0`` is written, and how long the records that it replaces are kept."""

    snapshot_bytes: int = key(
        "metadata.log.max.record.bytes.between.snapshots",
        default=20 * 1024 * 1024,
        check=at_least(1),
        doc="Write a snapshot of the metadata after this many bytes of records. A start reads the newest one and the records "
        "behind it.",
    )
    snapshot_interval_ms: int = key(
        "metadata.log.max.snapshot.interval.ms",
        default=3_600_000,
        check=at_least(0),
        doc="Write a snapshot of the metadata when records have waited so long for one, in milliseconds; 0: do not look at the time.",
    )
    metadata_segment_bytes: int = key(
        "metadata.log.segment.bytes",
        default=1024 * 1024 * 1024,
        type=KeyType.INT,
        check=at_least(8 * 1024 * 1024),
        doc="Size of a segment file of the metadata log in bytes.",
    )
    metadata_segment_ms: int = key(
        "metadata.log.segment.ms",
        default=_WEEK_MS,
        doc="Age in ms at which a segment of the metadata log ends though it is not full.",
    )
    metadata_retention_bytes: int = key(
        "metadata.max.retention.bytes",
        default=100 * 1024 * 1024,
        doc="Bytes that the metadata log and its snapshots may have before the oldest snapshot and the records in front of "
        "the next one go; -1 is no limit.",
    )
    metadata_retention_ms: int = key(
        "metadata.max.retention.ms",
        default=_WEEK_MS,
        doc="Age in ms at which a snapshot goes, with the records in front of the next one; the newest stays.",
    )
