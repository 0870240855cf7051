"""Effects of some of a broker's configuration keys on its clients."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.errors import UnsupportedVersion
from broker.protocol.compression import Codec
from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from broker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from broker.protocol.records import batches
from tests.support.broker import BrokerThread, settings
from tests.support.requests import Wire


def commit(broker: BrokerThread) -> None:
    to = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    producer = Producer(to)
    producer.produce("t", "value", partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({**to, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    consumer.close()


def test_group_protocols_that_are_not_named_are_not_served(tmp_path: Path) -> None:
    broker_settings = settings(tmp_path, group_coordinator_rebalance_protocols="classic")
    with BrokerThread(broker_settings) as broker, Wire(broker.port) as wire:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"]
        )
        answer = wire.send(request, ConsumerGroupHeartbeatResponse, 1)
        assert answer.error_code == UnsupportedVersion.code
        commit(broker)


def test_metrics_of_clients_are_not_taken_unless_they_are_wanted(tmp_path: Path) -> None:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=uuid.UUID(int=0))
    for enabled in (True, False):
        broker_settings = settings(tmp_path / str(enabled), client_telemetry_enable=str(enabled).lower())
        with BrokerThread(broker_settings) as broker, Wire(broker.port) as wire:
            if enabled:
                assert wire.send(request, GetTelemetrySubscriptionsResponse, 0).error_code == 0
            else:
                with pytest.raises(AssertionError, match="closed the connection"):
                    wire.send(request, GetTelemetrySubscriptionsResponse, 0)


def test_the_topic_of_offsets_is_written_with_its_codec(tmp_path: Path) -> None:
    for codec in ("4", "0"):
        with BrokerThread(settings(tmp_path, offsets_topic_compression_codec=codec)) as broker:
            commit(broker)
    (written,) = [file.read_bytes() for file in tmp_path.glob("__consumer_offsets-*/*.log") if file.stat().st_size]
    used = [batch.codec for _, batch in batches(memoryview(written))]
    assert used[0] == Codec.ZSTD and used[-1] == Codec.NONE
