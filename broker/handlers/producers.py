"""InitProducerId: the identity an idempotent producer numbers its batches under."""

from __future__ import annotations

from broker.errors import InvalidRequest
from broker.handlers.routes import Context, Routes
from broker.protocol.api import ApiKey
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

__all__ = ["routes"]

routes = Routes()


@routes.handles(ApiKey.INIT_PRODUCER_ID, versions=range(6))
def init_producer_id(context: Context, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Give out a producer id that nobody had before. A transactional id is refused: there are no transactions yet.

    v2 flexible · v3 a producer raises its epoch (KIP-360) · v5 transactions in one step (KIP-890)
    """
    if request.transactional_id is not None:
        raise InvalidRequest(
            f"transactional.id {request.transactional_id!r} cannot be used: this broker has no transactions yet."
        )
    # Without a transactional id Kafka, too, answers a raised epoch with a new id.
    return InitProducerIdResponse(producer_id=context.broker.metadata.next_producer_id(), producer_epoch=0)
