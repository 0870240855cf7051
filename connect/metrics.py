"""The worker's metrics, named as the Prometheus exporters of Kafka Connect name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from connect.worker import TaskId

__all__ = ["WorkerCollector"]


class WorkerCollector(Collector):
    """Asks the worker at each scrape: what tasks counted, and the states there are."""

    def __init__(
        self,
        statistics: Callable[[], Mapping[TaskId, Mapping[str, Any]]],
        states: Callable[[], Iterable[tuple[str, int | None, str]]],
        host_memory: Callable[[], Mapping[int, int]] = dict,
    ) -> None:
        self._statistics, self._states, self._host_memory = statistics, states, host_memory

    def collect(self) -> Iterable[Metric]:
        connectors = GaugeMetricFamily(
            "kafka_connect_connector_status", "1 for the state each connector is in.", labels=["connector", "status"]
        )
        tasks = GaugeMetricFamily(
            "kafka_connect_connector_task_status",
            "1 for the state each task is in.",
            labels=["connector", "task", "status"],
        )
        for name, number, state in self._states():
            if number is None:
                connectors.add_metric([name, state.lower()], 1)
            else:
                tasks.add_metric([name, str(number), state.lower()], 1)
        yield connectors
        yield tasks
        memory = GaugeMetricFamily(
            "tidegate_connect_task_host_memory_bytes", "Resident memory of each task host.", labels=["host"]
        )
        for host, taken in self._host_memory().items():
            memory.add_metric([str(host)], taken)
        yield memory
        families: dict[str, Metric] = {}
        for (name, number), values in self._statistics().items():
            for key, value in values.items():
                metric = f"kafka_connect_{key.replace('-', '_')}"
                family = families.setdefault(key, _family(metric, key))
                family.add_metric([name, str(number)], value)  # type: ignore[attr-defined]
        yield from families.values()


def _family(metric: str, key: str) -> Metric:
    labels = ["connector", "task"]
    doc = f"{key.replace('-', ' ')} of the task."
    if key.endswith("-total"):
        return CounterMetricFamily(metric.removesuffix("_total"), doc, labels=labels)
    return GaugeMetricFamily(metric, doc, labels=labels)
