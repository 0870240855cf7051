"""Attributes of Kafka Connect's JMX groups under the names that the two usual sets of exporter rules give them.

| group | Strimzi's rules | Confluent's ``jmx-monitoring-stacks`` |
| --- | --- | --- |
| ``source-task-metrics`` | ``kafka_connect_source_task_…`` | ``kafka_connect_source_task_metrics_…`` |
| ``connect-worker-metrics`` | ``kafka_connect_worker_…`` | ``kafka_connect_connect_worker_metrics_…`` |

Dashboards made for either work, and so do both at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

__all__ = ["Families"]


class Families:
    """Collects samples and gives them by family."""

    def __init__(self) -> None:
        self._families: dict[str, Metric] = {}

    def attribute(
        self,
        group: str,
        name: str,
        value: float,
        labels: Mapping[str, str] | None = None,
        *,
        confluent: Mapping[str, str] | None = None,
    ) -> None:
        """One number of a group (``sink-task-metrics``); ``confluent`` are labels that only Confluent's rules add."""
        given = dict(labels or {})
        short = group.removesuffix("-metrics").removeprefix("connect-")
        self.sample(f"kafka_connect_{short}_{name}", value, given)
        self.sample(f"kafka_connect_{group}_{name}", value, given | dict(confluent or {}))

    def attributes(
        self,
        group: str,
        values: Mapping[str, float],
        labels: Mapping[str, str] | None = None,
        *,
        confluent: Mapping[str, str] | None = None,
    ) -> None:
        for name, value in values.items():
            self.attribute(group, name, value, labels, confluent=confluent)

    def sample(self, name: str, value: float, labels: Mapping[str, str], doc: str = "") -> None:
        """A number under this name alone; one that ends in "total" is a counter."""
        name = name.replace("-", "_")
        family = self._families.get(name)
        if family is None:
            doc = doc or f"Kafka Connect's {name.removeprefix('kafka_connect_').replace('_', ' ')}."
            if name.endswith("_total"):
                family = CounterMetricFamily(name.removesuffix("_total"), doc)
            else:
                family = GaugeMetricFamily(name, doc)
            self._families[name] = family
        family.add_sample(name, dict(labels), value)

    def all(self) -> Iterable[Metric]:
        return self._families.values()
