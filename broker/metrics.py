"""What the broker counts, and how Prometheus sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["ApiCounts", "Gauges", "render"]


@dataclass(slots=True)
class ApiCounts:
    """Requests of one API since the start; seconds are from the frame to the answer, waiting included."""

    requests: int = 0
    errors: int = 0
    seconds: float = 0.0


Gauges = Mapping[str, tuple[str, Callable[[], float]]]
"""Name to (description, value now)."""


def render(apis: Mapping[str, ApiCounts], counters: Gauges, gauges: Gauges) -> bytes:
    """The Prometheus text. The client library is imported by the first scrape: it is not needed before."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector

    from tidegate.kit.metrics import Metrics

    class Now(Collector):
        def collect(self) -> Iterator[Metric]:
            for name, doc, value in (
                ("requests", "Requests handled.", lambda counts: counts.requests),
                ("request_errors", "Requests refused as a whole.", lambda counts: counts.errors),
                ("request_seconds", "Seconds from a request to its answer.", lambda counts: counts.seconds),
            ):
                family = CounterMetricFamily(f"tidegate_broker_{name}", doc, labels=["api"])
                for api, counts in apis.items():
                    family.add_metric([api], value(counts))  # type: ignore[no-untyped-call]
                yield family
            for name, (doc, read) in counters.items():
                yield CounterMetricFamily(f"tidegate_broker_{name}", doc, value=read())
            for name, (doc, read) in gauges.items():
                yield GaugeMetricFamily(f"tidegate_broker_{name}", doc, value=read())

    metrics = Metrics()
    metrics.collect_from(Now())
    return metrics.render()
