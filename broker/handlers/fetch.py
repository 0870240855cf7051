"""Fetch: clients read record batches, and wait for more."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from broker.errors import BrokerError, FetchSessionIdNotFound
from broker.handlers.routes import Context, Pending, Routes
from broker.log.partition import PartitionLog
from broker.protocol.api import ApiKey
from broker.protocol.fetch import FetchPartition, FetchRequest, FetchResponse, PartitionFetched

__all__ = ["routes"]

routes = Routes()


@routes.handles(ApiKey.FETCH, versions=range(4, 19))
def fetch(context: Context, request: FetchRequest) -> FetchResponse | Pending:
    """Read record batches of several partitions, waiting up to the time given until there are `min_bytes`.

    Every answer names session 0: clients then ask for all partitions each time, as when Kafka's session cache is full.

    v5 log start offset · v7 sessions · v9 leader epochs · v11 rack · v12 flexible · v13 topic ids · v15-v18 for followers
    """
    if request.session_id != 0:
        raise FetchSessionIdNotFound(f"There is no fetch session {request.session_id}.")
    found = _read_all(context, request)
    missing = request.min_bytes - found.size
    if missing <= 0 or found.failed or request.max_wait_ms <= 0 or not found.partitions:
        return found.response
    waiting = context.broker.partitions.wait(found.partitions, missing_bytes=missing, timeout_ms=request.max_wait_ms)
    return Pending(waiting, lambda _: _read_all(context, request).response)


class _Found(NamedTuple):
    response: FetchResponse
    size: int
    failed: bool
    partitions: list[PartitionLog]


def _read_all(context: Context, request: FetchRequest) -> _Found:
    left = min(request.max_bytes, context.broker.config.fetch_max_bytes)
    size, failed = 0, False
    partitions: list[PartitionLog] = []
    topics: list[tuple[str | uuid.UUID, list[PartitionFetched]]] = []
    for topic, wanted in request.topics:
        results = []
        for one in wanted:
            fetched, partition = _read(context, request, topic, one, left - size, size == 0)
            if partition is None:
                failed = True
            else:
                partitions.append(partition)
            size += fetched.records.size if fetched.records is not None else 0
            results.append(fetched)
        topics.append((topic, results))
    return _Found(FetchResponse(topics), size, failed, partitions)


def _read(
    context: Context, request: FetchRequest, topic: str | uuid.UUID, wanted: FetchPartition, left: int, first: bool
) -> tuple[PartitionFetched, PartitionLog | None]:
    """What one partition gives; no partition beside it where it gives an error."""
    partitions = context.broker.partitions
    partition = None
    try:
        partition = partitions.find(topic, wanted.partition, wanted.current_leader_epoch)
        records = partitions.read(
            partition,
            wanted.fetch_offset,
            min(wanted.max_bytes, max(left, 0)),
            isolation_level=request.isolation_level,
            first=first,
        )
    except BrokerError as error:
        end = (-1, -1, -1) if partition is None else _offsets(partition)
        return PartitionFetched(wanted.partition, error.code, *end), None
    return PartitionFetched(wanted.partition, 0, *_offsets(partition), records), partition


def _offsets(partition: PartitionLog) -> tuple[int, int, int]:
    return partition.log_end_offset, partition.last_stable_offset, partition.log_start_offset
