"""The metrics of a broker, with the names that are common for Apache Kafka in Prometheus.

Kafka's JMX metrics are named as by JMX exporter's broker rules in Confluent's ``jmx-monitoring-stacks``: domain, type
and name in lower case; the count of a meter or histogram under the plain name, its percentiles with a ``quantile``. Lag
and offsets are named as by danielqsj's ``kafka_exporter``. Metrics that only this broker has begin with
``tidegate_broker_``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from broker.broker import Broker
from broker.errors import NONE, error_for
from broker.log.partition import PartitionLog
from broker.metrics.requests import PERCENTILES, RequestMetrics, quantiles
from broker.metrics.text import Family, Sample
from broker.protocol.api import ApiKey

__all__ = ["Network", "error_name", "families"]

_RUNNING: Final = 3

_REQUEST_TIMES: Final = {
    "totaltimems": "total",
    "requestqueuetimems": "request_queue",
    "localtimems": "local",
    "remotetimems": "remote",
    "responsequeuetimems": "response_queue",
    "responsesendtimems": "response_send",
    "throttletimems": "throttle",
}
_TOPIC_COUNTS: Final = {
    "messagesinpersec": ("messages_in", "Records appended."),
    "bytesinpersec": ("bytes_in", "Bytes of records appended."),
    "bytesoutpersec": ("bytes_out", "Bytes of records read by consumers."),
    "failedproducerequestspersec": ("failed_produces", "Appends to a partition that were refused."),
    "failedfetchrequestspersec": ("failed_fetches", "Reads of a partition that were refused."),
}
_NAMED_OTHERWISE: Final = {
    13: "NetworkException",
    17: "InvalidTopicException",
    40: "InvalidConfig",
    45: "OutOfOrderSequenceNumber",
    46: "DuplicateSequenceNumber",
    49: "InvalidProducerIdMapping",
    50: "InvalidTransactionTimeout",
    68: "NonEmptyGroup",
}
"""Errors whose names in Kafka's table differ from those of its exceptions."""
_QUOTA_RATES: Final = {
    "producer_byte_rate": ("produce_byte_rate", "Bytes produced a second by whom a quota holds."),
    "consumer_byte_rate": ("fetch_byte_rate", "Bytes fetched a second by whom a quota holds."),
    "request_percentage": ("request_request_time", "Hundredths of the broker's time taken by whom a quota holds."),
}
_GROUP_STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")


class Network(NamedTuple):
    """Counts of the server's connections."""

    by_listener: Mapping[str, int]
    authenticated: Mapping[str, int]
    """Successful authentications by listener, without listeners that do not authenticate."""
    failed: Mapping[str, int]
    """Failed authentications by listener."""
    accepted: int
    refused: int
    bytes_in: int
    bytes_out: int
    compactions: int
    slow_requests: int


def families(broker: Broker, requests: Mapping[ApiKey, RequestMetrics], network: Network) -> Iterator[Family]:
    """All metric families. Samples are computed lazily."""
    yield from _requests(requests)
    yield from _topics(broker, requests)
    yield from _cluster(broker)
    yield from _logs(broker)
    yield from _groups(broker)
    yield from _connections(network)
    yield from _quotas(broker)
    yield from _tidegate_metrics(broker, requests, network)
    if broker.uses("telemetry"):
        yield from broker.telemetry.families()


def _counter(name: str, doc: str, value: float, *labels: tuple[str, str]) -> Family:
    return Family(name, doc, "counter", [Sample(value, labels)])


def _gauge(name: str, doc: str, value: float, *labels: tuple[str, str]) -> Family:
    return Family(name, doc, "gauge", [Sample(value, labels)])


