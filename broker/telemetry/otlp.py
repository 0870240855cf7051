"""The metrics in a push: OpenTelemetry's ``MetricsData``, as far as Kafka's clients use it.

The few messages are described here by their field numbers (opentelemetry/proto/metrics/v1/metrics.proto, 1.x), because
the complete package pins a protobuf older than ours.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from broker.errors import InvalidRecord
from broker.protocol.compression import decompress_within
from broker.work import Allowance, Budget

__all__ = ["MOST_POINTS", "Point", "points", "read_points"]

MOST_POINTS: Final = 5_000
"""The most numbers in one push, and the most kept per client."""

_DELTA: Final = 1
"""AGGREGATION_TEMPORALITY_DELTA."""

_FIELDS: Final[dict[str, tuple[tuple[str, int, str, bool], ...]]] = {
    "MetricsData": (("resource_metrics", 1, "ResourceMetrics", True),),
    "ResourceMetrics": (("resource", 1, "Resource", False), ("scope_metrics", 2, "ScopeMetrics", True)),
    "Resource": (("attributes", 1, "KeyValue", True),),
    "ScopeMetrics": (("metrics", 2, "Metric", True),),
    "Metric": (("name", 1, "string", False), ("gauge", 5, "Gauge", False), ("sum", 7, "Sum", False)),
    "Gauge": (("data_points", 1, "NumberDataPoint", True),),
    "Sum": (
        ("data_points", 1, "NumberDataPoint", True),
        ("aggregation_temporality", 2, "int32", False),
        ("is_monotonic", 3, "bool", False),
    ),
    "NumberDataPoint": (
        ("as_double", 4, "double", False),
        ("as_int", 6, "sfixed64", False),
        ("attributes", 7, "KeyValue", True),
    ),
    "KeyValue": (("key", 1, "string", False), ("value", 2, "AnyValue", False)),
    "AnyValue": (
        ("string_value", 1, "string", False),
        ("bool_value", 2, "bool", False),
        ("int_value", 3, "int64", False),
        ("double_value", 4, "double", False),
    ),
}
"""(name, number, type, repeated) of each message's fields."""


class Point(NamedTuple):
    """One number that a client reports.

    ``counts`` marks a counter; ``delta`` means an increment since the last report.
    """

    name: str
    value: float
    labels: tuple[tuple[str, str], ...]
    counts: bool
    delta: bool


def read_points(compression: int, metrics: bytes, most_bytes: int, budget: Budget) -> list[Point]:
    """The numbers in a push that decompresses to at most ``most_bytes``.

    Raises InvalidRecord, CorruptMessage, TooMuchWork.
    """
    allowance = Allowance(budget)
    data = decompress_within(compression, metrics, allowance)
    if len(data) > most_bytes:
        raise InvalidRecord(f"Metrics that become {len(data)} bytes are not taken: {most_bytes} are.")
    said: list[Point] = []
    for point in points(data, allowance):
        said.append(point)
        if len(said) > MOST_POINTS:
            raise InvalidRecord(f"More than {MOST_POINTS} numbers were pushed at once.")
    return said


def points(data: bytes | memoryview, allowance: Allowance) -> Iterator[Point]:
    """Gauges and sums. Kafka's clients send no other kinds (histograms). Raises InvalidRecord, TooMuchWork."""
    from google.protobuf.message import DecodeError

    message = _message_class()()
    try:
        message.ParseFromString(bytes(data))
    except DecodeError as error:
        raise InvalidRecord(f"The metrics pushed are not OpenTelemetry's MetricsData: {error}") from error
    for of_resource in message.resource_metrics:
        resource = _labels(of_resource.resource.attributes)
        allowance.spend(1 + len(of_resource.resource.attributes))
        for scope in of_resource.scope_metrics:
            allowance.spend(1)
            for metric in scope.metrics:
                allowance.spend(1)
                yield from _of_metric(metric, resource)


def _of_metric(metric: Any, resource: dict[str, str]) -> Iterator[Point]:
    counts = bool(metric.sum.is_monotonic)
    delta = metric.sum.aggregation_temporality == _DELTA
    for point in (*metric.gauge.data_points, *metric.sum.data_points):
        value = point.as_int if point.HasField("as_int") else point.as_double
        labels = {**resource, **_labels(point.attributes)}
        yield Point(metric.name, float(value), tuple(sorted(labels.items())), counts, delta)


def _labels(attributes: Any) -> dict[str, str]:
    return {attribute.key: _text(attribute.value) for attribute in attributes}


def _text(value: Any) -> str:
    for field, _, _, _ in _FIELDS["AnyValue"]:
        if value.HasField(field):
            return str(getattr(value, field))
    return ""


@functools.cache
def _message_class() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    package = "tidegate.telemetry"
    file = descriptor_pb2.FileDescriptorProto(name="tidegate/telemetry.proto", package=package, syntax="proto3")
    for name, fields in _FIELDS.items():
        declared = file.message_type.add(name=name)
        for field_name, number, kind, repeated in fields:
            field = declared.field.add(name=field_name, number=number)
            field.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if kind in _FIELDS:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
                if not repeated and name in ("NumberDataPoint", "AnyValue"):
                    # Alternatives: only with presence can we see which was sent.
                    field.proto3_optional = True
                    field.oneof_index = len(declared.oneof_decl)
                    declared.oneof_decl.add(name=f"_{field_name}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.MetricsData"))
