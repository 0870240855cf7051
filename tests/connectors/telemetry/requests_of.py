"""Requests of OTLP with a bit of everything."""

from __future__ import annotations

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

__all__ = ["logs_request", "metrics_request"]


def metrics_request() -> bytes:
    request = ExportMetricsServiceRequest()
    of_resource = request.resource_metrics.add()
    of_resource.resource.attributes.add(key="service.name").value.string_value = "shop"
    metrics = of_resource.scope_metrics.add(scope={"name": "meter"}).metrics
    point = {"time_unix_nano": 1_700_000_000_123_456_789}
    metrics.add(name="load", unit="1").gauge.data_points.add(as_int=3, **point)
    metrics.add(name="sold").sum.CopyFrom(
        type(metrics.add().sum)(aggregation_temporality=2, is_monotonic=True, data_points=[{"as_double": 2.5, **point}])
    )
    metrics.add(name="wait").histogram.data_points.add(
        count=3, sum=6.5, explicit_bounds=[1.0], bucket_counts=[1, 2], min=0.5, max=4, **point
    )
    metrics.add(name="size").exponential_histogram.data_points.add(count=2**64 - 1, **point)
    metrics.add(name="old").summary.data_points.add(count=2, sum=3, **point)
    metrics.add(name="none of a kind")
    return request.SerializeToString()


def logs_request() -> bytes:
    request = ExportLogsServiceRequest()
    log = (
        request.resource_logs.add()
        .scope_logs.add()
        .log_records.add(time_unix_nano=2**64 - 1, severity_number=9, trace_id=b"\x01" * 16)
    )
    items = log.body.kvlist_value.values
    items.add(key="list").value.array_value.values.add(int_value=1)
    items.add(key="bytes").value.bytes_value = b"\xff"
    items.add(key="none")
    log.attributes.add(key="on").value.bool_value = True
    log.attributes.add(key="share").value.double_value = 0.5
    return request.SerializeToString()
