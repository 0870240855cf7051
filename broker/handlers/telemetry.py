"""Client metrics (KIP-714): the subscriptions sent to clients, and the metrics they push."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from broker.api.parts import Common, WithRecordWorker, WithTelemetry
from broker.api.routes import Context, Pending, Routes
from broker.errors import BrokerError
from broker.handlers.rooms import SERVED
from broker.protocol.api import ApiKey
from broker.protocol.compression import Codec
from broker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from broker.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from broker.telemetry.otlp import Point, read_points
from broker.work import OFF_THE_LOOP, ON_THE_LOOP, TooMuchWork

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithRecordWorker, WithTelemetry, Protocol):
    """The parts of a broker that these handlers use."""


_AT_ONCE: Final = ON_THE_LOOP._replace(unpacked_bytes=64 * 1024)
"""A message of this size is parsed within a few milliseconds, whatever its content."""


@routes.handles(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions=SERVED[ApiKey.GET_TELEMETRY_SUBSCRIPTIONS])
def get_telemetry_subscriptions(
    context: Context[_Parts], request: GetTelemetrySubscriptionsRequest
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


@routes.handles(ApiKey.PUSH_TELEMETRY, versions=SERVED[ApiKey.PUSH_TELEMETRY])
def push_telemetry(context: Context[_Parts], request: PushTelemetryRequest) -> PushTelemetryResponse | Pending:
    """Accept the metrics of a client."""
    telemetry, metrics = context.broker.telemetry, bytes(request.metrics or b"")
    instance = telemetry.admit(
        request.client_instance_id,
        _attributes(context),
        subscription_id=request.subscription_id,
        terminating=request.terminating,
        compression=request.compression_type,
        metrics=metrics,
    )
    if not metrics:
        return PushTelemetryResponse()

    def taken(said: Sequence[Point]) -> PushTelemetryResponse:
        telemetry.take(instance, said)
        return PushTelemetryResponse()

    def failed(error: BrokerError) -> PushTelemetryResponse:
        telemetry.refuse(instance, error)
        return PushTelemetryResponse(error_code=error.code)

    push = request.compression_type, metrics, telemetry.most_unpacked_bytes
    try:
        return taken(read_points(*push, _AT_ONCE))
    except TooMuchWork:
        worker = context.broker.record_worker
        task = worker.run(read_points, *push, OFF_THE_LOOP, size=len(metrics), records=0)
        if context.connection is not None:
            context.connection.mute_until(task)
        return Pending(task, taken, failed)
    except BrokerError as error:
        return failed(error)


def _attributes(context: Context[_Parts]) -> dict[str, str]:
    """The attributes that subscriptions match clients by."""
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
