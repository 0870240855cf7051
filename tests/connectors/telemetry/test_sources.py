"""The sources of telemetry on the bench, with the clients that people use: Python's SysLogHandler and ``logger``, statsd's client,
OpenTelemetry's exporters. And a worker, which answers OTLP when the log has the records.
"""

from __future__ import annotations

import logging
import logging.handlers
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests
import statsd
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from connect.api import Acknowledged, ConnectError
from connect.bench import Bench, RunningTask
from connectors.telemetry.config import OtlpConfig, SyslogConfig
from connectors.telemetry.source import OtlpSource, StatsdSource, SyslogSource
from tests.connectors.telemetry.requests_of import logs_request
from tests.servers.process import free_ports, wait_until
from tests.support.platform import running_platform
from tidegate.kit.config import validate

LETTERS = "unreadable"


class Source:
    """A source that listens on one free port for each scheme."""

    def __init__(self, connector_class, *schemes: str, **more: str) -> None:
        self.ports = dict(zip(schemes, free_ports(len(schemes)), strict=True))
        topic = {} if connector_class is OtlpSource else {"topic": "telemetry"}
        self.bench = Bench(
            connector_class,
            {
                "listeners": ",".join(f"{scheme}://127.0.0.1:{port}" for scheme, port in self.ports.items()),
                "errors.deadletterqueue.topic.name": LETTERS,
                **topic,
                **{name.replace("_", "."): value for name, value in more.items()},
            },
        )

    def datagram(self, data: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(data, ("127.0.0.1", self.ports["udp"]))

    def stream(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.ports["tcp"]), timeout=60)


def values(running: RunningTask, count: int) -> list[dict]:
    return [record.value for batch in running.poll_rows(count) for record in batch.records()]


def counts(running: RunningTask) -> dict[str, int]:
    """The counts of now."""
    running.task._told_at = 0.0
    running.task.poll()
    return {part["name"]: part["done"] for part in running.context.parts_told[-1]}


def test_the_handler_of_python_and_logger_send_syslog():
    source = Source(SyslogSource, "udp", "tcp")
    record = logging.LogRecord("shop", logging.ERROR, __file__, 1, "no stock of tea", None, None)
    program = shutil.which("logger")
    with source.bench.task() as running:
        for scheme, kind in (("udp", socket.SOCK_DGRAM), ("tcp", socket.SOCK_STREAM)):
            address = ("127.0.0.1", source.ports[scheme])
            handler = logging.handlers.SysLogHandler(address, facility="local3", socktype=kind)
            handler.ident = "shop[7]: "
            handler.emit(record)
            handler.emit(record)
            handler.close()
            shown = ("format", "facility", "severity", "app_name", "process_id", "message")
            for of_python in values(running, 2):
                assert [of_python[name] for name in shown] == ["rfc3164", 19, 3, "shop", "7", "no stock of tea"]
        for options in (
            ([], ["--rfc3164"], ["--octet-count"], ["--udp", "--port", str(source.ports["udp"])]) if program else ()
        ):
            to = ["--server", "127.0.0.1", "--tcp", "--port", str(source.ports["tcp"])]
            subprocess.run(
                [program, *to, "-t", "till", "-p", "user.warning", *options, "tea is out"], check=True, timeout=60
            )
            (of_logger,) = values(running, 1)
            assert of_logger["format"] == ("rfc3164" if options == ["--rfc3164"] else "rfc5424")
            assert [of_logger[name] for name in ("facility", "severity", "app_name", "message")] == [
                1,
                4,
                "till",
                "tea is out",
            ]
            assert abs(of_logger["received"] - of_logger["time"]).total_seconds() < 3600
            assert of_logger["hostname"]


def test_frames_of_tcp_and_what_is_malformed():
    source = Source(SyslogSource, "tcp", "udp", message_max_bytes="64")
    with source.bench.task() as running, source.stream() as stream:
        stream.sendall(b"<1>line\n9 <1>count\n<1>" + b"x" * 500 + b"\n\n<1>next\r\nnothing\n<1>last")
        stream.shutdown(socket.SHUT_WR)
        source.datagram(b"<1>" + b"y" * 62)
        with source.stream() as wrong:
            wrong.sendall(b"99999 <1>a\n<1>not read\n")
            assert wrong.recv(1) == b""  # it is closed: nobody knows where the next message begins
        batches = running.poll_rows(8)
        read = [r.value for batch in batches for r in batch.records()]
        assert [value["message"] for value in read if "error" not in value] == ["line", "count", "next", "last"]
        letters = {value["message"]: value["error"] for value in read if "error" in value}
        assert {message[:4]: error for message, error in letters.items()} == {
            "<1>x": "it is longer than message.max.bytes=64",
            "<1>y": "it is longer than message.max.bytes=64",
            "noth": "it should begin with a priority from <0> to <191>",
            "9999": "the length before it should be at most 64, followed by a space",
        }
        assert counts(running) == {"received": 8, "dropped": 0, "malformed": 4, "refused": 0}
        assert running.context.skipped == 4
        assert {batch.topic for batch in batches} == {"telemetry", LETTERS}


