"""The client that does nothing wrong while a face is attacked: it makes ordinary requests and measures its slowest answer.

``python -m tests.hostile.witness`` is a process of its own, so that attackers in the test's process do not delay it. It reads its
orders as one line of JSON, works until its standard input ends, and prints what it saw as JSON.

An answer's time is judged without the time for which the machine was busy: the longest time that a thread of the server and one of
the witness waited for a processor (Linux tells it: ``schedstat``) is taken off. A server that computes, blocks or lets the witness queue
is not excused by it, and a machine with other work is no fault of the server. Where the system does not tell, nothing is taken off.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import ssl
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

__all__ = ["ENOUGH", "EVENT", "SUBJECT", "TOPIC", "Orders", "Report", "Witness"]

TOPIC: Final = "witness"
SUBJECT: Final = "witness-value"
EVENT: Final = "Witness__e"
_SCHEMA: Final = '{"type":"record","name":"Seen","fields":[{"name":"number","type":"long"}]}'
ENOUGH: Final = 10
_NEW_CONNECTION_EVERY: Final = 10
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True)
class Orders:
    """Which face to ask, and as whom."""

    face: str
    address: str
    pid: int
    """Of the server."""
    ca: str
    user: str
    password: str
    token: str = ""
    """A session of the events service."""


@dataclass(frozen=True)
class Report:
    answers: int
    slowest_s: float
    """Without the time for which threads waited for a processor."""
    slowest_wall_s: float
    slowest: str
    """Which request that was, and"""
    slowest_at: float
    """when it began (``time.time``)."""
    errors: list[str]


class Witness:
    """The process, from the side of the test."""

    def __init__(self, orders: Orders) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.witness"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent.parent,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(vars(orders)) + "\n")
        self._process.stdin.flush()
        self._lines: list[str] = []
        self._has_answers = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self._lines.append(line)
                self._has_answers.set()
        self._has_answers.set()

    def has_answers(self) -> bool:
        """Whether it has made more than ``ENOUGH`` requests, or has ended: to start it takes a second and more."""
        return self._has_answers.is_set()

    def report(self) -> Report:
        """End it, and what it saw."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=2 * _TIMEOUT_S)
        self._reader.join(_TIMEOUT_S)
        return Report(**json.loads(self._lines[-1]))


def main() -> None:
    orders = Orders(**json.loads(sys.stdin.readline()))
    with contextlib.ExitStack() as stack:
        requests = ASKS[orders.face](orders, stack)
        print(json.dumps(vars(_watch(orders.pid, requests))))


def _watch(pid: int, requests: Iterator[tuple[str, Callable[[], None]]]) -> Report:
    errors: list[str] = []
    slowest, slowest_at, slowest_s, wall_s, answers = "", 0.0, 0.0, 0.0, 0
    for name, ask in requests:
        waits, at, began = (_waits("self"), _waits(pid)), time.time(), time.monotonic()
        try:
            ask()
        except Exception as error:
            errors.append(f"{name}: {type(error).__name__}: {error}")
        took = time.monotonic() - began
        busy_s = _longest_wait_s(waits[0], _waits("self")) + _longest_wait_s(waits[1], _waits(pid))
        answers, wall_s = answers + 1, max(wall_s, took)
        if answers == ENOUGH + 1:
            print("has answers", flush=True)
        if took - busy_s > slowest_s:
            slowest, slowest_at, slowest_s = name, at, took - busy_s
        if select.select([sys.stdin], [], [], 0.01)[0] or len(errors) >= 20:
            break
    return Report(answers, slowest_s, wall_s, slowest, slowest_at, errors)


def _waits(process: int | str) -> dict[str, int]:
    """For how many nanoseconds each thread of a process has waited for a processor so far."""
    waits = {}
    for path in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # the thread has ended
            waits[path.parent.name] = int(path.read_text().split()[1])
    return waits


def _longest_wait_s(before: dict[str, int], after: dict[str, int]) -> float:
    return max((waited - before.get(thread, 0) for thread, waited in after.items()), default=0) / 1e9


class _Http:
    """Requests over a connection that is made anew every now and then."""

    def __init__(self, orders: Orders) -> None:
        parts = urlsplit(orders.address)
        self._context = ssl.create_default_context(cafile=orders.ca)
        self._host, self._port = parts.hostname or "", parts.port or 0
        login = b64encode(f"{orders.user}:{orders.password}".encode()).decode()
        self._headers = {"Authorization": f"Bearer {orders.token}" if orders.token else f"Basic {login}"}
        self._connection: http.client.HTTPSConnection | None = None
        self._sent = 0

    def ask(self, method: str, path: str, body: Any = None, *, status: int = 200) -> None:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=_TIMEOUT_S, context=self._context
            )
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if answer.status != status:
            raise AssertionError(f"{answer.status} {content[:200]!r}")
        self._sent += 1
        if self._sent % _NEW_CONNECTION_EVERY == 0:
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _in_turn(*asks: tuple[str, Callable[[], None]]) -> Iterator[tuple[str, Callable[[], None]]]:
    while True:
        yield from asks


