"""Groups of every type: their members, the assignments of members, and committed offsets.

``GroupCoordinator`` decides, with plain values; ``broker.handlers`` translates. It runs on one thread, takes time from
a ``Clock`` and stores durable state in a ``StateLog``, the topic ``__consumer_offsets`` in Kafka's own format.

folder                                         content
``classic``                                    groups whose leader assigns (JoinGroup, SyncGroup)
``consumer``, ``share``, ``streams``           groups whose assignments the coordinator computes (KIP-848, KIP-932, KIP-1071)
``modern``                                     the parts shared by these three, and the assignors
``offsets``                                    committed offsets of all types
``config``                                     keys of the broker and of single groups

About to change ...                            read
what a state allows, who may commit            ``classic/group.py``
timers, when a rebalance begins and ends       ``classic/rebalance.py``
handling of JoinGroup, static members          ``classic/joining.py``
bytes in ``__consumer_offsets``                ``records.py``; ``loading.py`` reads them back
which offsets expire                           ``offsets/store.py``

Invariants: (1) in Stable, exactly the members of the generation whose SyncGroup came or is still awaited are in the
group; (2) every parked request has a timer that ends its wait; (3) the log has a change before a client hears of it;
(4) what ``start`` reads back is what was acknowledged.
"""

from broker.groups.classic.values import (
    DescribedGroup,
    DescribedMember,
    GroupState,
    Joined,
    JoinedMember,
    JoinRequest,
    Leaving,
    Left,
    MemberIdAssigned,
    Synced,
)
from broker.groups.config.group_config import GroupConfig
from broker.groups.config.group_settings import GroupSettings, SettingsOfGroups
from broker.groups.coordinator import GroupCoordinator
from broker.groups.modern.topics import GroupTopic, TopicCatalog
from broker.groups.views import ListedGroup

__all__ = [
    "DescribedGroup",
    "DescribedMember",
    "GroupConfig",
    "GroupCoordinator",
    "GroupSettings",
    "GroupState",
    "GroupTopic",
    "JoinRequest",
    "Joined",
    "JoinedMember",
    "Leaving",
    "Left",
    "ListedGroup",
    "MemberIdAssigned",
    "SettingsOfGroups",
    "Synced",
    "TopicCatalog",
]
