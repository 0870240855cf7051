"""Lists and changes quotas of users, client ids and addresses for administrators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from broker.api.parts import Common, WithMetadata
from broker.api.routes import Context, Routes
from broker.errors import BrokerError
from broker.protocol.api import ApiKey
from broker.protocol.messages import alter_client_quotas as alter
from broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from broker.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from broker.quotas.records import ClientQuotaRecord
from broker.quotas.settings import EntityFilter
from broker.security.access import Operation, ResourceType

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithMetadata, Protocol):
    """The parts of a broker that these handlers use."""


@routes.handles(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=range(2))
def describe_client_quotas(
    context: Context[_Parts], request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """List the quotas of entities that match a filter.

    v1 flexible
    """
    filters = [
        EntityFilter(component.entity_type, component.match_type, component.match) for component in request.components
    ]
    try:
        context.require(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
        result = context.broker.metadata.quotas.find(filters, strict=request.strict)
    except BrokerError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in result
        ],
    )


@routes.handles(ApiKey.ALTER_CLIENT_QUOTAS, versions=range(2))
def alter_client_quotas(context: Context[_Parts], request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Set and remove quotas, or only validate the request with `validate_only`.

    v1 flexible
    """
    refusal: BrokerError | None = None
    try:
        context.require(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
    except BrokerError as error:
        refusal = error
    records: list[ClientQuotaRecord] = []
    answers = []
    for entry in request.entries:
        entity = [(part.entity_type, part.entity_name) for part in entry.entity]
        try:
            if refusal is not None:
                raise refusal
            ops = {op.key: None if op.remove else op.value for op in entry.ops}
            records += context.broker.metadata.quotas.changed(entity, ops)
        except BrokerError as error:
            answers.append(_answer(entity, error))
        else:
            answers.append(_answer(entity, None))
    if not request.validate_only:
        context.broker.metadata.append(records)
    return AlterClientQuotasResponse(entries=answers)


def _answer(entity: Sequence[tuple[str, str | None]], error: BrokerError | None) -> alter.ResponseEntryData:
    return alter.ResponseEntryData(
        error_code=error.code if error else 0,
        error_message=error.message if error else None,
        entity=[alter.ResponseEntityData(entity_type=kind, entity_name=name) for kind, name in entity],
    )
