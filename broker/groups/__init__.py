"""Consumer groups: who is in them, what each member reads, how far it has come (Kafka's classic group protocol).

``GroupCoordinator`` decides and speaks plain values (``broker.groups.values``); ``broker.handlers`` translates. It runs
on one thread, takes time from a ``Clock`` and keeps what must last in an ``OffsetsLog``, which is the topic
``__consumer_offsets`` in Kafka's own format.

About to change ...                            read
what a state allows, who may commit            ``group.py``
timers, when a rebalance begins and ends       ``rebalance.py``
what JoinGroup means for whom, static members  ``joining.py``
bytes in ``__consumer_offsets``                ``records.py``, and ``loading.py`` for the way back
which offsets expire                           ``offsets.py``

Invariants: (1) in Stable, exactly the members of the generation whose SyncGroup came or is still awaited are in the
group; (2) every parked request has a timer that ends its wait; (3) the log has a change before a client hears of it;
(4) what ``start`` reads back is what was acknowledged.
"""

from broker.groups.clock import Clock, LoopClock, Timer
from broker.groups.config import GroupConfig
from broker.groups.coordinator import GroupCoordinator
from broker.groups.group_settings import GroupSettings, SettingsOfGroups
from broker.groups.journal import OFFSETS_TOPIC, OffsetsLog, partition_for
from broker.groups.modern.topics import GroupTopic, TopicCatalog
from broker.groups.namespace import GroupType
from broker.groups.values import (
    CommittedOffset,
    DescribedGroup,
    DescribedMember,
    GroupState,
    Joined,
    JoinedMember,
    JoinRequest,
    Leaving,
    Left,
    ListedGroup,
    MemberIdAssigned,
    Synced,
    TopicPartition,
)

__all__ = [
    "OFFSETS_TOPIC",
    "Clock",
    "CommittedOffset",
    "DescribedGroup",
    "DescribedMember",
    "GroupConfig",
    "GroupCoordinator",
    "GroupSettings",
    "GroupState",
    "GroupTopic",
    "GroupType",
    "JoinRequest",
    "Joined",
    "JoinedMember",
    "Leaving",
    "Left",
    "ListedGroup",
    "LoopClock",
    "MemberIdAssigned",
    "OffsetsLog",
    "SettingsOfGroups",
    "Synced",
    "Timer",
    "TopicCatalog",
    "TopicPartition",
    "partition_for",
]
