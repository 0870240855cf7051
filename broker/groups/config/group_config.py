"""The configuration keys of the group coordinator, under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Iterator

from broker.groups.config.consumer import ConsumerGroupConfig
from broker.groups.config.share import ShareGroupConfig
from broker.groups.config.streams import StreamsGroupConfig
from tidegate.kit.config import KeyType, at_least, between, config, key, one_of
from tidegate.kit.errors import Problem

__all__ = ["GroupConfig"]

_INT_MAX = (1 << 31) - 1
_KNOWN = one_of("classic", "consumer", "streams", "share", ignore_case=True)


def _protocols(names: list[str]) -> str | None:
    if "classic" not in map(str.lower, names):
        return "Disabling the 'classic' protocol is not supported"
    return _KNOWN(names)


@config
class GroupConfig(ConsumerGroupConfig, ShareGroupConfig, StreamsGroupConfig):
    """The broker's keys for groups and committed offsets."""

    min_session_timeout_ms: int = key(
        "group.min.session.timeout.ms",
        default=6_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The shortest session timeout a member may ask for, in milliseconds. Shorter ones find failed members "
        "sooner and cost more heartbeats.",
    )
    max_session_timeout_ms: int = key(
        "group.max.session.timeout.ms",
        default=1_800_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The longest session timeout a member may ask for, in milliseconds.",
    )
    initial_rebalance_delay_ms: int = key(
        "group.initial.rebalance.delay.ms",
        default=3_000,
        type=KeyType.INT,
        check=at_least(0),
        doc="How long the first rebalance of an empty group waits for more members, in milliseconds. Each newcomer "
        "extends the wait by as much, up to the longest rebalance timeout among the members.",
    )
    max_size: int = key(
        "group.max.size",
        default=_INT_MAX,
        type=KeyType.INT,
        check=at_least(1),
        doc="How many members a group may have.",
    )
    offset_metadata_max_bytes: int = key(
        "offset.metadata.max.bytes",
        default=4_096,
        type=KeyType.INT,
        check=at_least(0),
        doc="How long the text committed beside an offset may be.",
    )
    retention_minutes: int = key(
        "offsets.retention.minutes",
        default=7 * 24 * 60,
        type=KeyType.INT,
        importance="high",
        check=at_least(1),
        doc="When committed offsets are dropped: this many minutes after their group lost its last member, or, for "
        "topics the group does not subscribe to and for consumers without a group, after their last commit.",
    )
    retention_check_interval_ms: int = key(
        "offsets.retention.check.interval.ms",
        default=600_000,
        check=at_least(1),
        doc="How often expired offsets are looked for, in milliseconds.",
    )
    offsets_topic_partitions: int = key(
        "offsets.topic.num.partitions",
        default=50,
        type=KeyType.INT,
        importance="high",
        check=at_least(1),
        doc="How many partitions __consumer_offsets is created with. Do not change it afterwards: groups would be "
        "looked for in other partitions than those they are stored in.",
    )
    offsets_topic_segment_bytes: int = key(
        "offsets.topic.segment.bytes",
        default=100 * 1024 * 1024,
        type=KeyType.INT,
        importance="high",
        check=at_least(1),
        doc="Segment size of __consumer_offsets; small ones are compacted and loaded sooner.",
    )

    offsets_topic_compression: int = key(
        "offsets.topic.compression.codec",
        default=0,
        type=KeyType.INT,
        check=between(0, 4),
        doc="The codec committed offsets and groups are written with: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    rebalance_protocols: list[str] = key(
        "group.coordinator.rebalance.protocols",
        default=["classic", "consumer", "streams"],
        check=_protocols,
        doc="The group protocols that are served, `classic` always among them; `share` is by the feature share.version alone.",
    )

    def offsets_topic_configs(self) -> dict[str, str]:
        """The topic configuration that __consumer_offsets is created with."""
        return {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(self.offsets_topic_segment_bytes),
        }

    def serves(self, protocol: str) -> bool:
        """Whether members may use this group protocol (lower case)."""
        return protocol in map(str.lower, self.rebalance_protocols)

    def problems(self) -> Iterator[Problem]:
        yield from ConsumerGroupConfig.problems(self)
        yield from ShareGroupConfig.problems(self)
        yield from StreamsGroupConfig.problems(self)
