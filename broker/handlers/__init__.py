"""All Kafka APIs of this broker: one module per family, one table."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from broker.api.routes import Route
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
    share_fetch,
    share_groups,
    share_offsets,
    share_state,
    streams_groups,
    telemetry,
    tokens,
    topics,
    transaction_admin,
    transaction_offsets,
    transactions,
)
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
    streams_groups,
    share_fetch,
    share_groups,
    share_offsets,
    share_state,
    offsets,
    transactions,
    transaction_offsets,
    transaction_admin,
    acls,
    quotas,
    sasl,
    credentials,
    tokens,
    telemetry,
    quorum,
    replicas,
    log_dirs,
)

ROUTES: Final[Mapping[int, Route]] = MappingProxyType(
    {int(route.key): route for route in sorted(chain.from_iterable(f.routes for f in _FAMILIES), key=lambda r: r.key)}
)
"""By API key, ascending."""


def routes_of(*, telemetry: bool) -> Mapping[int, Route]:
    """The routes of a broker, by API key; as Apache Kafka's, those for metrics of clients only where they are wanted."""
    if telemetry:
        return ROUTES
    unwanted = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
    return MappingProxyType({key: route for key, route in ROUTES.items() if route.key not in unwanted})


def advertised(routes: Mapping[int, Route]) -> list[ApiVersion]:
    """What ApiVersions says of these routes."""
    return [
        ApiVersion(api_key=key, min_version=route.advertised.start, max_version=route.advertised.stop - 1)
        for key, route in routes.items()
    ]
