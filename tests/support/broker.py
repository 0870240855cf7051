"""Our broker on an event loop in a thread, for tests that inspect it; ``tests.servers.tidegate_broker`` runs it as a
process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from broker.api.connection import Promise
from broker.server import BrokerServer, serve
from tests.support.leftovers import left

__all__ = ["BrokerThread", "kept", "settings"]

T = TypeVar("T")


def settings(directory: Path, **overrides: str) -> dict[str, str]:
    """Broker properties that make tests quick; given keys have ``_`` for ``.``."""
    return {
        "log.dirs": str(directory),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "metrics.listen": "127.0.0.1:0",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        **{name.replace("_", "."): value for name, value in overrides.items()},
    }


class BrokerThread:
    """A broker on its own event loop. Tests may inspect ``server``."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="broker", daemon=True)
        self.server: BrokerServer
        self.addresses: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        self.server = serve(self._properties)
        self.addresses = self._run(self.server.start())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self.server.stop())
        left(Path(self._properties["log.dirs"]))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    @property
    def bootstrap_servers(self) -> str:
        return self.addresses["broker"]

    @property
    def port(self) -> int:
        return int(self.bootstrap_servers.rpartition(":")[2])


async def kept(promise: Promise) -> Any:
    """The result of a promise, once it is done."""
    future = asyncio.get_running_loop().create_future()
    promise.add_done_callback(future.set_result)
    await future
    return promise.result()
