"""Kafka Connect's ``connect-worker-rebalance-metrics`` and ``connect-coordinator-metrics``."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from connect.group.membership import Membership
from connect.metrics.families import Families

__all__ = ["RebalanceCollector"]

_GROUP: Final = "connect-worker-rebalance-metrics"


class RebalanceCollector(Collector):
    """Reads the membership at each scrape."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def collect(self) -> Iterable[Metric]:
        group, families = self._membership, Families()
        times = group.rebalance_times_s
        numbers = {
            "completed-rebalances-total": group.rounds,
            # Newer exporters omit "total" for values they do not consider counters, and newer dashboards use those
            # names.
            "completed-rebalances": group.rounds,
            "epoch": group.generation,
            "rebalancing": int(group.rebalancing),
            "time-since-last-rebalance-ms": round((time.monotonic() - group.rebalanced_at) * 1000),
            "rebalance-max-time-ms": max(times, default=0) * 1000,
            "rebalance-avg-time-ms": sum(times) / len(times) * 1000 if times else 0,
        }
        families.attributes(_GROUP, numbers)
        protocol = "eager" if not group.protocol.cooperative else group.protocol.value
        families.sample("kafka_connect_worker_rebalance_leader_name", 1, {"leader_name": group.leader_url or ""})
        families.sample("kafka_connect_worker_rebalance_connect_protocol", 1, {"connect_protocol": protocol})
        connectors = sum(not item.is_task for item in group.running)
        assigned = {"assigned-connectors": connectors, "assigned-tasks": len(group.running) - connectors}
        families.attributes("connect-coordinator-metrics", assigned, confluent={"client_id": group.client_id})
        yield from families.all()
