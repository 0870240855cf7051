"""Creates topics: the worker's own, those of sources, dead letter queues."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from broker.client import Admin, NewTopic

__all__ = ["create_topic"]

logger = get_logger(__name__)


async def create_topic(admin: Admin, topic: NewTopic, *, fit: bool) -> bool:
    """Create a topic where it does not exist yet; returns whether it was created.

    With ``fit`` a replication factor above the number of brokers is reduced to it, with a warning; without it the
    broker's InvalidReplicationFactor is raised.
    """
    from broker.client.errors import UnknownTopicOrPartition

    try:
        await admin.describe_topics([topic.name])
    except UnknownTopicOrPartition:
        pass
    else:
        await admin.await_topics([topic.name])  # another worker may have created it just now
        return False
    brokers = len(admin.brokers())
    if fit and topic.replication_factor > brokers > 0:
        logger.warning(
            "replication factor lowered to the number of brokers",
            topic=topic.name,
            wanted=topic.replication_factor,
            brokers=brokers,
        )
        topic = dataclasses.replace(topic, replication_factor=brokers)
    await admin.create_topics([topic], exist_ok=True)
    return True
