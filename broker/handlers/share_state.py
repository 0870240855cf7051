"""The state of share-partitions, through the APIs that Kafka's brokers and coordinators use among themselves (KIP-932)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from broker.api.parts import Common, WithShare
from broker.api.routes import Answer, Context, Pending, Routes
from broker.errors import BrokerError, NotCoordinator
from broker.handlers.rooms import SERVED
from broker.protocol.api import ApiKey
from broker.protocol.messages import (
    delete_share_group_state as deleting,
)
from broker.protocol.messages import (
    initialize_share_group_state as initializing,
)
from broker.protocol.messages import (
    read_share_group_state as reading,
)
from broker.protocol.messages import (
    read_share_group_state_summary as summing,
)
from broker.protocol.messages import (
    write_share_group_state as writing,
)
from broker.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from broker.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from broker.protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from broker.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from broker.protocol.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse
from broker.security.access import CLUSTER_NAME, Operation, Resource, ResourceType, denied
from broker.share_coordinator.values import ShareKey, StateBatch, StoredState

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithShare, Protocol):
    """The parts of a broker that these handlers use."""


A = TypeVar("A", bound=Answer)


@routes.handles(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=SERVED[ApiKey.INITIALIZE_SHARE_GROUP_STATE])
def initialize_share_group_state(
    context: Context[_Parts], request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse | Pending:
    """Initialize the state of share-partitions."""

    def write(key: ShareKey, provided: Any) -> asyncio.Future[None]:
        return context.broker.share.coordinator.initialize(key, provided.state_epoch, provided.start_offset)

    return _written(
        context,
        request,
        write,
        InitializeShareGroupStateResponse,
        initializing.InitializeStateResult,
        initializing.PartitionResult,
    )


@routes.handles(ApiKey.WRITE_SHARE_GROUP_STATE, versions=SERVED[ApiKey.WRITE_SHARE_GROUP_STATE])
def write_share_group_state(
    context: Context[_Parts], request: WriteShareGroupStateRequest
) -> WriteShareGroupStateResponse | Pending:
    """Write the delivery states of records.

    v1 number of complete deliveries (KIP-1226)
    """

    def write(key: ShareKey, provided: Any) -> asyncio.Future[None]:
        batches = [
            StateBatch(
                state_batch.first_offset,
                state_batch.last_offset,
                state_batch.delivery_count,
                state_batch.delivery_state,
            )
            for state_batch in provided.state_batches
        ]
        state = StoredState(
            provided.start_offset,
            provided.state_epoch,
            provided.leader_epoch,
            provided.delivery_complete_count,
            batches,
        )
        return context.broker.share.coordinator.write(key, state)

    return _written(
        context, request, write, WriteShareGroupStateResponse, writing.WriteStateResult, writing.PartitionResult
    )


@routes.handles(ApiKey.DELETE_SHARE_GROUP_STATE, versions=SERVED[ApiKey.DELETE_SHARE_GROUP_STATE])
def delete_share_group_state(
    context: Context[_Parts], request: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse | Pending:
    """Delete the state of share-partitions."""

    def write(key: ShareKey, _: Any) -> asyncio.Future[None]:
        return context.broker.share.coordinator.delete(key)

    return _written(
        context, request, write, DeleteShareGroupStateResponse, deleting.DeleteStateResult, deleting.PartitionResult
    )


def _written(
    context: Context[_Parts],
    request: Any,
    write: Callable[[ShareKey, Any], asyncio.Future[None]],
    response: Callable[..., A],
    topic_result: Callable[..., Any],
    partition_result: Callable[..., Any],
) -> A | Pending:
    """Write for every named partition. The answer has the result of each."""
    refusal = _refusal(context)
    if not _is_complete(request):
        return response()
    results: list[Any] = []
    waiting = 0
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def note(result: Any, error: BrokerError | None) -> None:
        nonlocal waiting
        waiting -= 1
        if error is not None:
            result.error_code, result.error_message = error.code, error.message
        if waiting == 0 and not done.done():
            done.set_result(None)

    asked = []
    for topic in request.topics:
        partitions = [partition_result(partition=partition.partition) for partition in topic.partitions]
        results.append(topic_result(topic_id=topic.topic_id, partitions=partitions))
        asked += [
            (ShareKey(request.group_id, topic.topic_id, partition.partition), partition, result)
            for partition, result in zip(topic.partitions, partitions, strict=True)
        ]
    waiting = len(asked)
    for key, provided, result in asked:
        if refusal is not None:
            note(result, refusal)
            continue
        _when_done(write(key, provided), lambda error, result=result: note(result, error))  # type: ignore[misc]
    return Pending(done, lambda _: response(results=results))


def _when_done(future: asyncio.Future[None], callback: Callable[[BrokerError | None], None]) -> None:
    """Call back with the coordinator's own error, untranslated: its message already says what could not be written."""

    def call(done: asyncio.Future[None]) -> None:
        error = NotCoordinator("The broker stopped.") if done.cancelled() else done.exception()
        if error is not None and not isinstance(error, BrokerError):
            raise error
        callback(error)

    if future.done():
        call(future)
    else:
        future.add_done_callback(call)


