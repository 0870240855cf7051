"""The limits of a service: configured maximums and current usage. The counts survive a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from events.config import EventsConfig
from events.limits.allowance import Allowance
from events.limits.errors import TooManyClients
from tidegate.kit.files import write_whole
from tidegate.kit.logs import get_logger

__all__ = ["Limits"]

logger = get_logger(__name__)

_HOUR_MS: Final = 3600 * 1000
_DAY_MS: Final = 24 * _HOUR_MS
_SAVE_S: Final = 60.0


class Limits:
    """The counts of one server. ``start`` saves them every minute, ``stop`` once more."""

    def __init__(self, config: EventsConfig, clock_ms: Callable[[], int]) -> None:
        self.published = Allowance(config.hourly_published, _HOUR_MS, clock_ms)
        self.delivered = Allowance(config.daily_delivered, _DAY_MS, clock_ms)
        self.requests = Allowance(config.daily_requests, _DAY_MS, clock_ms)
        self.max_event_bytes = config.max_event_bytes
        self.max_sessions, self.max_streams = config.max_sessions, config.max_streams
        self._file = config.data_path / "usage.json"
        self._by_name = {
            "publishedHourly": self.published,
            "deliveredDaily": self.delivered,
            "requestsDaily": self.requests,
        }
        self._task: asyncio.Task[None] | None = None
        _load(self._file, self._by_name)

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name="event limits")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._save()

    def shown(self, sessions: int) -> dict[str, dict[str, int]]:
        """The content of ``/limits``; ``sessions`` is the number of open CometD sessions."""
        clients = self.max_sessions, max(0, self.max_sessions - sessions)
        limits = {
            "DailyApiRequests": self.requests.shown,
            "DailyDeliveredPlatformEvents": self.delivered.shown,
            "DurableStreamingApiConcurrentClients": clients,
            "HourlyPublishedPlatformEvents": self.published.shown,
            "StreamingApiConcurrentClients": clients,
        }
        return {name: {"Max": most, "Remaining": left} for name, (most, left) in limits.items()}

    def check_streams(self, streams: int) -> None:
        """Raises TooManyClients if ``streams`` Pub/Sub streams are the maximum."""
        if 0 <= self.max_streams <= streams:
            raise TooManyClients(self.max_streams)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_SAVE_S)
            self._save()

    def _save(self) -> None:
        try:
            write_whole(self._file, json.dumps({name: allowance.dump() for name, allowance in self._by_name.items()}))
        except OSError as error:
            logger.warning("the counts of the limits cannot be kept", file=str(self._file), reason=str(error))


def _load(path: Path, by_name: dict[str, Allowance]) -> None:
    """Load counts. A damaged file counts as missing: counting starts anew."""
    try:
        state = json.loads(path.read_text())
        for name, allowance in by_name.items():
            allowance.load({str(part): int(count) for part, count in state.get(name, {}).items()})
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, AttributeError) as error:
        logger.warning("the counts of the limits cannot be read; they begin anew", file=str(path), reason=str(error))