def test_the_client_of_statsd():
    source = Source(StatsdSource, "udp", "tcp")
    with source.bench.task() as running:
        by_udp = statsd.StatsClient("127.0.0.1", source.ports["udp"], prefix="shop")
        by_udp.incr("sold", 3)
        by_udp.gauge("stock", -2, delta=True)
        with by_udp.pipeline() as pipe:
            pipe.timing("wait", 320)
            pipe.set("visitors", "anna")
        by_udp.close()
        read = values(running, 4)
        assert [(v["name"], v["type"], v["value"], v["member"], v["relative"]) for v in read] == [
            ("shop.sold", "counter", 3.0, None, False),
            ("shop.stock", "gauge", -2.0, None, True),
            ("shop.wait", "timer", 320.0, None, False),
            ("shop.visitors", "set", None, "anna", False),
        ]
        by_tcp = statsd.TCPStatsClient("127.0.0.1", source.ports["tcp"])
        by_tcp.incr("sold")
        assert [value["name"] for value in values(running, 1)] == ["sold"]
        by_tcp.close()
        source.datagram(b"a:1|c\nb:x|c\nc:1|c")
        assert [value.get("name") or value["error"] for value in values(running, 3)] == [
            "a",
            "c",
            "its value 'x' is no number",
        ]


def test_a_full_queue_drops_datagrams_and_stops_reading_connections():
    source = Source(StatsdSource, "udp", "tcp", queue_max_messages="10")
    with source.bench.task() as running, source.stream() as stream:
        inbox, told = running.task._receiver.inbox, running.task._receiver.counts
        for number in range(15):
            source.datagram(b"udp:%d|c" % number)
        wait_until(lambda: told.received == 15, "datagrams received")
        assert (len(inbox), told.dropped) == (10, 5)
        stream.sendall(b"".join(b"tcp:%d|c\n" % number for number in range(20)))
        wait_until(lambda: told.received == 16, "a line received")  # it waits with the first one
        assert len(inbox) == 10
        read = values(running, 30)
        assert [value["value"] for value in read if value["name"] == "udp"] == list(range(10))
        assert [value["value"] for value in read if value["name"] == "tcp"] == list(range(20))
        assert counts(running) == {"received": 35, "dropped": 5, "malformed": 0, "refused": 0}


def test_a_message_of_many_rows_becomes_batches_of_a_bounded_size():
    source = Source(StatsdSource, "udp")
    tags = "|#" + "t" * 5000
    with source.bench.task() as running:
        source.datagram(f"a{':1' * 7000}|ms".encode())
        source.datagram(f"b{':1' * 7000}|ms{tags}".encode())
        batches = running.poll_rows(14_000)
        source.datagram(b"x\n" * 7000)
        letters = running.poll_rows(7000)
    assert max(len(batch) for batch in letters) == 5000
    assert max(len(batch) for batch in batches) == 5000
    assert max(batch.nbytes for batch in batches) < 4 * 1024 * 1024
    assert [v["name"] for batch in batches for v in batch.values.to_pylist()] == ["a"] * 7000 + ["b"] * 7000


def test_connections_above_the_limit_are_closed():
    source = Source(SyslogSource, "tcp", connections_max="1")
    with source.bench.task() as running, source.stream() as first:
        first.sendall(b"<1>a\n")
        assert len(values(running, 1)) == 1
        with source.stream() as second:
            assert second.recv(1) == b""
        assert counts(running)["refused"] == 1
        first.sendall(b"<1>b\n")
        assert len(values(running, 1)) == 1


@contextmanager
def polling(running: RunningTask, *, acknowledge: bool = True) -> Iterator[list]:
    """Polls in a thread as a worker does, and tells of what it has written. Yields the batches so far."""
    batches: list = []
    ended = threading.Event()

    def poll() -> None:
        while not ended.is_set():
            got = running.task.poll()
            batches.extend(got)
            if acknowledge:
                running.task.acknowledged([Acknowledged(None, b.offsets, b.topic, 0, 0) for b in got if b.offsets])

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield batches
    finally:
        ended.set()
        thread.join()


def test_the_exporters_of_opentelemetry():
    source = Source(OtlpSource, "http")
    url = f"http://127.0.0.1:{source.ports['http']}/v1"
    resource = Resource.create({"service.name": "shop"})
    with source.bench.task() as running, polling(running) as batches:
        meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter(f"{url}/metrics"), 1e9)], resource)
        meters.get_meter("till").create_counter("sold").add(3, {"item": "tea"})
        meters.get_meter("till").create_histogram("wait", "s").record(0.3)
        assert meters.force_flush()  # the exporter got its answer
        meters.shutdown()
        tracers = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(f"{url}/traces", compression=Compression.Gzip)
        tracers.add_span_processor(SimpleSpanProcessor(exporter))
        with tracers.get_tracer("till").start_as_current_span("sell") as span:
            span.add_event("paid", {"amount": 4.5})
        tracers.shutdown()
        read = {batch.topic: [record.value for record in batch.records()] for batch in batches}
    metrics = {value["name"]: value for value in read["otlp-metrics"]}
    assert (metrics["sold"]["value"], metrics["sold"]["attributes"]) == (3.0, {"item": "tea"})
    assert (metrics["wait"]["count"], metrics["wait"]["sum"], metrics["wait"]["unit"]) == (1, 0.3, "s")
    (of_span,) = read["otlp-traces"]
    assert (of_span["name"], of_span["kind"], of_span["status"]) == ("sell", "internal", "unset")
    assert (of_span["service"], of_span["scope"]) == ("shop", "till")
    assert [(each["name"], each["attributes"]) for each in of_span["events"]] == [("paid", {"amount": "4.5"})]
    assert of_span["end"] >= of_span["start"]


