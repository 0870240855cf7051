"""Clients by other authors push their metrics, and the broker shows them."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.servers.kafka import kafka_tool
from tests.support.broker import BrokerThread, settings


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerThread]:
    with BrokerThread({**settings(tmp_path), "client.telemetry.enable": "true"}) as running:
        yield running


def test_metrics_that_a_subscription_asks_for_are_shown(broker: BrokerThread) -> None:
    kafka_tool(
        "org.apache.kafka.tools.ClientMetricsCommand",
        *("--bootstrap-server", broker.bootstrap_servers, "--alter", "--name", "all", "--metrics", "*"),
        *("--interval", "200", "--match", "client_id=watched"),
    )
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "client.id": "watched", "enable.metrics.push": True}
    )
    deadline = time.monotonic() + 60
    text = ""
    while 'client_id="watched"' not in text and time.monotonic() < deadline:
        producer.produce("t", b"v")
        producer.flush(5)
        with urllib.request.urlopen(broker.addresses["broker-metrics"], timeout=60) as answer:
            text = str(answer.read(), "utf-8")
        time.sleep(0.1)
    assert "kafka_client_producer_connection_creation_total{" in text
