"""The worker's metrics, named as the Prometheus exporters of Kafka Connect name them (``connect.metrics.families``)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from connect.herder.herder import Herder
from connect.metrics.clients import add_clients, clients_of_process
from connect.metrics.families import Families
from connect.plugins.registry import CONNECTORS, PluginRegistry
from connect.worker.worker import Startups, TaskId, Worker

__all__ = ["ConnectorFacts", "WorkerCollector", "connectors_here"]

_TASK_STATES: Final = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")
_LAG: Final = "Offsets between a sink's task and the end of the partition, as its last fetch saw it."


class ConnectorFacts(NamedTuple):
    """This worker's facts about a connector, or about some of its tasks, which may run on different workers."""

    name: str
    state: str | None
    """None where only tasks of it are here."""
    class_name: str
    type: str
    version: str
    tasks: Mapping[int, str]


def connectors_here(herder: Herder, plugins: PluginRegistry) -> list[ConnectorFacts]:
    """The connectors and tasks that this worker runs. Those without a status are left out."""
    statuses, worker_id = herder.statuses, herder.worker_id
    facts: list[ConnectorFacts] = []
    for name, stored in herder.configs.connectors.items():
        said = statuses.connectors.get(name)
        state = said.state.value.lower() if said is not None and said.worker_id == worker_id else None
        tasks = {
            n: status.state.value.lower()
            for n, status in statuses.tasks.get(name, {}).items()
            if status.worker_id == worker_id
        }
        if state is None and not tasks:
            continue
        class_name = stored.config.get("connector.class", "")
        plugin = plugins.find(class_name, *CONNECTORS)
        version = (said.version if said is not None else None) or "unknown"
        if plugin is None:
            facts.append(ConnectorFacts(name, state, class_name, "unknown", version, tasks))
        else:
            facts.append(ConnectorFacts(name, state, plugin.name, plugin.type.value, version, tasks))
    return facts


class WorkerCollector(Collector):
    """Asks the worker at each scrape: what tasks counted, and the states of what is its part of the group's work."""

    def __init__(
        self, worker: Worker, connectors: Callable[[], Sequence[ConnectorFacts]], about: Callable[[], Mapping[str, str]]
    ) -> None:
        """``about`` gives the facts of ``app-info``, by their names."""
        self._worker, self._connectors, self._about = worker, connectors, about
        self._started_ms = time.time_ns() // 1_000_000

    def collect(self) -> Iterable[Metric]:
        families = Families()
        self._add_about(families)
        for facts in self._connectors():
            _add_connector(families, facts)
        _add_worker(families, self._worker)
        for task, groups in dict(self._worker.statistics).items():
            _add_task(families, task, groups)
        add_clients(families, [*clients_of_process(), *self._worker.clients], self._about()["version"])
        yield from families.all()
        memory = GaugeMetricFamily(
            "tidegate_connect_task_host_memory_bytes", "Resident memory of each task host.", labels=["host"]
        )
        for host, taken in self._worker.host_memory.items():
            memory.add_metric([str(host)], taken)
        yield memory
        yield from _progress(dict(self._worker.progress))

    def _add_about(self, families: Families) -> None:
        about = dict(self._about())
        client = {"client_id": about.pop("client_id")}
        for name, value in {**about, "start_time_ms": str(self._started_ms)}.items():
            # Newer exporters keep "info" for themselves, and newer dashboards ask so.
            for family in ("kafka_connect_app_info", "kafka_connect_app"):
                families.sample(family, 1, {**client, name: value})
        families.sample("kafka_connect_start_time_seconds", self._started_ms / 1000, client)


def _progress(told: Mapping[TaskId, Mapping[str, Any]]) -> Iterable[Metric]:
    """The progress of tasks in long work, such as snapshots and jobs; parts are the tables of a snapshot."""
    task, part = ["connector", "task", "unit"], ["connector", "task", "part"]
    about = "of the long work that a task told of last"
    done = GaugeMetricFamily("tidegate_connect_task_progress_done", f"Units done {about}.", labels=task)
    total = GaugeMetricFamily("tidegate_connect_task_progress_total", f"All units {about}, as estimated.", labels=task)
    left = GaugeMetricFamily(
        "tidegate_connect_task_progress_seconds_left", f"Estimated time to the end {about}.", labels=task
    )
    rows = GaugeMetricFamily(
        "tidegate_connect_task_progress_part_done", f"Units done of each part {about}.", labels=part
    )
    for (connector, number), said in told.items():
        labels = [connector, str(number), str(said["unit"])]
        done.add_metric(labels, said["done"])
        for family, value in ((total, said["total"]), (left, said.get("seconds_left"))):
            if value is not None:
                family.add_metric(labels, value)
        for each in said.get("parts", ()):
            if each.get("done") is not None:
                rows.add_metric([connector, str(number), str(each["name"])], each["done"])
    return done, total, left, rows


def _add_connector(families: Families, facts: ConnectorFacts) -> None:
    name = {"connector": facts.name}
    if facts.state is not None:
        shown = {
            "status": facts.state,
            "connector-class": facts.class_name,
            "connector-type": facts.type,
            "connector-version": facts.version,
        }
        for attribute, text in shown.items():
            labels = name | {attribute.replace("-", "_"): text}
            for family in (f"connector_{attribute}", f"connector_metrics_{attribute}_info", "connector_metrics"):
                families.sample(f"kafka_connect_{family}", 1, labels)
    for number, state in facts.tasks.items():
        for family in ("task_status", "task_metrics_status_info"):
            labels = name | {"task": str(number), "status": state}
            families.sample(f"kafka_connect_connector_{family}", 1, labels)
    counts = Counter(facts.tasks.values())
    numbers = {f"connector-{state}-task-count": counts[state] for state in _TASK_STATES}
    numbers["connector-total-task-count"] = len(facts.tasks)
    families.attributes("connect-worker-metrics", numbers, name)


def _add_worker(families: Families, worker: Worker) -> None:
    numbers: dict[str, float] = {"connector-count": worker.connector_count, "task-count": len(list(worker.running()))}
    for kind, startups in (("connector", worker.connector_startups), ("task", worker.task_startups)):
        numbers |= _startups(kind, startups)
    families.attributes("connect-worker-metrics", numbers, confluent={"connector": "aggregate"})


def _startups(kind: str, startups: Startups) -> dict[str, float]:
    ended = startups.succeeded + startups.failed
    return {
        f"{kind}-startup-attempts-total": startups.attempts,
        f"{kind}-startup-success-total": startups.succeeded,
        f"{kind}-startup-failure-total": startups.failed,
        f"{kind}-startup-success-percentage": startups.succeeded / ended if ended else 0,
        f"{kind}-startup-failure-percentage": startups.failed / ended if ended else 0,
    }


def _add_task(families: Families, task: TaskId, groups: Mapping[str, Any]) -> None:
    labels = {"connector": task[0], "task": str(task[1])}
    for group, values in groups.items():
        if group == "lags":
            for topic, partition, lag in values:
                client = f"connector-consumer-{task[0]}-{task[1]}"
                where = {"topic": topic, "partition": str(partition)}
                families.sample("kafka_consumer_fetch_manager_records_lag", lag, {"clientid": client} | where, _LAG)
                name = "kafka_consumer_consumer_fetch_manager_metrics_records_lag"
                families.sample(name, lag, {"client_id": client} | where, _LAG)
        elif group not in ("job", "missing_topics"):  # they have no counterpart among the metrics
            families.attributes(group, values, labels)