def _requests(requests: Mapping[ApiKey, RequestMetrics]) -> Iterator[Family]:
    prefix = "kafka_network_requestmetrics_"
    seen = [(key, metrics, metrics.quantiles()) for key, metrics in requests.items() if metrics.requests]
    yield Family(
        prefix + "requestspersec",
        "Requests answered.",
        "counter",
        [
            Sample(count, (("request", name), ("version", str(version))))
            for key, metrics, _ in seen
            for name in _names(key)
            for version, count in enumerate(metrics.versions)
            if count
        ],
    )
    yield Family(
        prefix + "errorspersec",
        "Answers by error: NONE those without any, others once for each part of an answer.",
        "counter",
        [
            Sample(count, (("request", name), ("error", error_name(code))))
            for key, metrics in requests.items()
            for name in _names(key)
            for code, count in ((NONE, metrics.without_error), *metrics.errors.items())
            if count
        ],
    )
    for metric, part in _REQUEST_TIMES.items():
        yield Family(
            prefix + metric,
            f"Milliseconds of requests ({part.replace('_', ' ')}): how many requests, and quantiles of the last ones.",
            "untyped",
            [
                sample
                for key, metrics, parts in seen
                for name in _names(key)
                for sample in _histogram(metrics.requests, parts[part], ("request", name))
            ],
        )


def _names(key: ApiKey) -> tuple[str, ...]:
    # Kafka counts fetches of consumers and of followers separately, and all fetches together.
    return ("Fetch", "FetchConsumer") if key is ApiKey.FETCH else (key.title,)


def _histogram(count: int, seconds: list[float], *labels: tuple[str, str]) -> Iterator[Sample]:
    yield Sample(count, labels)
    for quantile, value in zip(PERCENTILES, seconds, strict=True):
        yield Sample(
            round(value * 1000, 3), (*labels, ("quantile", f"{quantile:.2f}" if quantile < 0.999 else "0.999"))
        )


def error_name(code: int) -> str:
    """The name in Kafka's table of errors."""
    if code == NONE:
        return "NONE"
    error = error_for(code)
    if error.code != code:
        return f"ERROR_{code}"
    name = _NAMED_OTHERWISE.get(code) or type(error).__name__
    return "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in name).lstrip("_")


def _topics(broker: Broker, requests: Mapping[ApiKey, RequestMetrics]) -> Iterator[Family]:
    prefix = "kafka_server_brokertopicmetrics_"
    total = broker.topic_metrics.total()
    for metric, (field, doc) in _TOPIC_COUNTS.items():
        samples = [Sample(getattr(total, field))]
        samples += [
            Sample(getattr(counts, field), (("topic", topic),))
            for topic, counts in broker.topic_metrics.by_topic.items()
        ]
        yield Family(prefix + metric, f"{doc} Without a topic: in all.", "counter", samples)
    for metric, key in (("totalproducerequestspersec", ApiKey.PRODUCE), ("totalfetchrequestspersec", ApiKey.FETCH)):
        yield _counter(prefix + metric, "Requests.", requests[key].requests)


