"""The worker's state: three compacted topics in Kafka Connect's own record formats."""

from connect.stores.configs import ConfigStore, RestartRequest, SessionKey, TargetState
from connect.stores.offsets import OffsetStore, SourceOffset
from connect.stores.statuses import State, Status, StatusStore
from connect.stores.topic import CompactedTopic, StoreLog, TopicClients

__all__ = [
    "CompactedTopic",
    "ConfigStore",
    "OffsetStore",
    "RestartRequest",
    "SessionKey",
    "SourceOffset",
    "State",
    "Status",
    "StatusStore",
    "StoreLog",
    "TargetState",
    "TopicClients",
]
