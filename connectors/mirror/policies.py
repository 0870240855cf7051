"""How topics of another cluster are named here (KIP-382, KIP-690, KIP-1074)."""

from __future__ import annotations

from typing import Final

__all__ = ["POLICIES", "DefaultReplicationPolicy", "IdentityReplicationPolicy"]

_HEARTBEATS: Final = "heartbeats"


class DefaultReplicationPolicy:
    """The topic ``orders`` of cluster ``west`` becomes ``west.orders`` in other clusters."""

    def __init__(self, *, separator: str, internal_separator: str, source: str) -> None:
        """``internal_separator`` is used in the names of Mirror's own topics; ``source`` is the source cluster's alias."""
        self._separator, self._source = separator, source
        self._internal = internal_separator

    def remote_topic(self, alias: str, topic: str) -> str:
        """The name of a cluster's topic where it is mirrored."""
        return f"{alias}{self._separator}{topic}"

    def source_of(self, topic: str) -> str | None:
        """The cluster that a topic was mirrored from; None where it was not mirrored.

        With an empty separator it is the first letter, as in the original, which splits the name by the separator.
        """
        if not self._separator:
            return topic[0] if len(topic) > 1 else None
        source, separator, rest = topic.partition(self._separator)
        return source if separator and rest.replace(self._separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        """The name of a mirrored topic in the cluster it came from; None where it was not mirrored."""
        source = self.source_of(topic)
        return None if source is None else topic[len(source) + len(self._separator) :]

    def original_topic(self, topic: str) -> str:
        """The name of the topic in the cluster where it was first written."""
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
        """Whether a topic belongs to Kafka or Mirror and is therefore never mirrored."""
        is_mirror_maker = topic.startswith("mm2") and topic.endswith(f"{self._internal}internal")
        checkpoints = topic.endswith(f"{self._internal}checkpoints{self._internal}internal")
        return is_mirror_maker or checkpoints or topic.startswith(("__", "."))


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Topics keep their names, except heartbeats. Cycles cannot be detected with it, so there must be none."""

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
