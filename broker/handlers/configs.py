"""Configuration of topics and of the broker."""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol

from broker.api.parts import Common, WithResources
from broker.api.routes import Context, Routes
from broker.errors import BrokerError, InvalidRequest, UnsupportedVersion
from broker.protocol.api import ApiKey
from broker.protocol.messages import alter_configs as alter
from broker.protocol.messages import incremental_alter_configs as incremental
from broker.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from broker.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from broker.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from broker.resources.entries import ConfigEntry
from broker.security.access import Operation, ResourceType

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithResources, Protocol):
    """The parts of a broker that these handlers use."""


_DOCUMENTATION_SINCE: Final = 3


@routes.handles(ApiKey.DESCRIBE_CONFIGS, versions=range(1, 5))
def describe_configs(context: Context[_Parts], request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Show the configuration of topics and of the broker, with the source of each value.

    v3 types and documentation · v4 flexible
    """
    return DescribeConfigsResponse(results=[_describe(context, request, resource) for resource in request.resources])


def _describe(
    context: Context[_Parts], request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        _require(context, Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
        entries = context.broker.resources.describe(
            resource.resource_type, resource.resource_name, resource.configuration_keys
        )
    except BrokerError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    result.configs = [_entry(entry, request) for entry in entries]
    return result


def _entry(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(
                name=synonym.name, value=None if entry.sensitive else synonym.value, source=synonym.source
            )
            for synonym in synonyms
        ],
        config_type=entry.type_code,
        documentation=entry.key.doc if request.include_documentation else None,
    )


@routes.handles(ApiKey.ALTER_CONFIGS, versions=range(3))
def alter_configs(context: Context[_Parts], request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace the whole configuration of topics, or of the broker.

    v2 flexible
    """
    responses = []
    times = _Times((resource.resource_type, resource.resource_name) for resource in request.resources)
    for resource in request.resources:
        response = alter.AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            times.check((resource.resource_type, resource.resource_name))
            _require(context, Operation.ALTER_CONFIGS, resource.resource_type, resource.resource_name)
            configs = {config.name: config.value for config in resource.configs}
            context.broker.resources.replace(
                resource.resource_type, resource.resource_name, configs, validate_only=request.validate_only
            )
        except BrokerError as error:
            response.error_code, response.error_message = error.code, error.message
        responses.append(response)
    return AlterConfigsResponse(responses=responses)


@routes.handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=range(2))
def incremental_alter_configs(
    context: Context[_Parts], request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Set and remove single keys of topics or of the broker, append to lists and subtract from them.

    v1 flexible
    """
    responses = []
    times = _Times((resource.resource_type, resource.resource_name) for resource in request.resources)
    for resource in request.resources:
        response = incremental.AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            times.check((resource.resource_type, resource.resource_name))
            _require(context, Operation.ALTER_CONFIGS, resource.resource_type, resource.resource_name)
            changes = [(config.name, config.config_operation, config.value) for config in resource.configs]
            context.broker.resources.alter(
                resource.resource_type, resource.resource_name, changes, validate_only=request.validate_only
            )
        except BrokerError as error:
            response.error_code, response.error_message = error.code, error.message
        responses.append(response)
    return IncrementalAlterConfigsResponse(responses=responses)


class _Times(Counter[tuple[int, str]]):
    """How often a request names each resource."""

    def check(self, resource: tuple[int, str]) -> None:
        if self[resource] > 1:
            raise InvalidRequest(f"{resource[1]!r} is changed {self[resource]} times in one request.")


@routes.handles(ApiKey.LIST_CONFIG_RESOURCES, versions=range(2))
def list_config_resources(context: Context[_Parts], request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """List the resources that have a configuration.

    v0 was ListClientMetricsResources, and lists only those · v1 types (KIP-1142)
    """
    context.require(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
    numbers = (_CLIENT_METRICS,) if context.version == 0 else request.resource_types or _LISTED
    unknown = next((number for number in numbers if number not in _LISTED), None)
    if unknown is not None:
        raise UnsupportedVersion(f"Resources of type {unknown} cannot be listed.")
    resources = context.broker.resources
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_type=kind, resource_name=name)
            for kind in dict.fromkeys(numbers)
            for name in resources.names(_SAME_AS.get(kind, kind))
        ]
    )


_CLIENT_METRICS: Final = 16
_LISTED: Final = (2, 4, 8, 16, 32)
"""``ConfigResource.Type``: topics, brokers, brokers' loggers, client metrics, groups."""
_SAME_AS: Final = {8: 4}


def _require(context: Context[_Parts], operation: Operation, resource_type: int, name: str) -> None:
    """Authorize topics and groups by name, everything else on the cluster."""
    kind = _OF_THEIR_OWN.get(resource_type)
    if kind is None:
        context.require(operation, ResourceType.CLUSTER)
    else:
        context.require(operation, kind, name)


_OF_THEIR_OWN: Final = {2: ResourceType.TOPIC, 32: ResourceType.GROUP}
"""The protected resource type for each ``ConfigResource.Type`` that is authorized by name."""
