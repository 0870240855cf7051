"""Producer ids, and the state of producers in partitions."""

from __future__ import annotations

from typing import Final, Protocol

from broker.api.parts import Common, WithMetadata, WithPartitions, WithTransactions
from broker.api.routes import Context, Pending, Routes
from broker.errors import BrokerError, InvalidProducerEpoch, InvalidRequest, ProducerFenced
from broker.protocol.api import ApiKey
from broker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker.security.access import Operation, ResourceType
from broker.transactions import NO_PRODUCER, Producer

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithMetadata, WithPartitions, WithTransactions, Protocol):
    """The parts of a broker that these handlers use."""


_FENCED_SINCE: Final = 4
"""The first version of InitProducerId whose clients know PRODUCER_FENCED."""


@routes.handles(ApiKey.INIT_PRODUCER_ID, versions=range(6))
def init_producer_id(context: Context[_Parts], request: InitProducerIdRequest) -> InitProducerIdResponse | Pending:
    """Return a producer id: a new one, or that of its `transactional.id` with an epoch that fences earlier producers.

    v2 flexible · v3 a producer can raise its epoch (KIP-360) · v4 PRODUCER_FENCED · v5 for `transaction.version` 2
    (KIP-890)
    """
    transactional_id = request.transactional_id
    expected = Producer(request.producer_id, request.producer_epoch)

    def failed(error: BrokerError) -> InitProducerIdResponse:
        fenced = isinstance(error, ProducerFenced) and context.version < _FENCED_SINCE
        return InitProducerIdResponse(error_code=InvalidProducerEpoch.code if fenced else error.code, producer_epoch=-1)

    try:
        if transactional_id is not None:
            context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        elif not context.allows_any(Operation.WRITE, ResourceType.TOPIC):
            context.require(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
        if expected != NO_PRODUCER and -1 in expected:
            raise InvalidRequest(f"Producer id {expected.id} and epoch {expected.epoch} go together: both or neither.")
    except BrokerError as error:
        return failed(error)
    if transactional_id is None:
        # Without a transactional id Kafka, too, answers an epoch bump with a new id.
        return InitProducerIdResponse(producer_id=context.broker.metadata.next_producer_id(), producer_epoch=0)
    future = context.broker.transactions.init_producer_id(
        transactional_id,
        timeout_ms=request.transaction_timeout_ms,
        expected=None if expected == NO_PRODUCER else expected,
    )
    return Pending(
        future,
        lambda producer: InitProducerIdResponse(producer_id=producer.id, producer_epoch=producer.epoch),
        failed,
    )


@routes.handles(ApiKey.DESCRIBE_PRODUCERS, versions=range(1))
def describe_producers(context: Context[_Parts], request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Describe the idempotent and transactional producers known to partitions, so that hanging transactions can be
    found.
    """
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_partition(context, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _partition(context: Context[_Parts], topic: str, index: int) -> PartitionResponse:
    try:
        context.require(Operation.READ, ResourceType.TOPIC, topic)
        log = context.broker.partitions.find(topic, index)
    except BrokerError as error:
        return PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_start,
            )
            for producer in log.producers.known()
        ],
    )
