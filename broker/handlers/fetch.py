"""Fetch: clients read record batches and wait for more."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from broker.api.parts import (
    Common,
    WithArrivals,
    WithConfig,
    WithFetchSessions,
    WithLogs,
    WithPartitions,
    WithTopicMetrics,
)
from broker.api.routes import Context, Pending, Routes
from broker.errors import BrokerError, InvalidFetchSessionEpoch, KafkaStorageError, OffsetOutOfRange
from broker.fetch_sessions import CachedPartition, FetchSession
from broker.log.partition import PartitionLog
from broker.protocol.api import ApiKey
from broker.protocol.fetch import TOPIC_IDS_SINCE, FetchPartition, FetchRequest, FetchResponse, PartitionFetched
from broker.security.access import Operation
from broker.storage.partitions import READ_COMMITTED
from tidegate.kit.logs import get_logger

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithArrivals, WithConfig, WithFetchSessions, WithLogs, WithPartitions, WithTopicMetrics, Protocol):
    """The parts of a broker that these handlers use."""


logger = get_logger(__name__)

_FULL: Final = 0
"""The epoch of a fetch that names all its partitions and asks for a session; -1 does not ask for one."""


@routes.handles(ApiKey.FETCH, versions=range(4, 19))
def fetch(context: Context[_Parts], request: FetchRequest) -> FetchResponse | Pending:
    """Read record batches of several partitions, waiting up to `max_wait_ms` until there are `min_bytes`.

    v5 log start offset · v7 sessions (KIP-227) · v9 leader epochs · v11 rack · v12 flexible · v13 topic ids · v15-v18
    for followers
    """
    sessions = context.broker.fetch_sessions
    if request.session_epoch > _FULL:
        session = sessions.resume(request, uses_topic_ids=context.version >= TOPIC_IDS_SINCE)
        if session is not None:
            return _incremental(context, request, session)
    elif request.session_id != 0:
        sessions.close(request.session_id)
    return _full(context, request)


# A fetch that names all its partitions


def _full(context: Context[_Parts], request: FetchRequest) -> FetchResponse | Pending:
    result = _read_all(context, request)
    missing = min(request.min_bytes, result.most) - result.size
    if missing <= 0 or result.failed or request.max_wait_ms <= 0:
        return _full_answer(context, request, result)
    logs = [log for log in result.logs if log is not None]
    if not logs:
        return _full_answer(context, request, result)
    stuck = _stuck(result) if request.isolation_level == READ_COMMITTED else None
    waiter = context.broker.arrivals.wait(logs, missing_bytes=missing, timeout_ms=request.max_wait_ms, stuck=stuck)
    return Pending(waiter, lambda _: _full_answer(context, request, _read_all(context, request)))


def _full_answer(context: Context[_Parts], request: FetchRequest, read: _ReadAll) -> FetchResponse:
    throttle_ms = _throttle_ms(context, read.size)
    if throttle_ms:
        return FetchResponse(throttle_time_ms=throttle_ms)
    every = itertools.chain.from_iterable(results for _, results in read.topics)
    _count(context, zip(every, read.logs, strict=True))
    if request.session_epoch != _FULL:
        return FetchResponse(read.topics)
    session = context.broker.fetch_sessions.create(len(read.logs), uses_topic_ids=context.version >= TOPIC_IDS_SINCE)
    if session is None:
        return FetchResponse(read.topics)
    session.read_committed = request.isolation_level == READ_COMMITTED
    session.want(request.topics)
    logs = iter(read.logs)
    for topic, results in read.topics:
        for fetched in results:
            cached = session.partition(topic, fetched.partition)
            session.follow(cached, next(logs))
            session.record_result(cached, fetched)
    return FetchResponse(read.topics, session_id=session.id)


class _ReadAll(NamedTuple):
    """The result of a fetch, limited to ``most`` bytes.

    ``logs`` follow the order of the results; None for missing partitions.
    """

    topics: list[tuple[str | uuid.UUID, list[PartitionFetched]]]
    logs: list[PartitionLog | None]
    size: int
    most: int
    failed: bool


def _read_all(context: Context[_Parts], request: FetchRequest) -> _ReadAll:
    left, slices = _most_bytes(context, request), context.broker.logs.open_files.slices_at_once
    size, failed = 0, False
    logs: list[PartitionLog | None] = []
    topics: list[tuple[str | uuid.UUID, list[PartitionFetched]]] = []
    for topic, fetches in request.topics:
        results = []
        refusal = _refusal(context, topic)
        for partition in _distinct(fetches):
            most = left - size if slices else 0
            fetched, log = _read(context, request, topic, partition, most, size == 0, refusal)
            logs.append(log)
            if fetched.diverging is not None or (fetched.error_code and log is not None):
                failed = True
            elif fetched.records is not None:
                size += fetched.records.size
                slices -= 1
            results.append(fetched)
        topics.append((topic, results))
    return _ReadAll(topics, logs, size, left, failed)


def _distinct(fetches: list[FetchPartition]) -> Iterable[FetchPartition]:
    """Of a partition that is named again, the last counts, as in Kafka."""
    by_number = {fetch.partition: fetch for fetch in fetches}
    return fetches if len(by_number) == len(fetches) else by_number.values()


def _stuck(read: _ReadAll) -> dict[PartitionLog, int]:
    """The partitions that an open transaction holds back, with their last stable offsets."""
    results = itertools.chain.from_iterable(results for _, results in read.topics)
    return {
        log: fetched.last_stable_offset
        for log, fetched in zip(read.logs, results, strict=True)
        if log is not None and fetched.last_stable_offset < fetched.high_watermark
    }


# A fetch that continues a session


def _incremental(context: Context[_Parts], request: FetchRequest, session: FetchSession) -> FetchResponse | Pending:
    epoch = session.epoch
    due = _read_due(context, request, session)
    missing = min(request.min_bytes, due.most) - due.size
    if missing <= 0 or due.failed or request.max_wait_ms <= 0 or not session.has_logs:
        return _incremental_answer(context, session, due)
    waiter = context.broker.arrivals.wait((), missing_bytes=missing, timeout_ms=request.max_wait_ms)
    session.waiter = waiter

    def answer(_: None) -> FetchResponse:
        if session.epoch != epoch:
            raise InvalidFetchSessionEpoch(f"Fetch session {session.id} went on while a fetch of it waited.")
        session.waiter = None
        return _incremental_answer(context, session, _read_due(context, request, session))

    return Pending(waiter, answer)


def _incremental_answer(context: Context[_Parts], session: FetchSession, due: _Due) -> FetchResponse:
    throttle_ms = _throttle_ms(context, due.size)
    if throttle_ms:
        return FetchResponse(session_id=session.id, throttle_time_ms=throttle_ms)
    _count(context, ((fetched, cached.log) for cached, fetched in due.results))
    topics: list[tuple[str | uuid.UUID, list[PartitionFetched]]] = []
    for cached, fetched in due.results:
        if session.record_result(cached, fetched):
            if topics and topics[-1][0] == cached.topic:
                topics[-1][1].append(fetched)
            else:
                topics.append((cached.topic, [fetched]))
    return FetchResponse(topics, session_id=session.id)


class _Due(NamedTuple):
    results: list[tuple[CachedPartition, PartitionFetched]]
    size: int
    most: int
    failed: bool


def _read_due(context: Context[_Parts], request: FetchRequest, session: FetchSession) -> _Due:
    """Read the partitions of a session that may have news."""
    left, slices = _most_bytes(context, request), context.broker.logs.open_files.slices_at_once
    size, failed = 0, False
    results: list[tuple[CachedPartition, PartitionFetched]] = []
    for cached in session.due:
        refusal = _refusal(context, cached.topic)
        most = left - size if slices else 0
        fetched, log = _read(context, request, cached.topic, cached.requested, most, size == 0, refusal)
        if log is not cached.log:
            session.follow(cached, log)
        if fetched.diverging is not None or (fetched.error_code and log is not None):
            failed = True
        elif fetched.records is not None:
            size += fetched.records.size
            slices -= 1
        results.append((cached, fetched))
    return _Due(results, size, left, failed)


def _refusal(context: Context[_Parts], topic: str | uuid.UUID) -> BrokerError | None:
    """Why the client may not read a topic."""
    if context.broker.authorizer is not None:
        try:
            context.require_topic(Operation.READ, topic)
        except BrokerError as error:
            return error.with_traceback(None)
    return None


def _read(
    context: Context[_Parts],
    request: FetchRequest,
    topic: str | uuid.UUID,
    partition: FetchPartition,
    left: int,
    first: bool,
    refusal: BrokerError | None,
) -> tuple[PartitionFetched, PartitionLog | None]:
    """Read one partition. The log is None if the partition does not exist.

    A missing partition does not end the wait: its error is part of the answer when that is due. Other errors are
    answered at once.
    """
    partitions = context.broker.partitions
    log = None
    if refusal is not None:
        return PartitionFetched(partition.partition, refusal.code, -1, -1, -1, None, ()), None
    try:
        log = partitions.find(topic, partition.partition)
        if partition.current_leader_epoch != log.leader_epoch and partition.current_leader_epoch >= 0:
            partitions.find(topic, partition.partition, partition.current_leader_epoch)
        if partition.last_fetched_epoch >= 0:
            diverging = _diverging(log, partition)
            if diverging is not None:
                return PartitionFetched(partition.partition, 0, *_offsets(log), None, None, diverging), log
        records = partitions.read(
            log,
            partition.fetch_offset,
            min(partition.max_bytes, max(left, 0)),
            isolation_level=request.isolation_level,
            first=first,
        )
        aborted = None
        if request.isolation_level == READ_COMMITTED:
            aborted = log.reader.aborted_within(partition.fetch_offset, records) if records is not None else ()
    except BrokerError as error:
        return PartitionFetched(partition.partition, error.code, -1, -1, -1, None, () if log is None else None), log
    except OSError as error:
        logger.warning("records cannot be read", partition=repr(log), error=str(error))
        return PartitionFetched(partition.partition, KafkaStorageError.code, -1, -1, -1, None, None), log
    return PartitionFetched(partition.partition, 0, *_offsets(log), records, aborted), log


def _count(context: Context[_Parts], provided: Iterable[tuple[PartitionFetched, PartitionLog | None]]) -> None:
    """Count the bytes that are sent. Reads that are not sent, because they are too few or too many, do not count."""
    metrics = context.broker.topic_metrics
    for fetched, log in provided:
        if fetched.records is not None and log is not None:
            metrics.by_topic[log.topic].bytes_out += fetched.records.size
        elif fetched.error_code:
            metrics.failed_fetch(None if log is None else log.topic)


def _diverging(log: PartitionLog, partition: FetchPartition) -> tuple[int, int] | None:
    """Where the log diverges from what a client has read: it was truncated there and written again.

    Raises OffsetOutOfRange if the client's last epoch is unknown.
    """
    last = partition.last_fetched_epoch
    if last == log.leader_epoch and partition.fetch_offset <= log.log_end_offset:
        return None
    epoch, end = log.reader.end_of_epoch(last)
    if end < 0:
        raise OffsetOutOfRange(f"{log.topic}-{log.partition} knows nothing of leader epoch {last}.")
    return (epoch, end) if epoch < last or end < partition.fetch_offset else None


def _most_bytes(context: Context[_Parts], request: FetchRequest) -> int:
    most = min(request.max_bytes, context.broker.config.fetch_max_bytes)
    if context.broker.quotas.active:
        # More bytes than the quota can ever allow would be held back forever.
        most = min(most, context.broker.quotas.of(context.principal, context.client_id).most_fetched)
    return most


def _throttle_ms(context: Context[_Parts], size: int) -> int:
    """How long this client has to wait before it gets ``size`` bytes."""
    quotas = context.broker.quotas
    return quotas.fetched(quotas.of(context.principal, context.client_id), size) if quotas.active else 0


def _offsets(partition: PartitionLog) -> tuple[int, int, int]:
    return partition.log_end_offset, partition.last_stable_offset, partition.log_start_offset