def _cluster(broker: Broker) -> Iterator[Family]:
    topics = broker.metadata.topics.values()
    partitions = sum(topic.partitions for topic in topics)
    below = sum(topic.partitions for topic in topics if _min_insync_replicas(broker, topic.name) > 1)
    offline = len(broker.logs.offline)
    replicas, controller = "kafka_server_replicamanager_", "kafka_controller_kafkacontroller_"
    yield _gauge(replicas + "partitioncount", "Partitions here.", partitions)
    yield _gauge(replicas + "leadercount", "Partitions led here: all.", partitions)
    yield _gauge(replicas + "underreplicatedpartitions", "Partitions with a replica that lags: none, each has one.", 0)
    yield _gauge(replicas + "underminisrpartitioncount", "Partitions with min.insync.replicas above 1.", below)
    yield _gauge(replicas + "offlinereplicacount", "Partitions whose log cannot be used.", offline)
    yield _gauge(controller + "activecontrollercount", "1: this broker is the controller.", 1)
    yield _gauge(controller + "offlinepartitionscount", "Partitions that cannot be used.", offline)
    yield _gauge(controller + "globaltopiccount", "Topics.", len(topics))
    yield _gauge(controller + "globalpartitioncount", "Partitions.", partitions)
    yield _gauge(controller + "activebrokercount", "Brokers: this one.", 1)
    dead = sum(disk.failure is not None for disk in broker.logs.disks)
    yield _gauge("kafka_log_logmanager_offlinelogdirectorycount", "Data directories that cannot be used.", dead)
    yield _gauge("kafka_server_kafkaserver_brokerstate", "3: running.", _RUNNING)
    yield _gauge("kafka_brokers", "Brokers: this one.", 1)
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"
    yield _gauge(purgatory, "Requests that wait.", len(broker.arrivals), ("delayedoperation", "Fetch"))
    cache = "kafka_server_fetchsessioncache_"
    yield _gauge(cache + "numincrementalfetchsessions", "Fetch sessions.", len(broker.fetch_sessions))
    yield _gauge(
        cache + "numincrementalfetchpartitionscached", "Partitions in fetch sessions.", broker.fetch_sessions.partitions
    )
    yield _counter(
        cache + "incrementalfetchsessionevictionspersec",
        "Fetch sessions given up for others.",
        broker.fetch_sessions.evictions,
    )


def _min_insync_replicas(broker: Broker, topic: str) -> int:
    """The value of the topic's first log, because parsing the configuration of each topic would take long."""
    log = broker.logs.get(topic, 0)
    return 1 if log is None else log.config.min_insync_replicas


def _logs(broker: Broker) -> Iterator[Family]:
    def each(read: str) -> Iterator[Sample]:
        for log in list(broker.logs.all()):
            yield Sample(getattr(log, read), _of(log))

    log = "kafka_log_log_"
    yield Family(log + "size", "Bytes on disk.", "gauge", each("size"))
    yield Family(log + "logstartoffset", "The first offset.", "gauge", each("log_start_offset"))
    yield Family(log + "logendoffset", "The offset of the next record.", "gauge", each("log_end_offset"))
    yield Family(
        "kafka_topic_partitions",
        "Partitions.",
        "gauge",
        [Sample(topic.partitions, (("topic", topic.name),)) for topic in broker.metadata.topics.values()],
    )
    yield Family("kafka_topic_partition_oldest_offset", "The first offset.", "gauge", each("log_start_offset"))
    yield Family(
        "kafka_topic_partition_current_offset", "The offset of the next record.", "gauge", each("log_end_offset")
    )
    flushes = broker.durability
    yield Family(
        "kafka_log_logflushstats_logflushrateandtimems",
        "Flushes for acks=all, and milliseconds each took.",
        "untyped",
        list(_histogram(flushes.rounds, quantiles(flushes.samples))),
    )


def _of(log: PartitionLog) -> tuple[tuple[str, str], ...]:
    return ("topic", log.topic), ("partition", str(log.partition))


