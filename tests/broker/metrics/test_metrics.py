"""The contents of /metrics and of the log of slow requests."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from broker.api.routes import Context
from broker.metric_families import error_name
from broker.metrics.requests import PERCENTILES, RequestMetrics, Times, error_codes, quantiles
from broker.metrics.text import Family, Sample, lines
from broker.metrics.topics import TopicMetrics
from broker.network.slow_requests import SlowRequests
from broker.protocol.api import ApiKey
from broker.protocol.fetch import FetchResponse, PartitionFetched
from broker.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from broker.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tests.support.broker import BrokerThread, settings

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(broker: BrokerThread) -> Samples:
    with urllib.request.urlopen(broker.addresses["broker-metrics"], timeout=60) as answer:
        text = str(answer.read(), "utf-8")
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples, f"{key} is there twice"
            samples[key] = sample.value
    return samples


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def test_names_and_numbers_are_those_of_kafkas_exporters(tmp_path: Path) -> None:
    with BrokerThread(settings(tmp_path)) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for _ in range(3):
            producer.produce("t", b"x" * 100)
            producer.flush(60)
        client = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        consumer = Consumer(client)
        consumer.subscribe(["t"])
        for _ in range(3):
            assert consumer.poll(20) is not None
        consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        samples = scrape(broker)
        consumer.close()
    topic = {"topic": "t"}
    assert value(samples, "kafka_server_brokertopicmetrics_messagesinpersec_total", **topic) == 3
    assert value(samples, "kafka_server_brokertopicmetrics_bytesinpersec_total", **topic) > 300
    assert value(samples, "kafka_server_brokertopicmetrics_bytesoutpersec_total", **topic) > 300
    where = {**topic, "partition": "0"}
    assert value(samples, "kafka_log_log_logendoffset", **where) == 3
    of_group = {"consumergroup": "g", **where}
    assert value(samples, "kafka_consumergroup_current_offset", **of_group) == 1
    assert value(samples, "kafka_consumergroup_lag", **of_group) == 2
    assert value(samples, "kafka_consumergroup_lag_sum", consumergroup="g", **topic) == 2
    assert value(samples, "kafka_network_requestmetrics_totaltimems", request="Produce") == 3
    for part in ("total", "requestqueue", "local", "remote", "responsequeue", "responsesend", "throttle"):
        for quantile in ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999"):
            labels = {"request": "FetchConsumer", "quantile": quantile}
            assert value(samples, f"kafka_network_requestmetrics_{part}timems", **labels) >= 0
    errors = "kafka_network_requestmetrics_errorspersec_total"
    assert value(samples, errors, request="Produce", error="NONE") == 3
    for name in (
        "kafka_controller_kafkacontroller_activecontrollercount",
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
    ):
        assert value(samples, name) == 1
    for name in (
        "kafka_server_replicamanager_underreplicatedpartitions",
        "kafka_controller_kafkacontroller_offlinepartitionscount",
    ):
        assert value(samples, name) == 0
    assert value(samples, "kafka_server_replicamanager_partitioncount") == 5  # with those of __consumer_offsets


@given(st.text(), st.floats(allow_nan=False))
def test_any_label_can_be_read_back(label: str, number: float) -> None:
    text = "".join(lines(Family("m", "A metric.", "gauge", [Sample(number, (("l", label),))])))
    ((sample,),) = (family.samples for family in text_string_to_metric_families(text))
    assert (sample.labels["l"], sample.value) == (label, number)


def test_errors_are_found_at_any_depth() -> None:
    parts = [OffsetCommitResponsePartition(partition_index=i, error_code=code) for i, code in enumerate((0, 3, 25))]
    assert [*error_codes(OffsetCommitResponse(topics=[OffsetCommitResponseTopic(partitions=parts)]))] == [3, 25]
    fetched = FetchResponse([("t", [PartitionFetched(0, 1), PartitionFetched(1)])], error_code=70)
    assert [*error_codes(fetched)] == [70, 1]
    bad = MetadataResponseTopic(error_code=3, partitions=[MetadataResponsePartition(error_code=5)])
    assert [*error_codes(MetadataResponse(topics=[bad]))] == [3]


def test_errors_have_kafkas_names() -> None:
    for error in ErrorCode:
        known = error_name(error.value)
        assert known in (error.name.upper(), f"ERROR_{error.value}")
    assert error_name(3) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_quantiles_are_of_the_last_requests() -> None:
    assert quantiles([]) == [0.0] * len(PERCENTILES)
    metrics = RequestMetrics(3)
    for i in range(5000):
        metrics.samples.append((0.0, float(i), 0.0, 0.0, 0.0, 0.0))
    assert metrics.quantiles()["total"][0] == pytest.approx(4486, abs=2)


def test_totals_do_not_fall_when_a_topic_goes() -> None:
    metrics = TopicMetrics()
    metrics.by_topic["t"].bytes_in += 5
    metrics.failed_produce(None)
    metrics.forget("t")
    assert (metrics.total().bytes_in, metrics.total().failed_produces, len(metrics.by_topic)) == (5, 1, 0)


def look(slow: SlowRequests, key: ApiKey, now: float, local: float = 0.0, remote: float = 0.0) -> None:
    context = Context(None, 3, "c", "10.0.0.1", "PLAINTEXT")  # type: ignore[arg-type]
    slow.look(key, context, Times(0.0, local, remote, 0.0, 0.0, 0.0), (10, 20), now)


def test_a_slow_request_is_logged_with_where_its_time_went() -> None:
    slow = SlowRequests(0.5)
    with capture_logs() as logged:
        look(slow, ApiKey.PRODUCE, 1.0, local=0.1, remote=0.6)
        look(slow, ApiKey.PRODUCE, 1.0, local=0.1)
        look(slow, ApiKey.FETCH, 1.0, remote=30)
        look(slow, ApiKey.FETCH, 1.0, local=0.6, remote=30)
    assert [(line["api"], line["total_ms"]) for line in logged] == [("Produce", 700.0), ("Fetch", 30600.0)]
    assert (logged[0]["client"], logged[0]["request_bytes"], logged[0]["remote_ms"]) == ("10.0.0.1", 10, 600.0)
    assert slow.count == 2


def test_a_stall_does_not_fill_the_log() -> None:
    slow = SlowRequests(0)
    with capture_logs() as logged:
        for i in range(100):
            look(slow, ApiKey.HEARTBEAT, 1.0 + i / 1000, local=1)
        look(slow, ApiKey.HEARTBEAT, 2.0, local=1)
    assert len(logged) == 12 and logged[10]["count"] == 90 and slow.count == 101
    with capture_logs() as logged:
        look(SlowRequests(-1), ApiKey.HEARTBEAT, 1.0, local=1000)
    assert logged == []
