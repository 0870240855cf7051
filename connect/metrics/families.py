"""Attributes of Kafka Connect's JMX groups under the names of the two usual sets of exporter rules.

| group | Strimzi's rules | Confluent's ``jmx-monitoring-stacks`` |
| --- | --- | --- |
| ``source-task-metrics`` | ``kafka_connect_source_task_…`` | ``kafka_connect_source_task_metrics_…`` |
| ``connect-worker-metrics`` | ``kafka_connect_worker_…`` | ``kafka_connect_connect_worker_metrics_…`` |

The groups of Kafka's clients (``producer-metrics``) are ``kafka_producer_…`` in Strimzi's rules and
``kafka_producer_producer_metrics_…`` in Confluent's. Dashboards for either work, also at the same time. Strimzi's
reporter uses Confluent's names, and adds ``_info`` to text attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

__all__ = ["Families"]


class Families:
    """Collects samples by family."""

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
        by_label = dict(labels or {})
        short = group.removesuffix("-metrics").removeprefix("connect-")
        self.sample(f"kafka_connect_{short}_{name}", value, by_label)
        self.sample(f"kafka_connect_{group}_{name}", value, by_label | dict(confluent or {}))

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

    def client(
        self, domain: str, group: str, values: Mapping[str, float], client_id: str, node_id: str | None = None
    ) -> None:
        """Numbers of a Kafka client's group (``producer-node``).

        Strimzi's rules spell the labels without underscores.
        """
        strimzi, confluent = {"clientid": client_id}, {"client_id": client_id}
        if domain != "connect":
            confluent["client_type"] = domain.replace("-", "_")
        if node_id is not None:
            strimzi["nodeid"] = confluent["node_id"] = node_id
        for name, value in values.items():
            self.sample(f"kafka_{group}_{name}", value, strimzi)
            self.sample(f"kafka_{domain}_{group}_metrics_{name}", value, confluent)
            if name.endswith("-total"):
                # Newer exporters omit it for values they do not consider counters, and newer dashboards use those
                # names.
                self.sample(f"kafka_{domain}_{group}_metrics_{name.removesuffix('-total')}", value, confluent)

    def sample(self, name: str, value: float, labels: Mapping[str, str], doc: str = "") -> None:
        """A number under exactly this name; if that ends in "total" it is a counter."""
        name = name.replace("-", "_")
        family = self._families.get(name)
        if family is None:
            doc = doc or f"Kafka Connect's {name.removeprefix('kafka_').removeprefix('connect_').replace('_', ' ')}."
            if name.endswith("_total"):
                family = CounterMetricFamily(name.removesuffix("_total"), doc)
            else:
                family = GaugeMetricFamily(name, doc)
            self._families[name] = family
        family.add_sample(name, dict(labels), value)

    def all(self) -> Iterable[Metric]:
        return self._families.values()