def _registry(orders: Orders, stack: contextlib.ExitStack) -> Iterator[tuple[str, Callable[[], None]]]:
    http_ = stack.enter_context(contextlib.closing(_Http(orders)))
    schema, path = {"schema": _SCHEMA}, f"/subjects/{SUBJECT}"
    http_.ask("POST", f"{path}/versions", schema)
    return _in_turn(
        ("latest version", lambda: http_.ask("GET", f"{path}/versions/latest")),
        ("lookup", lambda: http_.ask("POST", path, schema)),
        ("register again", lambda: http_.ask("POST", f"{path}/versions", schema)),
        ("compatibility", lambda: http_.ask("POST", f"/compatibility{path}/versions/latest", schema)),
    )


def _connect(orders: Orders, stack: contextlib.ExitStack) -> Iterator[tuple[str, Callable[[], None]]]:
    http_ = stack.enter_context(contextlib.closing(_Http(orders)))
    return _in_turn(
        ("list", lambda: http_.ask("GET", "/connectors")),
        ("plugins", lambda: http_.ask("GET", "/connector-plugins")),
        ("status of none", lambda: http_.ask("GET", "/connectors/none/status", status=404)),
    )


def _metrics(orders: Orders, stack: contextlib.ExitStack) -> Iterator[tuple[str, Callable[[], None]]]:
    http_ = stack.enter_context(contextlib.closing(_Http(orders)))
    return _in_turn(("metrics", lambda: http_.ask("GET", "/metrics")))


def _events(orders: Orders, stack: contextlib.ExitStack) -> Iterator[tuple[str, Callable[[], None]]]:
    http_ = stack.enter_context(contextlib.closing(_Http(orders)))
    path = f"/services/data/v60.0/sobjects/{EVENT}"
    return _in_turn(
        ("publish", lambda: http_.ask("POST", path, {"Text__c": "seen"}, status=201)),
        ("describe", lambda: http_.ask("GET", f"{path}/describe")),
    )


def _pubsub(orders: Orders, stack: contextlib.ExitStack) -> Iterator[tuple[str, Callable[[], None]]]:
    import grpc

    from events.proto import pubsub_api_pb2 as pb

    credentials = grpc.ssl_channel_credentials(Path(orders.ca).read_bytes())
    metadata = (
        ("accesstoken", orders.token),
        ("instanceurl", "https://127.0.0.1"),
        ("tenantid", orders.token.partition("!")[0]),
    )
    request = pb.TopicRequest(topic_name=f"/event/{EVENT}")
    channel = stack.enter_context(grpc.secure_channel(orders.address, credentials))

    def get_topic(through: grpc.Channel) -> None:
        call = through.unary_unary(
            "/eventbus.v1.PubSub/GetTopic", pb.TopicRequest.SerializeToString, pb.TopicInfo.FromString
        )
        assert call(request, metadata=metadata, timeout=_TIMEOUT_S).can_subscribe

    def subscribe() -> None:
        call = channel.stream_stream(
            "/eventbus.v1.PubSub/Subscribe", pb.FetchRequest.SerializeToString, pb.FetchResponse.FromString
        )
        asked = pb.FetchRequest(topic_name=f"/event/{EVENT}", num_requested=1, replay_preset=pb.ReplayPreset.EARLIEST)
        responses = call(iter([asked]), metadata=metadata, timeout=_TIMEOUT_S)
        assert next(responses).events
        responses.cancel()

    def connect_anew() -> None:
        # Channels with equal arguments share a connection.
        options = (("grpc.use_local_subchannel_pool", 1),)
        with grpc.secure_channel(orders.address, credentials, options=options) as other:
            get_topic(other)

    return _in_turn(
        *[("topic", lambda: get_topic(channel))] * 6,
        ("subscribe", subscribe),
        ("new connection", connect_anew),
    )


def _broker(orders: Orders, stack: contextlib.ExitStack) -> Iterator[tuple[str, Callable[[], None]]]:
    from confluent_kafka import Consumer, Producer, TopicPartition

    common = {
        "bootstrap.servers": orders.address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": orders.ca,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": orders.user,
        "sasl.password": orders.password,
        "log_level": 0,
    }
    producer = Producer({**common, "linger.ms": 0, "enable.idempotence": True, "acks": "all"})
    settings = {**common, "group.id": TOPIC, "enable.auto.commit": False, "fetch.wait.max.ms": 100}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    stack.callback(consumer.close)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    sent = 0

    def produce() -> None:
        nonlocal sent
        refused: list[str] = []
        producer.produce(TOPIC, b"%d" % sent, on_delivery=lambda error, _: error and refused.append(str(error)))
        sent += 1
        assert producer.flush(_TIMEOUT_S) == 0 and not refused, refused

    received = 0

    def consume() -> None:
        nonlocal received
        end = time.monotonic() + _TIMEOUT_S
        while received < sent and time.monotonic() < end:
            for message in consumer.consume(100, 0.2):
                assert message.error() is None, message.error()
                assert message.value() == b"%d" % received, (message.value(), received)
                received += 1
        assert received == sent

    def connect_anew() -> None:
        other = Producer(common)
        assert TOPIC in other.list_topics(TOPIC, _TIMEOUT_S).topics

    produce()  # the library waits half a second and more for its first connection before it asks for a producer's id
    return _in_turn(*[("produce", produce)] * 6, ("consume", consume), ("new connection", connect_anew))


ASKS: Final = {
    "broker": _broker,
    "registry": _registry,
    "connect": _connect,
    "events": _events,
    "pubsub": _pubsub,
    "metrics": _metrics,
}

if __name__ == "__main__":
    main()