def test_requests_that_are_refused():
    source = Source(OtlpSource, "http", message_max_bytes="1000")
    url = f"http://127.0.0.1:{source.ports['http']}/v1/logs"
    protobuf = {"Content-Type": "application/x-protobuf"}
    with source.bench.task() as running:
        for status, said, body, headers in (
            (415, b"OTLP's JSON is not read", b"{}", {"Content-Type": "application/json"}),
            (415, b"should be gzip or identity", b"", protobuf | {"Content-Encoding": "br"}),
            (400, b"the body is not gzip", b"x", protobuf | {"Content-Encoding": "gzip"}),
            (400, b"it is no protobuf message ExportLogsServiceRequest", b"\xff", protobuf),
            (413, b"1000", b"x" * 1001, protobuf),
        ):
            answer = requests.post(url, body, headers=headers, timeout=60)
            assert (answer.status_code, said in answer.content) == (status, True), answer.content
        assert requests.get(url, timeout=60).status_code == 405
        (letter,) = values(running, 1)
        assert letter["message"] == "\\xff"


def test_requests_wait_for_the_log_and_for_room_in_the_queue():
    source = Source(OtlpSource, "http", queue_max_messages="1")
    url = f"http://127.0.0.1:{source.ports['http']}/v1/logs"
    answers: list[int] = []

    def send() -> None:
        headers = {"Content-Type": "application/x-protobuf"}
        answers.append(requests.post(url, logs_request(), headers=headers, timeout=60).status_code)

    with source.bench.task() as running:
        first = threading.Thread(target=send)
        first.start()
        wait_until(lambda: len(running.task._receiver.inbox) == 1, "a request received")
        send()
        assert answers == [503]
        (batch,) = running.poll_rows(1)
        assert answers == [503]  # the log does not have it yet
        running.task.acknowledged([Acknowledged(None, batch.offsets, batch.topic, 0, 0)])
        first.join()
        assert answers == [503, 200]
        assert counts(running)["refused"] == 1


def test_what_a_configuration_should_say():
    def errors(config_class, **properties: str) -> list[str]:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        return [error for judged in validate(config_class, named) for error in judged.errors]

    assert errors(SyslogConfig, topic="t", listeners="udp://0.0.0.0:514,tcp://[::1]:514") == []
    assert errors(OtlpConfig, listeners="http://127.0.0.1:4318") == []
    for wrong in ("udp://nowhere", "http://127.0.0.1:1", "udp://127.0.0.1:514/path"):
        (said,) = errors(SyslogConfig, topic="t", listeners=wrong)
        assert f"'{wrong}' should be udp://HOST:PORT or tcp://HOST:PORT" in said
    (said,) = errors(OtlpConfig, listeners="udp://127.0.0.1:1")
    assert "should be http://HOST:PORT" in said


@pytest.mark.parametrize("scheme", ["udp", "tcp"])
def test_an_address_in_use_is_named(scheme):
    source = Source(SyslogSource, scheme)
    with source.bench.task(), pytest.raises(ConnectError, match=f"cannot listen on {scheme}://127.0.0.1:.*in use"):
        with source.bench.task():
            pass


@pytest.mark.proof  # a platform starts
@pytest.mark.long
def test_a_worker_answers_when_the_log_has_the_records_and_tells_of_the_counts(tmp_path):
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/v1/logs"
    with running_platform(tmp_path, "--without", "events") as platform:
        platform.create("otlp", connector__class="OtlpSource", listeners=f"http://127.0.0.1:{port}", tasks__max=1)
        headers = {"Content-Type": "application/x-protobuf"}
        for status, body in ((200, logs_request()), (400, b"\xff")):
            assert requests.post(url, body, headers=headers, timeout=60).status_code == status
        (record,) = platform.consume("otlp-logs")  # it was there before the answer
        assert record["value"]["body"] == '{"list": [1], "bytes": "/w==", "none": null}'
        labels = 'connector="otlp",part="%s",task="0"'

        def counted(part: str, count: int) -> bool:
            sample = f"tidegate_connect_task_progress_part_done{{{labels % part}}} {count}.0"
            return sample in requests.get(f"{platform.addresses['connect']}/metrics", timeout=60).text

        for part, count in (("received", 2), ("malformed", 1), ("dropped", 0), ("refused", 0)):
            wait_until(lambda part=part, count=count: counted(part, count), f"{part} is {count}")
