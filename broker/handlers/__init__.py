"""All Kafka APIs of this broker: one module per family, one table."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from broker.api.routes import AnyRoute
from broker.handlers import (
    acls,
    cluster,
    configs,
    consumer_groups,
    credentials,
    fetch,
    groups,
    list_offsets,
    log_dirs,
    offsets,
    produce,
    producers,
    quorum,
    quotas,
    replicas,
    sasl,
    topics,
    transaction_admin,
    transaction_offsets,
    transactions,
)
from broker.handlers.rooms import DEFERRED
from broker.protocol.api import ApiKey
from broker.protocol.messages.api_versions import ApiVersion

__all__ = ["ROUTES", "advertised", "routes_of"]

_FAMILIES: Final = (
    cluster,
    topics,
    configs,
    produce,
    fetch,
    list_offsets,
    producers,
    groups,
    consumer_groups,
    offsets,
    transactions,
    transaction_offsets,
    transaction_admin,
    acls,
    quotas,
    sasl,
    credentials,
    quorum,
    replicas,
    log_dirs,
)

ROUTES: Final[Mapping[int, AnyRoute]] = MappingProxyType(
    {
        int(route.key): route
        for route in sorted(chain(DEFERRED, *(family.routes for family in _FAMILIES)), key=lambda route: route.key)
    }
)
"""By API key, ascending. Rarely used families are in ``rooms``, and imported with their first request."""


def routes_of(*, telemetry: bool) -> Mapping[int, AnyRoute]:
    """The routes of a broker, by API key.

    As in Apache Kafka, those for client metrics exist only with ``telemetry``.
    """
    if telemetry:
        return ROUTES
    unwanted = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
    return MappingProxyType({key: route for key, route in ROUTES.items() if route.key not in unwanted})


def advertised(routes: Mapping[int, AnyRoute]) -> list[ApiVersion]:
    """The entries of ApiVersions for these routes."""
    return [
        ApiVersion(api_key=key, min_version=route.advertised.start, max_version=route.advertised.stop - 1)
        for key, route in routes.items()
    ]
