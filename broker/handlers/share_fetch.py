"""ShareFetch and ShareAcknowledge: members of share groups fetch and acknowledge records (KIP-932)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from broker.api.parts import Common, WithConfig, WithLogs, WithMetadata, WithShare, WithTopicMetrics
from broker.api.routes import Context, Pending, Routes
from broker.coordinator.futures import fail
from broker.errors import (
    BrokerError,
    GroupAuthorizationFailed,
    InvalidRequest,
    InvalidShareSessionEpoch,
    ShareSessionLimitReached,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from broker.handlers.consumer_groups import require_feature
from broker.handlers.rooms import SERVED
from broker.protocol.api import ApiKey
from broker.protocol.messages.share_acknowledge import (
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from broker.protocol.messages.share_fetch import ShareFetchRequest
from broker.protocol.share_fetch import ShareFetchAnswer, SharePartitionFetched
from broker.security.access import Operation, ResourceType
from broker.share_coordinator.values import ShareKey
from broker.share_delivery.fetching import ShareFetch, ShareFetched, ShareFetchLimits
from broker.share_delivery.sessions import FINAL, INITIAL, ShareSession
from broker.share_delivery.share_groups import OpenShare
from broker.share_delivery.values import RENEW, AcknowledgeBatch

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithConfig, WithLogs, WithMetadata, WithShare, WithTopicMetrics, Protocol):
    """The parts of a broker that these handlers use."""


_MEMBER_ID_LENGTH: Final = 36
_EXACTLY: Final = 1
"""The acquire mode ``record_limit`` (KIP-1206); 0 is ``batch_optimized``."""

_INVALID_EPOCH: Final = InvalidShareSessionEpoch.code

Partition = tuple[uuid.UUID, int]
Outcomes = Mapping[Partition, BrokerError | None]
"""The results of acknowledgements."""


@routes.handles(ApiKey.SHARE_FETCH, versions=SERVED[ApiKey.SHARE_FETCH])
def share_fetch(context: Context[_Parts], request: ShareFetchRequest) -> ShareFetchAnswer | Pending:
    """Acknowledge records of a share group and fetch more, waiting up to `max_wait_ms` until there are `min_bytes`.

    v2 acquire mode (KIP-1206), renewal of locks (KIP-1222)
    """
    group_id, member_id = _checked(context, request.group_id, request.member_id)
    renews = context.version >= 2 and request.is_renew_ack
    if renews:
        _check_renewal(request)
    named = [(topic.topic_id, partition.partition_index) for topic in request.topics for partition in topic.partitions]
    batches = {
        (topic.topic_id, partition.partition_index): _batches(partition.acknowledgement_batches)
        for topic in request.topics
        for partition in topic.partitions
    }
    acknowledges = any(batches.values())
    try:
        session = _session(context, request, group_id, member_id, named, acknowledges=acknowledges)
    except ShareSessionLimitReached as error:
        return _refused_later(request.max_wait_ms, error)
    epoch = session.epoch
    acknowledged = _Acknowledgements(context, group_id, member_id, renews)
    if acknowledges:
        acknowledged.take(batches)
    final = request.share_session_epoch == FINAL
    fetched = _Fetching(context, request, group_id, member_id)
    future = fetched.start([] if final or renews else list(session.partitions))

    def answer(_: None) -> ShareFetchAnswer:
        if not final and session.epoch != epoch:
            return ShareFetchAnswer(error_code=_INVALID_EPOCH)
        if final:
            context.broker.share.end_session(group_id, member_id)
        return _answered(context, session, group_id, fetched.results, acknowledged.outcomes)

    return Pending(_all_done([future, *acknowledged.futures], cancels=future), answer)


def _checked(context: Context[_Parts], group_id: str | None, member_id: str | None) -> tuple[str, str]:
    require_feature(context, "share.version")
    if group_id is None:
        raise InvalidRequest("Invalid group id in the request.")
    if not context.allows(Operation.READ, ResourceType.GROUP, group_id):
        raise GroupAuthorizationFailed(f"The client may not read as a member of group {group_id!r}.")
    if not member_id or len(member_id) > _MEMBER_ID_LENGTH:
        raise InvalidRequest("Invalid member id in the request.")
    return group_id, member_id


def _check_renewal(request: ShareFetchRequest) -> None:
    asked = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
    if any(asked):
        raise InvalidRequest(
            "A fetch that renews locks gets no records: its max bytes, min bytes, max records and max wait must be 0."
        )


def _session(
    context: Context[_Parts],
    request: ShareFetchRequest,
    group_id: str,
    member_id: str,
    named: Sequence[Partition],
    *,
    acknowledges: bool,
) -> ShareSession:
    sessions, topics = context.broker.share.sessions, context.broker.topics
    known = [topic_partition for topic_partition in named if topics.name_of(topic_partition[0]) is not None]
    if request.share_session_epoch == FINAL:
        return sessions.find(group_id, member_id)
    if request.share_session_epoch == INITIAL:
        connection = context.connection
        session = sessions.begin(group_id, member_id, known, connection, acknowledges=acknowledges)
        if connection is not None:
            connection.when_closed = lambda: context.broker.share.disconnected(connection)
        return session
    session = sessions.go_on(group_id, member_id, request.share_session_epoch)
    session.update(
        known,
        [(topic.topic_id, partition) for topic in request.forgotten_topics_data for partition in topic.partitions],
    )
    return session


def _refused_later(wait_ms: int, error: BrokerError) -> Pending:
    """Delay an error as long as an empty answer would take, because clients retry at once."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(wait_ms / 1000, fail, future, error)
    future.add_done_callback(lambda _: timer.cancel())
    return Pending(future, lambda _: ShareFetchAnswer())


