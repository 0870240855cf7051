"""Prometheus metrics: one ``Metrics`` per component, declared in that component's ``metrics.py``, served at
``/metrics``.
"""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.registry import Collector

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one component. Metric and label names follow the exporters of the originals, if they exist."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

    def counter(self, name: str, doc: str, labels: Sequence[str] = ()) -> Counter:
        return Counter(name, doc, labels, registry=self.registry)

    def gauge(self, name: str, doc: str, labels: Sequence[str] = ()) -> Gauge:
        return Gauge(name, doc, labels, registry=self.registry)

    def histogram(self, name: str, doc: str, labels: Sequence[str] = (), buckets: Sequence[float] = ()) -> Histogram:
        """A distribution in seconds (or the unit in its name), by default with Prometheus' usual buckets."""
        chosen = tuple(buckets) or Histogram.DEFAULT_BUCKETS
        return Histogram(name, doc, labels, registry=self.registry, buckets=chosen)

    def collect_from(self, collector: Collector) -> None:
        """Call ``collector`` at each scrape, for hot paths that count in plain integers."""
        self.registry.register(collector)

    def render(self) -> bytes:
        return generate_latest(self.registry)
