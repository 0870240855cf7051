"""Logs one line for each slow request, but at most a few per second."""

from __future__ import annotations

from typing import Final

from broker.api.parts import Common
from broker.api.routes import Context
from broker.metrics.requests import Times
from broker.protocol.api import ApiKey
from tidegate.kit.logs import get_logger

__all__ = ["SlowRequests"]

logger = get_logger(__name__)

_MOST_A_SECOND: Final = 10
_WAITING_IS_NORMAL: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
"""APIs that wait for other clients: only the rest of their time counts."""


class SlowRequests:
    """``above_s`` is ``slow.request.log.threshold.ms`` in seconds; below 0 nothing is logged."""

    def __init__(self, above_s: float) -> None:
        self.above_s = above_s if above_s >= 0 else float("inf")
        self._second = 0
        self._logged = 0
        self.count = 0
        """Number of slow requests, logged or not."""

    def look(self, key: ApiKey, context: Context[Common], times: Times, sizes: tuple[int, int], now: float) -> None:
        """Log a request if it was slow.

        ``sizes`` are those of request and answer in bytes; ``now`` is any clock's seconds.
        """
        took = times.total - times.remote if key in _WAITING_IS_NORMAL else times.total
        if took < self.above_s:
            return
        self.count += 1
        if int(now) != self._second:
            if self._logged > _MOST_A_SECOND:
                logger.warning("more slow requests than are logged", count=self._logged - _MOST_A_SECOND)
            self._second, self._logged = int(now), 0
        self._logged += 1
        if self._logged > _MOST_A_SECOND:
            return
        logger.warning(
            "slow request",
            api=key.title,
            version=context.version,
            client=context.client_host,
            client_id=context.client_id,
            principal=str(context.principal),
            total_ms=_ms(times.total),
            request_queue_ms=_ms(times.request_queue),
            local_ms=_ms(times.local),
            remote_ms=_ms(times.remote),
            response_queue_ms=_ms(times.response_queue),
            response_send_ms=_ms(times.response_send),
            throttle_ms=_ms(times.throttle),
            request_bytes=sizes[0],
            response_bytes=sizes[1],
        )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
