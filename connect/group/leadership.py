"""The leader's duties: it rotates the session key, and keeps exclusive access to the config topic."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from broker.client.errors import InvalidProducerEpoch, ProducerFenced
from connect.errors import Conflict
from connect.group.protocol import Protocol
from connect.group.session_keys import new_key, same_kind
from connect.stores import ConfigStore
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from broker.client.fenced import FencedWriter
    from connect.config.group import GroupConfig
    from connect.group.membership import Membership
    from connect.stores.topic import Entry

__all__ = ["FencingLeaderWriter", "Leadership"]

logger = get_logger(__name__)

_RETRY_S: Final = 1.0
_NOT_WRITTEN: Final = (
    "Failed to write to config topic; this may be due to a transient error and the request can be safely retried"
)


class Leadership:
    """``lead`` is called in each generation that this worker leads."""

    def __init__(self, config: GroupConfig, membership: Membership, configs: ConfigStore) -> None:
        self._config, self._membership, self._configs = config, membership, configs
        self.writer: FencingLeaderWriter | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def lead(self) -> None:
        if self.writer is not None:
            await self.writer.claim()
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.create_task(self._keep_key(), name="keep session key")

    async def stop(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)

    async def _keep_key(self) -> None:
        """Create a new session key when there is none, or the last one is too old or of another kind than configured."""
        while self._membership.is_leader and self._membership.protocol is Protocol.SESSIONED:
            pause_s = self._due_in_s()
            if pause_s <= 0:
                pause_s = _RETRY_S
                try:
                    now_ms = int(time.time() * 1000)
                    key = new_key(self._config.key_algorithm, self._config.key_size, now_ms)
                    await self._configs.put_session_key(key)
                except TidegateError as error:
                    logger.warning("cannot write a new session key; trying again", error=str(error))
            await asyncio.sleep(pause_s)

    def _due_in_s(self) -> float:
        key = self._configs.session_key
        if key is None or not same_kind(key, self._config.key_algorithm, self._config.key_size):
            return 0
        if self._config.key_ttl_ms == 0:
            return 3600
        return (key.created_ms + self._config.key_ttl_ms) / 1000 - time.time()


class FencingLeaderWriter:
    """A LeaderWriter whose writes fence earlier leaders (``exactly.once.source.support``)."""

    def __init__(self, writer: FencedWriter, leads: Callable[[], bool]) -> None:
        self._writer, self._leads = writer, leads
        self._turn = asyncio.Lock()
        self._claimed = False

    async def claim(self) -> None:
        """Become the only writer; if that fails, the next write tries again."""
        async with self._turn:
            await self._claim()

    async def _claim(self) -> None:
        try:
            await self._writer.claim()
            self._claimed = True
        except TidegateError as error:
            self._claimed = False
            logger.warning("cannot claim the config topic as its leader", error=str(error))

    async def write(self, topic: str, entries: Sequence[Entry]) -> None:
        """Raises Conflict if another leader has claimed the topic, or it can't be claimed now."""
        async with self._turn:
            if not self._claimed and self._leads():
                await self._claim()
            if not self._claimed:
                raise Conflict(_NOT_WRITTEN)
            try:
                await self._writer.write(entries)
            except (ProducerFenced, InvalidProducerEpoch) as error:
                self._claimed = False
                raise Conflict(_NOT_WRITTEN) from error
            except TidegateError:
                self._claimed = False
                raise
