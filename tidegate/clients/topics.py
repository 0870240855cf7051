"""An admin client for one question, which topics are internal, and the error of one that does not exist, with the nearest name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from tidegate.kit.config import nearest_name

if TYPE_CHECKING:
    from broker.client import Admin, ClientConfig

__all__ = ["is_internal", "naming_topics", "with_admin"]

T = TypeVar("T")

_OF_CONNECT: Final = frozenset({"connect-configs", "connect-offsets", "connect-status"})
"""The topics of a platform's Connect workers (``config.storage.topic``, ...)."""


def is_internal(topic: str) -> bool:
    """Whether a topic is a component's own: its name begins with _, or it is one of Connect's."""
    return topic.startswith("_") or topic in _OF_CONNECT


@asynccontextmanager
async def naming_topics(admin: Admin, topics: Sequence[str]) -> AsyncIterator[None]:
    """Adds the nearest name to the error of the first of ``topics`` that does not exist."""
    from broker.client.errors import UnknownTopicOrPartition

    try:
        yield
    except UnknownTopicOrPartition as error:
        known = await admin.list_topics(internal=True)
        missing = next((name for name in topics if name not in known), None)
        if missing is None:
            raise
        near = nearest_name(missing, known)
        hint = f"; did you mean {near}?" if near else ""
        raise UnknownTopicOrPartition(
            f"this Kafka has no such topic: {missing}{hint} (`tidegate topics list` lists all)"
        ) from error


def with_admin(config: ClientConfig, work: Callable[[Admin], Awaitable[T]], *, topics: Sequence[str] = ()) -> T:
    """Run ``work`` with an admin client and close it. If one of the ``topics`` is missing, the error names the nearest."""
    from broker.client import Admin

    async def run() -> T:
        async with Admin(config) as admin, naming_topics(admin, topics):
            return await work(admin)

    return asyncio.run(run())