def _refusal(context: Context[_Parts]) -> BrokerError | None:
    if context.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return None
    return denied(Operation.CLUSTER_ACTION, Resource(ResourceType.CLUSTER, CLUSTER_NAME), context.principal)


def _is_complete(request: Any) -> bool:
    """Whether a request names a group, topics and partitions. Otherwise the answer is empty."""
    return bool(request.group_id and request.topics) and all(topic.partitions for topic in request.topics)


@routes.handles(ApiKey.READ_SHARE_GROUP_STATE, versions=SERVED[ApiKey.READ_SHARE_GROUP_STATE])
def read_share_group_state(
    context: Context[_Parts], request: ReadShareGroupStateRequest
) -> ReadShareGroupStateResponse:
    """Read the state of share-partitions, for the leaders of the partitions."""

    def read(key: ShareKey, partition: reading.PartitionData) -> reading.PartitionResult:
        state = context.broker.share.coordinator.read(key, partition.leader_epoch)
        return reading.PartitionResult(
            partition=key.partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[
                reading.StateBatch(
                    first_offset=batch.first,
                    last_offset=batch.last,
                    delivery_state=batch.state,
                    delivery_count=batch.deliveries,
                )
                for batch in state.batches
            ],
        )

    results = _read(context, request, read, reading.ReadStateResult, reading.PartitionResult)
    return ReadShareGroupStateResponse(results=results)


@routes.handles(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=SERVED[ApiKey.READ_SHARE_GROUP_STATE_SUMMARY])
def read_share_group_state_summary(
    context: Context[_Parts], request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse:
    """Read the start offsets of share-partitions.

    v1 number of complete deliveries (KIP-1226)
    """

    def read(key: ShareKey, _: summing.PartitionData) -> summing.PartitionResult:
        state = context.broker.share.coordinator.summary(key)
        return summing.PartitionResult(
            partition=key.partition,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )

    results = _read(context, request, read, summing.ReadStateSummaryResult, summing.PartitionResult)
    return ReadShareGroupStateSummaryResponse(results=results)


def _read(
    context: Context[_Parts],
    request: Any,
    read: Callable[[ShareKey, Any], Any],
    topic_result: Callable[..., Any],
    partition_result: Callable[..., Any],
) -> Sequence[Any]:
    refusal = _refusal(context)
    if not _is_complete(request):
        return []
    results = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            try:
                if refusal is not None:
                    raise refusal
                partitions.append(read(ShareKey(request.group_id, topic.topic_id, partition.partition), partition))
            except BrokerError as error:
                partitions.append(
                    partition_result(partition=partition.partition, error_code=error.code, error_message=error.message)
                )
        results.append(topic_result(topic_id=topic.topic_id, partitions=partitions))
    return results
