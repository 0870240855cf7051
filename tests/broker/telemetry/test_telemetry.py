"""Metrics pushed by clients: subscriptions, push intervals, and how the values are processed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import (
    BrokerError,
    CorruptMessage,
    InvalidConfiguration,
    InvalidRecord,
    InvalidRequest,
    TelemetryTooLarge,
    ThrottlingQuotaExceeded,
    UnknownSubscriptionId,
    UnsupportedCompressionType,
)
from broker.protocol.compression import Codec, compress
from broker.telemetry.otlp import _message_class, points, read_points
from broker.telemetry.subscriptions import CurrentSubscriptions, subscription
from broker.telemetry.telemetry import Instance, Telemetry
from broker.work import OFF_THE_LOOP, Allowance

CLIENT = {"client_id": "c1", "client_software_name": "librdkafka"}
NEW = uuid.UUID(int=0)


def pushed(*numbers: tuple[str, float], delta: bool = True, **labels: str) -> bytes:
    """A push as clients send it."""
    message = _message_class()()
    scope = message.resource_metrics.add().scope_metrics.add()
    for name, value in numbers:
        metric = scope.metrics.add(name=name)
        metric.sum.is_monotonic = True
        metric.sum.aggregation_temporality = 1 if delta else 2
        point = metric.sum.data_points.add(as_double=value)
        for label, text in labels.items():
            point.attributes.add(key=label).value.string_value = text
    return bytes(message.SerializeToString())


class Fixture:
    """``now_ms`` and the subscriptions are the test's to set."""

    def __init__(self, **subscriptions: Mapping[str, str]) -> None:
        self.now_ms = 10_000
        self.changes = 0
        self.configs: dict[str, Mapping[str, str]] = dict(subscriptions)
        current = CurrentSubscriptions(lambda: (self.changes, dict(self.configs)))
        self.telemetry = Telemetry(current, 1000, lambda: self.now_ms)

    def configure(self, **subscriptions: Mapping[str, str]) -> None:
        self.configs.update(subscriptions)
        self.changes += 1

    def push(self, instance: Instance, metrics: bytes = b"", **more: Any) -> None:
        request: dict[str, Any] = {"subscription_id": instance.subscription_id, "terminating": False, "compression": 0}
        request |= more
        instance = self.telemetry.admit(instance.id, CLIENT, **request, metrics=metrics)
        if metrics:
            most = self.telemetry.most_unpacked_bytes
            self.telemetry.take(instance, read_points(request["compression"], metrics, most, OFF_THE_LOOP))

    def values(self) -> dict[str, float]:
        return {family.name: sample.value for family in self.telemetry.families() for sample in family.samples}


def test_a_client_is_asked_for_what_the_subscriptions_that_match_it_want() -> None:
    of = Fixture(
        one={"metrics": "a,b", "interval.ms": "2000", "match": "client_software_name=lib.*,client_id=c1"},
        two={"metrics": "c", "interval.ms": "500"},
        other={"metrics": "*", "match": "client_id=c"},
    )
    instance = of.telemetry.ask(NEW, CLIENT)
    assert (instance.metrics, instance.interval_ms) == (["a", "b", "c"], 500)
    assert instance.id != NEW
    other = of.telemetry.ask(NEW, {"client_id": "c"})
    assert other.metrics == ["*"] and other.subscription_id != instance.subscription_id


def test_without_a_subscription_nothing_is_wanted() -> None:
    instance = Fixture().telemetry.ask(NEW, CLIENT)
    assert (instance.metrics, instance.interval_ms) == ([], 300_000)


def test_a_client_may_come_once_in_an_interval() -> None:
    of = Fixture(one={"metrics": "*", "interval.ms": "1000"})
    instance = of.telemetry.ask(NEW, CLIENT)
    with pytest.raises(ThrottlingQuotaExceeded):
        of.telemetry.ask(instance.id, CLIENT)
    of.push(instance)
    with pytest.raises(ThrottlingQuotaExceeded):
        of.push(instance)
    of.now_ms += 1000
    of.push(instance)
    of.now_ms += 1000
    of.telemetry.ask(instance.id, CLIENT)


