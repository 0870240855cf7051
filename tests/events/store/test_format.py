"""The number of the format in the topic of the events service's state: written by the first server, checked by each."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from events.errors import LaterFormat
from events.server.service import EventsServer
from events.store.state import FORMAT, STATE_TOPIC
from tests.support.events import MemoryLog, MemorySchemas, events_config


def test_a_server_refuses_the_state_of_a_later_release_and_takes_that_of_its_own(tmp_path: Path) -> None:
    async def started(log: MemoryLog) -> None:
        server = EventsServer(events_config(tmp_path), event_log=log, schemas=MemorySchemas())
        try:
            await server.start()
        finally:
            await server.stop()

    async def twice_and_later() -> None:
        log = MemoryLog()
        for _ in range(2):
            await started(log)
        assert [(r.key, r.value) for r in log.records(STATE_TOPIC)] == [(b"format", str(FORMAT).encode())]
        await log.append(STATE_TOPIC, [(b"format", json.dumps(FORMAT + 1).encode(), 0)])
        with pytest.raises(LaterFormat, match=f"format {FORMAT + 1}, written by a later release.*reads up to {FORMAT}"):
            await started(log)

    asyncio.run(twice_and_later())
