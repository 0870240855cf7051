"""The first connection of producers, consumers and admins when the caller that started it is cancelled."""

from __future__ import annotations

import asyncio
import gc

import pytest

from broker.client import Admin, BatchConsumer, BatchProducer, ClientConfig

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", [Admin, BatchConsumer, BatchProducer])
async def test_a_start_that_is_cancelled_leaves_no_socket_open(config: ClientConfig, kind: type[BatchConsumer]) -> None:
    for turns in range(0, 48, 6):
        starting = asyncio.create_task(kind(config).start())
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        (ended,) = await asyncio.gather(starting, return_exceptions=True)
        if not isinstance(ended, BaseException):
            await ended.stop()
    gc.collect()  # an open socket says so here, which is an error in tests