def test_changed_subscriptions_are_told_at_once() -> None:
    of = Fixture(one={"metrics": "a"})
    instance = of.telemetry.ask(NEW, CLIENT)
    before = instance.subscription_id
    of.configure(one={"metrics": "b"})
    with pytest.raises(UnknownSubscriptionId):
        of.push(instance, subscription_id=before)
    assert of.telemetry.ask(instance.id, CLIENT).metrics == ["b"]
    of.push(instance)


def test_an_invalid_push_gets_its_error_code() -> None:
    of = Fixture(one={"metrics": "*", "interval.ms": "100"})
    instance = of.telemetry.ask(NEW, CLIENT)
    for error, metrics, more in (
        (UnsupportedCompressionType, b"", {"compression": 9}),
        (TelemetryTooLarge, bytes(1001), {}),
        (InvalidRecord, b"\xff", {}),
        (CorruptMessage, b"\xff", {"compression": 4}),
        (InvalidRecord, compress(Codec.ZSTD, bytes(100_000)), {"compression": 4}),
    ):
        of.now_ms += 100
        with pytest.raises(error):
            of.push(instance, metrics, **more)
    with pytest.raises(InvalidRequest):
        of.telemetry.admit(NEW, CLIENT, subscription_id=0, terminating=False, compression=0, metrics=b"")
    of.push(instance, terminating=True)
    of.now_ms += 100
    with pytest.raises(InvalidRequest):
        of.push(instance)


@pytest.mark.parametrize("codec", list(Codec))
def test_numbers_are_shown_and_increments_added_up(codec: Codec) -> None:
    of = Fixture(one={"metrics": "*", "interval.ms": "100"})
    instance = of.telemetry.ask(NEW, CLIENT)
    name = "org.apache.kafka.producer.connection.creation.total"
    for _ in range(2):
        of.push(instance, compress(codec, pushed((name, 3), **{"node-id": "1"})), compression=int(codec))
        of.now_ms += 100
    (family,) = of.telemetry.families()
    (sample,) = family.samples
    assert (family.name, family.kind, sample.value) == ("kafka_client_producer_connection_creation_total", "counter", 6)
    assert dict(sample.labels)["node_id"] == "1" and dict(sample.labels)["client_id"] == "c1"
    of.push(instance, pushed((name, 3), delta=False, **{"node-id": "1"}))
    assert of.values() == {family.name: 3}


def test_clients_that_are_silent_are_forgotten_and_memory_is_bounded() -> None:
    of = Fixture(one={"metrics": "*", "interval.ms": "100"})
    of.telemetry.max_bytes = 1 << 20
    instance = of.telemetry.ask(NEW, CLIENT)
    for i in range(3):
        of.push(instance, pushed(*((f"m{i}.{n}", 1) for n in range(4000))))
        of.now_ms += 100
    assert len(of.values()) == 5000
    with pytest.raises(InvalidRecord):
        of.push(instance, pushed(*((f"m.{n}", 1) for n in range(6000))))
    of.now_ms += 70_000
    assert of.values() == {} and len(of.telemetry) == 0


@pytest.mark.parametrize(
    ("overrides", "error"),
    [
        ({"metrik": "a"}, InvalidRequest),
        ({"interval.ms": "99"}, InvalidRequest),
        ({"interval.ms": "x"}, InvalidConfiguration),
        ({"match": "client_id"}, InvalidConfiguration),
        ({"match": "color=red"}, InvalidConfiguration),
        ({"match": "client_id=("}, InvalidConfiguration),
    ],
)
def test_an_invalid_subscription_is_refused(overrides: Mapping[str, str], error: type[BrokerError]) -> None:
    with pytest.raises(error):
        subscription(overrides)


@given(st.binary(max_size=200))
def test_any_bytes_are_numbers_or_an_error(data: bytes) -> None:
    try:
        for point in points(data, Allowance(OFF_THE_LOOP)):
            assert isinstance(point.value, float)
    except InvalidRecord:
        pass