class _Fetching:
    """The part of a ShareFetch that fetches records. ``results`` are complete when the future of ``start`` is done."""

    def __init__(self, context: Context[_Parts], request: ShareFetchRequest, group_id: str, member_id: str) -> None:
        self.context = context
        self.group_id = group_id
        self.member_id = member_id
        most = min(request.max_bytes, context.broker.config.fetch_max_bytes)
        if context.broker.quotas.active:
            most = min(most, context.broker.quotas.of(context.principal, context.client_id).most_fetched)
        self.requested = ShareFetchLimits(
            request.max_wait_ms,
            min(request.min_bytes, most),
            most,
            request.max_records,
            request.batch_size,
            request.share_acquire_mode == _EXACTLY,
        )
        self.rotate_by = max(request.share_session_epoch, 0)
        self.results: list[ShareFetched] = []

    def start(self, partitions: list[Partition]) -> asyncio.Future[Any]:
        shares = []
        for partition in self._rotated(partitions):
            try:
                shares.append(self._open(partition))
            except BrokerError as error:
                self.results.append(ShareFetched(*partition, error=error))
        future = ShareFetch(self.context.broker.share, self.member_id, shares, self.requested).start()
        if future.done():
            self.results += future.result()
        else:
            future.add_done_callback(self._take)
        return future

    def _take(self, future: asyncio.Future[list[ShareFetched]]) -> None:
        if not future.cancelled():
            self.results += future.result()

    def _rotated(self, partitions: list[Partition]) -> list[Partition]:
        """Start each fetch of a session with another partition."""
        at = self.rotate_by % len(partitions) if partitions else 0
        return partitions[at:] + partitions[:at]

    def _open(self, topic_partition: Partition) -> OpenShare:
        context, (topic_id, partition) = self.context, topic_partition
        name = context.broker.topics.name_of(topic_id)
        if name is None:
            raise UnknownTopicId(f"There is no topic with the id {topic_id}.")
        if not context.allows(Operation.READ, ResourceType.TOPIC, name):
            raise TopicAuthorizationFailed(f"The client may not read topic {name!r}.")
        return context.broker.share.open(ShareKey(self.group_id, topic_id, partition))


class _Acknowledgements:
    """Acknowledgements of one request. ``outcomes`` are complete when all ``futures`` are done."""

    def __init__(self, context: Context[_Parts], group_id: str, member_id: str, renews: bool) -> None:
        self.context = context
        self.group_id = group_id
        self.member_id = member_id
        self.renews = renews
        self.outcomes: dict[Partition, BrokerError | None] = {}
        self.futures: list[asyncio.Future[None]] = []

    def take(self, provided: Mapping[Partition, Sequence[AcknowledgeBatch]]) -> None:
        right: dict[Partition, Sequence[AcknowledgeBatch]] = {}
        for partition, batches in provided.items():
            error = self._problem(partition, batches)
            if error is not None or not batches:
                self.outcomes[partition] = error
            else:
                right[partition] = batches
        for partition, future in self.context.broker.share.acknowledge(self.group_id, self.member_id, right).items():
            if future.done():
                self._note(partition, future)
            else:
                self.futures.append(future)
                future.add_done_callback(partial(self._note, partition))

    def _note(self, partition: Partition, future: asyncio.Future[None]) -> None:
        error = future.exception()
        self.outcomes[partition] = error if isinstance(error, BrokerError) else None

    def _problem(self, topic_partition: Partition, batches: Sequence[AcknowledgeBatch]) -> BrokerError | None:
        topic_id, partition = topic_partition
        broker = self.context.broker
        name = broker.topics.name_of(topic_id)
        if name is None:
            return UnknownTopicId(f"There is no topic with the id {topic_id}.")
        problem = _problem_of(batches, self.context.version, renews=self.renews)
        if problem is not None:
            return InvalidRequest(problem)
        if not self.context.allows(Operation.READ, ResourceType.TOPIC, name):
            return TopicAuthorizationFailed(f"The client may not read topic {name!r}.")
        if broker.logs.get(name, partition) is None:
            return UnknownTopicOrPartition(f"There is no partition {partition} of topic {name!r}.")
        return None


def _problem_of(batches: Sequence[AcknowledgeBatch], version: int, *, renews: bool) -> str | None:
    """Whether the acknowledgements are well-formed; needs no state."""
    end, most = -1, RENEW if version >= 2 else RENEW - 1
    for first, last, types in batches:
        if first > last or first < end:
            return f"Offsets {first} to {last} are not in order."
        if not types or len(types) not in (1, last - first + 1):
            return f"{len(types)} acknowledge types for the offsets {first} to {last}: give one, or one for each."
        if any(not 0 <= number <= most for number in types):
            return f"Acknowledge types go from 0 to {most}: {list(types)}."
        if RENEW in types and not renews:
            return "Locks are renewed in requests that say so (is renew ack)."
        end = last
    return None


