"""Ten minutes of requests and record batches that no client sends: the broker responds or closes the connection, and
other clients are not affected.
"""

from __future__ import annotations

import contextlib
import json
import random
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.proofs import effort
from tests.proofs.fuzz.mutate import mutated
from tests.proofs.fuzz.requests import APIS, request
from tests.proofs.fuzz.values import Names
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.leftovers import left_by_hostile_clients
from tests.support.wire import receive_frame

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]

SECONDS: Final = effort(20, 600)
SEED: Final = 1
ANSWER_S: Final = 30.0
GROWTH_BYTES: Final = 220 * 1024 * 1024
"""A page of state takes less, a leak takes more."""
MOST_BYTES: Final = 700 * 1024 * 1024
"""The limit for the broker with its processes that read records: each may have 128 MiB of them, twice for a moment."""
SLOWEST_S: Final = 10.0
"""The witness's timeout, for a machine under load."""
TOPICS: Final = {
    "fuzz-plain": {},
    "fuzz-compacted": {"cleanup.policy": "compact"},
    "fuzz-packed": {"compression.type": "lz4", "message.timestamp.type": "LogAppendTime"},
}
WRONG_IN_LOG: Final = ("a handler failed", "could not be read", "Traceback", "exception was never retrieved")


class Witness(threading.Thread):
    """A client that does nothing wrong: it produces and consumes all the while and counts what goes wrong for it."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.errors: Counter[str] = Counter()
        self.sent = self.acknowledged = 0
        self.longest_s = 0.0
        self.received: list[int] = []
        common = {"bootstrap.servers": bootstrap_servers, "log_level": 0, "error_cb": self._failed}
        self._producer = Producer({**common, "linger.ms": 0, "enable.idempotence": True})
        self._consumer = Consumer(
            {**common, "group.id": "witness", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 100}
        )

    def _failed(self, error: Any) -> None:
        self.errors[error.name()] += 1

    def run(self) -> None:
        self._consumer.subscribe(["witness"])
        while not self.over.is_set():
            self._send()
            self._receive(0.02)
        end = time.monotonic() + 60
        while len(self.received) < self.sent and time.monotonic() < end:
            self._receive(0.2)
        self._consumer.close()

    def _send(self) -> None:
        began = time.monotonic()

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                self.errors[error.name()] += 1
            else:
                self.acknowledged += 1
                self.longest_s = max(self.longest_s, time.monotonic() - began)

        self._producer.produce("witness", b"%d" % self.sent, on_delivery=delivered)
        self.sent += 1
        self._producer.flush(60)

    def _receive(self, seconds: float) -> None:
        for message in self._consumer.consume(100, seconds):
            if message.error() is None:
                self.received.append(int(message.value()))


class Most(threading.Thread):
    """The most memory that a process and those that it started had together."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.bytes = 0
        self._process = process

    def run(self) -> None:
        while not self.over.wait(0.02):
            total = 0
            for process in (self._process, *self._process.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    total += process.memory_info().rss
            self.bytes = max(self.bytes, total)


class Fuzzer:
    """Sends cases one after the other over its own connections; ``wrong`` describes the result of each bad case."""

    def __init__(self, broker: TidegateBroker, names: Names, folder: Path) -> None:
        self._broker, self._names, self._folder = broker, names, folder
        self._log = broker.process.log
        self._seen = 0
        self._socket: socket.socket | None = None
        self.outcomes: Counter[str] = Counter()
        self.longest_s = 0.0
        self.wrong: dict[str, str] = {}
        self.cases = 0

    def case(self, number: int) -> None:
        chance = random.Random(SEED * 1_000_000_007 + number)
        # record batches have more possible forms than any other request
        api = (
            next(api_found for api_found in APIS if api_found.key == 0)
            if chance.random() < 0.15
            else chance.choice(APIS)
        )
        version = chance.choice(api.versions)
        content = request(api, version, self._names, chance)
        data, kind = self._mutated(content, chance)
        began = time.monotonic()
        outcome = self._exchange(data, waits=api.title in api.WAITING or kind in ("header", "frame", "bytes"))
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        self.outcomes[outcome] += 1
        self.cases += 1
        for line in self._new_lines():
            self._note(_cause(line), number, f"{api.title} v{version}, {kind}: {outcome}", data, line)
        if outcome == "silent":
            self._note(f"{api.title} was not answered", number, f"{api.title} v{version}, {kind}", data, "")

    def _mutated(self, content: bytes, chance: random.Random) -> tuple[bytes, str]:
        api = chance.choice(APIS)
        return mutated(content, request(api, chance.choice(api.versions), self._names, chance), chance)

    def _note(self, cause: str, number: int, what: str, data: bytes, line: str) -> None:
        if cause not in self.wrong:
            path = self._folder / f"case-{number}.bin"
            path.write_bytes(data)
            (self._folder / f"case-{number}.log").write_text(line)
            self.wrong[cause] = f"case {number} ({what}; {path}): {cause}"

    def _exchange(self, data: bytes, *, waits: bool) -> str:
        """answered, closed, waiting (which is right for some), or silent."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._broker.port), 10)
        sock = self._socket
        sock.settimeout(ANSWER_S)
        announced = struct.unpack_from(">i", data)[0]
        try:
            sock.sendall(data)
            if announced > len(data) - 4 or waits:
                # Nothing may have to come: the frame is not whole, acks=0, a group waits for its members.
                ready, *_ = select.select([sock], [], [], 0.05 if announced > len(data) - 4 else 0.4)
                if not ready:
                    self.hang_up()
                    return "waiting"
            answer = receive_frame(sock)
        except TimeoutError:
            self.hang_up()
            return "silent"
        except OSError:
            answer = b""
        if not answer or announced != len(data) - 4:
            self.hang_up()
        return "answered" if answer else "closed"

    def hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _new_lines(self) -> Iterator[str]:
        size = self._log.stat().st_size
        if size > self._seen:
            with self._log.open("rb") as file:
                file.seek(self._seen)
                data = file.read(size - self._seen)
            self._seen = size
            for line in data.decode(errors="replace").splitlines():
                if any(words in line for words in WRONG_IN_LOG):
                    yield line


def _cause(line: str) -> str:
    """The last line of a traceback, and where it was raised."""
    try:
        trace = json.loads(line).get("exception", line)
    except ValueError:
        return line[:300]
    lines = [text.strip() for text in str(trace).splitlines()]
    frames = [text for text in lines if text.startswith("File ")]
    where = frames[-1].partition("broker/")[2] if frames else ""
    return f"{lines[-1][:200]} at broker/{where}"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TidegateBroker]:
    running = TidegateBroker(tmp_path, {"auto.create.topics.enable": "false"})
    running.start()
    try:
        yield running
    finally:
        running.stop()
        for name in TOPICS:
            for partition in (tmp_path / "log").glob(f"{name}-*"):
                left_by_hostile_clients(partition)


def made_topics(bootstrap_servers: str) -> Names:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    new_topics = [NewTopic(name, 2, 1, config=config) for name, config in TOPICS.items()]
    for future in admin.create_topics([*new_topics, NewTopic("witness", 1, 1)]).values():
        future.result(60)
    ids = []
    for name in TOPICS:
        described = admin.describe_topics(_collection([name]))[name].result(60)
        text = str(described.topic_id)
        ids.append(_uuid(text))
    return Names(tuple(TOPICS), tuple(ids))


def _collection(names: list[str]) -> Any:
    from confluent_kafka import TopicCollection

    return TopicCollection(names)


def _uuid(text: str) -> Any:
    import base64
    import uuid

    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def test_no_request_harms_the_broker_or_its_clients(
    broker: TidegateBroker, tmp_path: Path, record_property: Any
) -> None:
    names = made_topics(broker.bootstrap_servers)
    witness = Witness(broker.bootstrap_servers)
    witness.start()
    process = psutil.Process(broker.process.pid)
    fuzzer = Fuzzer(broker, names, tmp_path)
    most = idle = process.memory_info().rss
    with_others = Most(process)
    with_others.start()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and len(fuzzer.wrong) < 50:
        fuzzer.case(fuzzer.cases)
        if fuzzer.cases % 100 == 0:
            assert broker.process.running, f"the broker ended after case {fuzzer.cases}"
            most = max(most, process.memory_info().rss)
            if fuzzer.cases == 1000:
                idle = process.memory_info().rss
    fuzzer.hang_up()
    after = process.memory_info().rss
    with_others.over.set()
    with_others.join()
    witness.over.set()
    witness.join(90)
    record_property("cases", fuzzer.cases)
    record_property("outcomes", dict(fuzzer.outcomes))
    told = f"{most >> 20} at most ({with_others.bytes >> 20} with the processes it started)"
    record_property("memory", f"{idle >> 20} MiB early, {told}, {after >> 20} at the end")
    record_property("slowest case", f"{fuzzer.longest_s:.1f} s")
    record_property("witness", f"{witness.sent} sent, slowest {witness.longest_s:.2f} s, errors {dict(witness.errors)}")
    assert fuzzer.wrong == {}, "\n".join(fuzzer.wrong.values())
    assert fuzzer.outcomes["answered"] > fuzzer.cases / 5, "most cases did not get far"
    assert after - idle < GROWTH_BYTES
    assert with_others.bytes - idle < MOST_BYTES
    assert witness.longest_s < SLOWEST_S
    assert not witness.is_alive()
    assert witness.errors == {}
    assert witness.acknowledged == witness.sent
    assert witness.received == list(range(witness.sent))
    broker.stop()
    broker.start()  # what was written can be read again
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "after", "log_level": 0})
    wait_until(
        lambda: consumer.get_watermark_offsets(TopicPartition("witness", 0), 10)[1] >= witness.sent,
        "the witness's records",
    )
    consumer.close()
