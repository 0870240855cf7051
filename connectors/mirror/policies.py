"""What topics of another cluster are called here (KIP-382, KIP-690, KIP-1074)."""

from __future__ import annotations

from typing import Final

__all__ = ["POLICIES", "DefaultReplicationPolicy", "IdentityReplicationPolicy"]

_HEARTBEATS: Final = "heartbeats"


class DefaultReplicationPolicy:
    """The topic ``orders`` of cluster ``west`` is ``west.orders`` elsewhere."""

    def __init__(self, *, separator: str, internal_separator: str, source: str) -> None:
        """``internal_separator`` stands in the names of Mirror's own topics; ``source`` is the source cluster's alias."""
        self._separator, self._source = separator, source
        self._internal = internal_separator

    def remote_topic(self, alias: str, topic: str) -> str:
        """What a topic of the cluster is called where it is mirrored."""
        return f"{alias}{self._separator}{topic}"

    def source_of(self, topic: str) -> str | None:
        """The cluster that a topic was mirrored from; None where it was not. With an empty separator it is the first letter, as
        in the original, which splits by it."""
        if not self._separator:
            return topic[0] if len(topic) > 1 else None
        source, separator, rest = topic.partition(self._separator)
        return source if separator and rest.replace(self._separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        """What a mirrored topic is called in the cluster it came from; None where it is none."""
        source = self.source_of(topic)
        return None if source is None else topic[len(source) + len(self._separator) :]

    def original_topic(self, topic: str) -> str:
        """What it was called where it was first written."""
        upstream = self.upstream_topic(topic)
        while upstream is not None and upstream != topic:
            topic, upstream = upstream, self.upstream_topic(upstream)
        return topic

    heartbeats_topic: Final = _HEARTBEATS

    def offset_syncs_topic(self, alias: str) -> str:
        return f"mm2-offset-syncs{self._internal}{alias}{self._internal}internal"

    def checkpoints_topic(self, alias: str) -> str:
        return f"{alias}{self._internal}checkpoints{self._internal}internal"

    def is_heartbeats(self, topic: str) -> bool:
        return self.original_topic(topic) == _HEARTBEATS

    def is_internal(self, topic: str) -> bool:
        """Whether it is Kafka's or Mirror's own and so never mirrored."""
        is_mirror_maker = topic.startswith("mm2") and topic.endswith(f"{self._internal}internal")
        checkpoints = topic.endswith(f"{self._internal}checkpoints{self._internal}internal")
        return is_mirror_maker or checkpoints or topic.startswith(("__", "."))


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Topics keep their names, heartbeats excepted. Nothing then shows a cycle: there must be none."""

    def remote_topic(self, alias: str, topic: str) -> str:
        return super().remote_topic(alias, topic) if topic.endswith(_HEARTBEATS) else topic

    def source_of(self, topic: str) -> str | None:
        return super().source_of(topic) if topic.endswith(_HEARTBEATS) else self._source

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if topic.endswith(_HEARTBEATS) else topic


POLICIES: Final[dict[str, type[DefaultReplicationPolicy]]] = {
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy": DefaultReplicationPolicy,
    "org.apache.kafka.connect.mirror.IdentityReplicationPolicy": IdentityReplicationPolicy,
}
