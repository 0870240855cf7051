"""Requests of OTLP, as OpenTelemetry's protobuf messages have them, to flat rows. The only importer of ``opentelemetry.proto``."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError

from connect.api import Schema, SchemaType
from connectors.telemetry.malformed import Malformed

__all__ = ["KEY", "SIGNALS", "Signal", "decoded", "refusal", "rows_of", "signal"]

_STRING: Final = Schema(SchemaType.STRING)
_TEXT: Final = Schema(SchemaType.STRING, optional=True)
_NUMBER: Final = Schema(SchemaType.FLOAT64, optional=True)
_TIME: Final = Schema.timestamp(optional=True)
_ATTRIBUTES: Final = Schema.map(_STRING, _STRING)
_ABOUT: Final = {"attributes": _ATTRIBUTES, "resource": _ATTRIBUTES, "scope": _TEXT, "service": _TEXT}
KEY: Final = _TEXT

SIGNALS: Final = ("logs", "metrics", "traces")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST: Final = 2**63 - 1
_MESSAGES: Final = {
    "logs": ("opentelemetry.proto.collector.logs.v1.logs_service_pb2", "ExportLogsService"),
    "metrics": ("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2", "ExportMetricsService"),
    "traces": ("opentelemetry.proto.collector.trace.v1.trace_service_pb2", "ExportTraceService"),
}

_SCHEMAS: Final = {
    "logs": Schema.struct(
        {
            "time": _TIME,
            "observed": _TIME,
            "severity": Schema(SchemaType.INT32),
            "severity_text": _TEXT,
            "body": _TEXT,
            "trace_id": _TEXT,
            "span_id": _TEXT,
            **_ABOUT,
        },
        name="tidegate.telemetry.OtlpLog",
    ),
    "metrics": Schema.struct(
        {
            "name": _STRING,
            "type": _STRING,
            "unit": _TEXT,
            "time": _TIME,
            "start": _TIME,
            "value": _NUMBER,
            "count": Schema(SchemaType.INT64, optional=True),
            "sum": _NUMBER,
            "min": _NUMBER,
            "max": _NUMBER,
            "bounds": Schema.array(Schema(SchemaType.FLOAT64), optional=True),
            "buckets": Schema.array(Schema(SchemaType.INT64), optional=True),
            "temporality": _TEXT,
            "monotonic": Schema(SchemaType.BOOLEAN, optional=True),
            **_ABOUT,
        },
        name="tidegate.telemetry.OtlpMetric",
    ),
    "traces": Schema.struct(
        {
            "trace_id": _STRING,
            "span_id": _STRING,
            "parent_span_id": _TEXT,
            "name": _STRING,
            "kind": _STRING,
            "start": _TIME,
            "end": _TIME,
            "status": _STRING,
            "status_message": _TEXT,
            "events": Schema.array(
                Schema.struct(
                    {"time": _TIME, "name": _STRING, "attributes": _ATTRIBUTES}, name="tidegate.telemetry.OtlpEvent"
                )
            ),
            **_ABOUT,
        },
        name="tidegate.telemetry.OtlpSpan",
    ),
}
"""Records of logs, data points of metrics and spans. What they lack is null."""


class Signal(NamedTuple):
    schema: Schema
    request: Callable[[], Any]
    """Its protobuf message."""
    answer: bytes
    """That everything was taken."""


@cache
def signal(name: str) -> Signal:
    """Raises ImportError without opentelemetry-proto."""
    from importlib import import_module

    module, service = _MESSAGES[name]
    messages = import_module(module)
    answer = getattr(messages, f"{service}Response")()
    return Signal(_SCHEMAS[name], getattr(messages, f"{service}Request"), answer.SerializeToString())


def decoded(name: str, body: bytes) -> Any:
    """The request as protobuf message. Raises Malformed."""
    request = signal(name).request()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise Malformed(f"it is no protobuf message {request.DESCRIPTOR.name}") from error
    return request


def refusal(text: str) -> bytes:
    """The body of an answer that is an error: ``google.rpc.Status``."""
    from google.rpc import status_pb2

    return bytes(status_pb2.Status(message=text).SerializeToString())


def rows_of(name: str, request: Any) -> Iterator[tuple[dict[str, Any], int]]:
    """The rows of a decoded request, each with its bytes: what rows have in common counts for each."""
    rows = {"logs": _logs, "metrics": _metrics, "traces": _spans}[name]
    for of_resource in getattr(request, {"traces": "resource_spans"}.get(name, f"resource_{name}")):
        resource = _attributes(of_resource.resource.attributes)
        service = resource.get("service.name")
        for of_scope in getattr(
            of_resource, {"logs": "scope_logs", "metrics": "scope_metrics"}.get(name, "scope_spans")
        ):
            about = {"resource": resource, "service": service, "scope": of_scope.scope.name or None}
            size = of_resource.resource.ByteSize() + len(of_scope.scope.name)
            for row, more in rows(of_scope):
                yield row | about, size + more


def _logs(of_scope: Any) -> Iterator[tuple[dict[str, Any], int]]:
    for log in of_scope.log_records:
        row = {
            "time": _time(log.time_unix_nano),
            "observed": _time(log.observed_time_unix_nano),
            "severity": log.severity_number,
            "severity_text": log.severity_text or None,
            "body": _text(log.body),
            "trace_id": log.trace_id.hex() or None,
            "span_id": log.span_id.hex() or None,
            "attributes": _attributes(log.attributes),
        }
        yield row, log.ByteSize()


def _spans(of_scope: Any) -> Iterator[tuple[dict[str, Any], int]]:
    for span in of_scope.spans:
        row = {
            "trace_id": span.trace_id.hex(),
            "span_id": span.span_id.hex(),
            "parent_span_id": span.parent_span_id.hex() or None,
            "name": span.name,
            "kind": _name(span, "kind", span.kind, "SPAN_KIND_"),
            "start": _time(span.start_time_unix_nano),
            "end": _time(span.end_time_unix_nano),
            "status": _name(span.status, "code", span.status.code, "STATUS_CODE_"),
            "status_message": span.status.message or None,
            "events": [
                {"time": _time(each.time_unix_nano), "name": each.name, "attributes": _attributes(each.attributes)}
                for each in span.events
            ],
            "attributes": _attributes(span.attributes),
        }
        yield row, span.ByteSize()


def _metrics(of_scope: Any) -> Iterator[tuple[dict[str, Any], int]]:
    for metric in of_scope.metrics:
        kind = metric.WhichOneof("data")
        if kind is None:
            continue
        data = getattr(metric, kind)
        temporality = None
        if kind not in ("gauge", "summary"):
            prefix = "AGGREGATION_TEMPORALITY_"
            temporality = _name(data, "aggregation_temporality", data.aggregation_temporality, prefix)
        about = {
            "name": metric.name,
            "type": kind,
            "unit": metric.unit or None,
            "temporality": temporality,
            "monotonic": data.is_monotonic if kind == "sum" else None,
        }
        for point in data.data_points:
            yield about | _point(kind, point), point.ByteSize() + len(metric.name) + len(metric.unit)


def _point(kind: str, point: Any) -> dict[str, Any]:
    has = {field.name for field, _ in point.ListFields()}
    values: dict[str, Any] = dict.fromkeys(("value", "count", "sum", "min", "max", "bounds", "buckets"))
    if kind in ("gauge", "sum"):
        which = point.WhichOneof("value")
        values["value"] = None if which is None else float(getattr(point, which))
    else:
        values["count"] = min(point.count, _LARGEST)
        values |= {name: float(getattr(point, name)) for name in ("sum", "min", "max") if name in has}
    if kind == "histogram":
        values |= {"bounds": list(point.explicit_bounds), "buckets": [min(n, _LARGEST) for n in point.bucket_counts]}
    return values | {
        "time": _time(point.time_unix_nano),
        "start": _time(point.start_time_unix_nano),
        "attributes": _attributes(point.attributes),
    }


def _name(message: Any, field: str, number: int, prefix: str) -> str:
    """The name of a number of an enumeration without its prefix, in lower case; the number itself if it has none."""
    known = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number.get(number)
    return str(number) if known is None else str(known.name).removeprefix(prefix).lower()


def _attributes(pairs: Iterable[Any]) -> dict[str, str]:
    return {pair.key: _text(pair.value) or "" for pair in pairs}


def _text(value: Any) -> str | None:
    """A value as text: strings as they are, bytes as base64, anything else as JSON; None without a value."""
    plain = _plain(value)
    return plain if plain is None or isinstance(plain, str) else json.dumps(plain)


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    inner = getattr(value, kind)
    if kind == "bytes_value":
        return base64.b64encode(inner).decode("ascii")
    if kind == "array_value":
        return [_plain(each) for each in inner.values]
    if kind == "kvlist_value":
        return {pair.key: _plain(pair.value) for pair in inner.values}
    return inner


def _time(nanoseconds: int) -> datetime | None:
    """None for 0, which says that a time is unknown. A timestamp of Connect has milliseconds."""
    return _EPOCH + timedelta(milliseconds=nanoseconds // 1_000_000) if nanoseconds else None
