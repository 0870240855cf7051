"""What the group does, under the names that the exporters of Kafka Connect's ``connect-worker-rebalance-metrics`` give."""

from __future__ import annotations

import time
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from connect.distributed.membership import Membership

__all__ = ["RebalanceCollector"]

_PREFIX = "kafka_connect_worker_rebalance"


class RebalanceCollector(Collector):
    """Asks the membership at each scrape."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def collect(self) -> Iterable[Metric]:
        group = self._membership
        yield CounterMetricFamily(
            f"{_PREFIX}_completed_rebalances", "Rebalances that this worker has been through.", value=group.rounds
        )
        yield GaugeMetricFamily(f"{_PREFIX}_epoch", "The generation of the group.", value=group.generation)
        yield GaugeMetricFamily(f"{_PREFIX}_rebalancing", "1 while the group rebalances.", value=int(group.rebalancing))
        since_ms = (time.monotonic() - group.rebalanced_at) * 1000
        yield GaugeMetricFamily(
            f"{_PREFIX}_time_since_last_rebalance_ms", "Time since the last rebalance ended.", value=since_ms
        )
        times = group.rebalance_times_s
        yield GaugeMetricFamily(
            f"{_PREFIX}_rebalance_max_time_ms",
            "The longest of the last rebalances.",
            value=max(times, default=0) * 1000,
        )
        mean_s = sum(times) / len(times) if times else 0
        yield GaugeMetricFamily(
            f"{_PREFIX}_rebalance_avg_time_ms", "The mean of the last rebalances.", value=mean_s * 1000
        )
        leader = GaugeMetricFamily(
            f"{_PREFIX}_leader",
            "1, with the leader's address and the protocol.",
            labels=["leader_name", "connect_protocol"],
        )
        protocol = "eager" if not group.protocol.cooperative else group.protocol.value
        leader.add_metric([group.leader_url or "", protocol], 1)
        yield leader