def _batches(provided: Iterable[Any]) -> list[AcknowledgeBatch]:
    return [AcknowledgeBatch(item.first_offset, item.last_offset, item.acknowledge_types) for item in provided]


def _all_done(
    futures: Sequence[asyncio.Future[Any]], cancels: asyncio.Future[Any] | None = None
) -> asyncio.Future[None]:
    """Done when all are, whatever their results. Cancelling it cancels ``cancels``."""
    whole: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = [future for future in futures if not future.done()]
    if not waiting:
        whole.set_result(None)
        return whole
    left = len(waiting)

    def count(_: asyncio.Future[Any]) -> None:
        nonlocal left
        left -= 1
        if left == 0 and not whole.done():
            whole.set_result(None)

    for future in waiting:
        future.add_done_callback(count)
    if cancels is not None:
        whole.add_done_callback(lambda done: cancels.cancel() if done.cancelled() else None)
    return whole


def _answered(
    context: Context[_Parts], session: ShareSession, group_id: str, results: Sequence[ShareFetched], outcomes: Outcomes
) -> ShareFetchAnswer:
    lock_ms = context.broker.share.settings(group_id).record_lock_ms
    topics: dict[uuid.UUID, list[SharePartitionFetched]] = {}
    size = sum(result.records.size for result in results if result.records is not None)
    throttle_ms = _throttle_ms(context, size)
    left = dict(outcomes)
    for result in results:
        where = (result.topic_id, result.partition)
        named = session.record_result(where, has_records=result.records is not None, failed=result.error is not None)
        if named and not throttle_ms:
            topics.setdefault(result.topic_id, []).append(_fetched(result, left.pop(where, None)))
    for (topic_id, partition), error in left.items():
        topics.setdefault(topic_id, []).append(_fetched(ShareFetched(topic_id, partition), error))
    _count_bytes(context, results)
    return ShareFetchAnswer(topics.items(), acquisition_lock_timeout_ms=lock_ms, throttle_time_ms=throttle_ms)


def _throttle_ms(context: Context[_Parts], size: int) -> int:
    quotas = context.broker.quotas
    return quotas.fetched(quotas.of(context.principal, context.client_id), size) if quotas.active else 0


def _count_bytes(context: Context[_Parts], results: Sequence[ShareFetched]) -> None:
    for result in results:
        name = context.broker.topics.name_of(result.topic_id) if result.records is not None else None
        if name is not None and result.records is not None:
            context.broker.topic_metrics.by_topic[name].bytes_out += result.records.size


def _fetched(partition: ShareFetched, failure: BrokerError | None) -> SharePartitionFetched:
    return SharePartitionFetched(
        partition.partition,
        0 if partition.error is None else partition.error.code,
        None if partition.error is None else partition.error.message,
        0 if failure is None else failure.code,
        None if failure is None else failure.message,
        partition.records,
        partition.acquired,
    )


@routes.handles(ApiKey.SHARE_ACKNOWLEDGE, versions=SERVED[ApiKey.SHARE_ACKNOWLEDGE])
def share_acknowledge(context: Context[_Parts], request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse | Pending:
    """Acknowledge records of a share group without fetching more, or end the session.

    v2 renewal of locks (KIP-1222)
    """
    group_id, member_id = _checked(context, request.group_id, request.member_id)
    sessions = context.broker.share.sessions
    final = request.share_session_epoch == FINAL
    if request.share_session_epoch == INITIAL:
        raise InvalidShareSessionEpoch("A share session begins with a fetch, not with an acknowledgement.")
    if final:
        sessions.find(group_id, member_id)
    else:
        sessions.go_on(group_id, member_id, request.share_session_epoch)
    acknowledged = _Acknowledgements(context, group_id, member_id, context.version >= 2 and request.is_renew_ack)
    acknowledged.take(
        {
            (topic.topic_id, partition.partition_index): _batches(partition.acknowledgement_batches)
            for topic in request.topics
            for partition in topic.partitions
        }
    )

    def answer(_: None) -> ShareAcknowledgeResponse:
        if final:
            context.broker.share.end_session(group_id, member_id)
        return _acknowledged(context, group_id, acknowledged.outcomes)

    return Pending(_all_done(acknowledged.futures), answer)


def _acknowledged(context: Context[_Parts], group_id: str, outcomes: Outcomes) -> ShareAcknowledgeResponse:
    topics: dict[uuid.UUID, list[PartitionData]] = {}
    for (topic_id, partition), error in outcomes.items():
        topics.setdefault(topic_id, []).append(
            PartitionData(
                partition_index=partition,
                error_code=0 if error is None else error.code,
                error_message=None if error is None else error.message,
            )
        )
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=context.broker.share.settings(group_id).record_lock_ms,
        responses=[
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
    )