def _groups(broker: Broker) -> Iterator[Family]:
    listed = broker.groups.list_groups()
    manager = "kafka_coordinator_group_groupmetadatamanager_"
    yield _gauge(manager + "numgroups", "Groups.", len(listed))
    for state in _GROUP_STATES:
        count = sum(group.state == state for group in listed)
        yield _gauge(f"{manager}numgroups{state.lower()}", f"Groups in state {state}.", count)
    offsets = {group.group_id: broker.groups.fetch_offsets(group.group_id) for group in listed}
    yield _gauge(manager + "numoffsets", "Committed offsets.", sum(map(len, offsets.values())))
    current: list[Sample] = []
    lags: list[Sample] = []
    current_sums: list[Sample] = []
    lag_sums: list[Sample] = []
    for group_id, committed in offsets.items():
        sums: dict[str, list[int]] = {}
        for (topic, partition), committed_offset in committed.items():
            labels = (("consumergroup", group_id), ("topic", topic), ("partition", str(partition)))
            log = broker.logs.get(topic, partition)
            if log is None:
                continue
            lag = max(log.log_end_offset - committed_offset.offset, 0)
            current.append(Sample(committed_offset.offset, labels))
            lags.append(Sample(lag, labels))
            total = sums.setdefault(topic, [0, 0])
            total[0] += committed_offset.offset
            total[1] += lag
        for topic, (offset, lag) in sums.items():
            current_sums.append(Sample(offset, (("consumergroup", group_id), ("topic", topic))))
            lag_sums.append(Sample(lag, (("consumergroup", group_id), ("topic", topic))))
    yield Family("kafka_consumergroup_current_offset", "The offset a group committed.", "gauge", current)
    yield Family("kafka_consumergroup_lag", "Offsets between that and the end of the partition.", "gauge", lags)
    yield Family("kafka_consumergroup_current_offset_sum", "Committed offsets of a topic.", "gauge", current_sums)
    yield Family("kafka_consumergroup_lag_sum", "Lag in a topic.", "gauge", lag_sums)


def _quotas(broker: Broker) -> Iterator[Family]:
    """The recent usage of clients with a quota."""
    if not broker.quotas.active:
        return
    samples: dict[str, list[Sample]] = {}
    for key, entity, rate in broker.quotas.rates():
        samples.setdefault(key, []).append(
            Sample(rate, tuple((kind.replace("-", "_"), name or "") for kind, name in entity))
        )
    for key, (name, doc) in _QUOTA_RATES.items():
        if key in samples:
            yield Family(f"kafka_server_{name}", doc, "gauge", samples[key])


def _connections(network: Network) -> Iterator[Family]:
    prefix = "kafka_server_socketservermetrics_"
    yield Family(
        prefix + "connection_count",
        "Connections open now.",
        "gauge",
        [Sample(count, _listener(listener)) for listener, count in network.by_listener.items()],
    )
    for outcome, counts in (("successful", network.authenticated), ("failed", network.failed)):
        yield Family(
            prefix + f"{outcome}_authentication_total",
            f"Authentications that were {outcome}.",
            "counter",
            [Sample(count, _listener(listener)) for listener, count in counts.items()],
        )
    yield _counter(prefix + "connection_creation_total", "Connections accepted.", network.accepted)
    yield _counter(prefix + "incoming_byte_total", "Bytes received.", network.bytes_in)
    yield _counter(prefix + "outgoing_byte_total", "Bytes sent.", network.bytes_out)


def _listener(name: str) -> tuple[tuple[str, str], ...]:
    return ("listener", name), ("network_processor", "0")


def _tidegate_metrics(broker: Broker, requests: Mapping[ApiKey, RequestMetrics], network: Network) -> Iterator[Family]:
    prefix = "tidegate_broker_"
    yield _counter(prefix + "connections_refused_total", "Connections closed because of a limit.", network.refused)
    yield _counter(prefix + "flush_seconds_total", "Seconds spent in flushes for acks=all.", broker.durability.seconds)
    yield _counter(prefix + "compactions_total", "Logs compacted.", network.compactions)
    yield _counter(
        prefix + "slow_requests_total", "Requests above slow.request.log.threshold.ms.", network.slow_requests
    )
    failed = sum(len(disk.upkeep.failed) for disk in broker.logs.disks)
    yield _gauge(prefix + "partitions_refusing_writes", "Partitions whose disk is full or fails.", failed)
    for name, doc, field in (
        ("request_bytes_total", "Bytes of requests.", "request_bytes"),
        ("response_bytes_total", "Bytes of answers.", "response_bytes"),
    ):
        samples = [
            Sample(getattr(request, field), (("request", key.title),))
            for key, request in requests.items()
            if request.requests
        ]
        yield Family(prefix + name, doc, "counter", samples)
