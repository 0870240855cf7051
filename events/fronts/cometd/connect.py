"""A pending ``/meta/connect``. Ten thousand may wait, so it is an object instead of a task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from events.errors import BusUnavailable
from events.fronts.cometd.client import CometdClient
from events.fronts.cometd.delivery import Deliveries, Need
from events.limits.errors import DeliveryLimitExceeded
from tidegate.kit.logs import get_logger

__all__ = ["Connect"]

logger = get_logger(__name__)

_RETRY_S = 1.0


class Connect:
    """Waits until a client can be answered, then calls ``done`` with its events or the refusal, once, on the event
    loop.

    A client that has disconnected (``lost`` is done), connects again, or has left gets no events: nothing is taken for
    it.
    """

    __slots__ = ("_client", "_deliveries", "_done", "_ended", "_fetching", "_lost", "_timed_out")

    def __init__(
        self,
        client: CometdClient,
        deliveries: Deliveries,
        lost: asyncio.Future[None],
        done: Callable[[list[bytes], DeliveryLimitExceeded | None], None],
    ) -> None:
        self._client, self._deliveries, self._lost, self._done = client, deliveries, lost, done
        self._fetching: asyncio.Task[None] | None = None
        self._ended = self._timed_out = False

    def start(self, wait_s: float, *, gather: bool) -> None:
        """Wait up to ``wait_s`` for the first event. With ``gather`` available events wait for more."""
        client = self._client
        older, client.connect = client.connect, self
        if older is not None:
            older.end()
        client.wake.look = self._look
        self._timed_out = wait_s <= 0
        if gather:
            client.wake.set()
        else:
            self._look()
        if not self._ended:
            self._lost.add_done_callback(self._hang_up)
            if not self._timed_out:
                client.patience.set(wait_s)

    def end(self, events: list[bytes] | None = None, refusal: DeliveryLimitExceeded | None = None) -> None:
        """Answer it, unless it is answered."""
        if self._ended:
            return
        self._ended = True
        client = self._client
        client.patience.clear()
        if client.connect is self:
            client.connect = client.wake.look = None
        self._lost.remove_done_callback(self._hang_up)
        self._done(events or [], refusal)

    def _look(self) -> None:
        if self._client.ended or self._lost.done():
            self.end()
            return
        if self._fetching is not None:
            return
        try:
            messages, need = self._deliveries.take(self._client)
        except DeliveryLimitExceeded as refusal:
            self.end(refusal=refusal)
            return
        except Exception as error:
            logger.exception("cannot show events to a subscriber", error=str(error))
            self.end()
            return
        if need is not None:
            self._fetching = asyncio.create_task(self._fetch(need))
        elif messages or self._timed_out or self._client.ended:
            self.end(messages)

    async def _fetch(self, need: Need) -> None:
        failed = False
        try:
            await need()
        except BusUnavailable as error:
            failed = True
            logger.warning("cannot read events for a subscriber", error=str(error))
        except Exception as error:
            failed = True  # it is retried, and the client is answered in any case
            logger.exception("cannot read events for a subscriber", error=str(error))
        self._fetching = None
        if self._ended:
            return
        if failed and not self._timed_out:
            asyncio.get_running_loop().call_later(_RETRY_S, self._client.wake.now)
        elif failed:
            self.end()
        else:
            self._look()

    def time_out(self) -> None:
        """Answer it with the available events."""
        self._timed_out = True
        self._look()

    def _hang_up(self, _: asyncio.Future[None]) -> None:
        self.end()
