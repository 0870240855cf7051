"""Metrics of clients (KIP-714): what they are asked for, and what they push."""

from __future__ import annotations

from broker.handlers.routes import Context, Routes
from broker.protocol.api import ApiKey
from broker.protocol.compression import Codec
from broker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from broker.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

__all__ = ["routes"]

routes = Routes()


@routes.handles(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions=range(1))
def get_telemetry_subscriptions(
    context: Context, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Tell a client which metrics to push and how often. Advertised with `client.telemetry.enable`."""
    telemetry = context.broker.telemetry
    instance = telemetry.ask(request.client_instance_id, _attributes(context))
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=(Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY),
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=instance.metrics,
    )


@routes.handles(ApiKey.PUSH_TELEMETRY, versions=range(1))
def push_telemetry(context: Context, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Take the metrics of a client."""
    context.broker.telemetry.push(
        request.client_instance_id,
        _attributes(context),
        subscription_id=request.subscription_id,
        terminating=request.terminating,
        compression=request.compression_type,
        metrics=bytes(request.metrics or b""),
    )
    return PushTelemetryResponse()


def _attributes(context: Context) -> dict[str, str]:
    """What subscriptions can choose clients by."""
    connection = context.connection
    attributes = {"client_id": context.client_id, "client_source_address": context.client_host}
    if connection is not None:
        name, version = connection.software
        attributes |= {
            "client_software_name": name,
            "client_software_version": version,
            "client_source_port": str(connection.peer_port),
        }
    return attributes
