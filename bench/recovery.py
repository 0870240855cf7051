"""How long a broker takes from its start to its first acknowledged produce, with much on its disk: after kill -9, after a power cut.

``python -m bench recovery`` fills 10 GB in 100 partitions, once with one-record batches and once with batches of
16 KiB, lets a client write on, kills the broker and starts it again; and starts one with 10,000 partitions.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import sys
import threading
import time
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from bench.wire import exactly
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.metadata.image import ClusterMetadata
from broker.protocol.records import Record, encode_batch
from tests.servers.tidegate_broker import TidegateBroker

TOTAL = int(os.environ.get("RECOVERY_BYTES", str(10 * 1000**3)))
PARTITIONS = 100
MANY = 10_000
WRITE_S = 4.0
PRODUCER = 4711


def main(folder: Path, runs: int, console: Console) -> None:
    table = Table("what lies there", "after", "s to first produce, best", "worst", "of it CPU s")
    for name, records in (("one-record batches", 1), ("batches of 16 KiB", 160)):
        path = folder / name.replace(" ", "-")
        fill(path / "log", records)
        broker = TidegateBroker(path, {"log.segment.bytes": str(1 << 30)})
        for after in ("kill -9", "power cut"):
            times = []
            for _ in range(runs):
                broker.start()
                load = Load(broker.port, records)
                load.start()
                time.sleep(WRITE_S)
                broker.kill()
                load.join()
                if after == "power cut":
                    (path / "log" / ".lock").write_text("another boot")
                times.append(seconds_to_first_produce(broker))
                broker.kill()
            table.add_row(f"{TOTAL / 1e9:g} GB, {PARTITIONS} partitions, {name}", after, *best_and_worst(times))
        shutil.rmtree(path)
    many(folder / "many", runs, table)
    console.print(table)


def many(path: Path, runs: int, table: Table) -> None:
    directory = LogDirectory(path / "log")
    directory.open()
    metadata = ClusterMetadata.open(directory)
    for number in range(MANY // 100):
        metadata.create_topic(f"load{number if number else ''}", partitions=100)
    batch = one_batch(1)
    for partition_log in directory.all():
        if partition_log.topic.startswith("load"):
            partition_log.append(batch, now_ms=now_ms())
    directory.close()
    broker = TidegateBroker(path)
    for after in ("a stop", "kill -9"):
        times = []
        for _ in range(runs):
            times.append(seconds_to_first_produce(broker))
            table.caption = metadata_caption(broker)
            (broker.stop if after == "a stop" else broker.kill)()
        table.add_row(f"{MANY:,} partitions of one record", after, *best_and_worst(times))
    shutil.rmtree(path)


def best_and_worst(times: list[tuple[float, float]]) -> tuple[str, str, str]:
    walls = [wall for wall, _ in times]
    return f"{min(walls):.2f}", f"{max(walls):.2f}", f"{min(cpu for _, cpu in times):.2f}"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def one_batch(records: int, sequence: int = -1) -> bytes:
    made = [Record(None, os.urandom(100), (), now_ms()) for _ in range(records)]
    if sequence < 0:
        return encode_batch(made)
    return encode_batch(made, producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence)


def fill(path: Path, records: int) -> None:
    """Every partition gets the same files: one is written through the log, the others are copies of it."""
    directory = LogDirectory(path, LogConfig(segment_bytes=1 << 30))
    directory.open()
    topic = ClusterMetadata.open(directory).create_topic("load", partitions=PARTITIONS)
    first = directory.get("load", 0)
    assert first is not None
    batch = one_batch(records)
    together = max(1, 100_000 // len(batch))
    while first.size < TOTAL // PARTITIONS:
        first.append(batch * together, now_ms=now_ms())
    first.append(one_batch(records, 0), now_ms=now_ms())
    end = first.log_end_offset
    directory.close()
    template = path / "load-0"
    for number in range(1, topic.partitions):
        for file in template.iterdir():
            if file.name[:20].isdigit():
                shutil.copyfile(file, path / f"load-{number}" / file.name)
    points = path / "recovery-point-offset-checkpoint"
    lines = [line for line in points.read_text().splitlines()[2:] if not line.startswith("load ")]
    lines += [f"load {number} {end}" for number in range(PARTITIONS)]
    points.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    os.sync()


class Load(threading.Thread):
    """Writes to all partitions in turn, as fast as the broker answers, until that ends."""

    def __init__(self, port: int, records: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._batch = one_batch(records)

    def run(self) -> None:
        together = max(1, 16_000 // len(self._batch))
        requests = [
            produce_request(list(range(start, start + 10)), self._batch * together)
            for start in range(0, PARTITIONS, 10)
        ]
        try:
            with socket.create_connection(("127.0.0.1", self._port), 10) as sock:
                while True:
                    for request in requests:
                        sock.sendall(request)
                    for _ in requests:
                        receive(sock)
        except OSError:
            return


def produce_request(partitions: list[int], records: bytes, acks: int = 1) -> bytes:
    """Produce v3 to the topic ``load``, without headers' flexible parts."""
    body = struct.pack(">hhih4s", 0, 3, 1, 4, b"load") + struct.pack(">hhi", -1, acks, 30_000)
    body += struct.pack(">ih4si", 1, 4, b"load", len(partitions))
    body += b"".join(struct.pack(">ii", partition, len(records)) + records for partition in partitions)
    return struct.pack(">i", len(body)) + body


def metadata_caption(broker: TidegateBroker) -> str:
    """How long an answer about all topics takes."""
    body = struct.pack(">hhih4si", 3, 1, 1, 4, b"load", -1)
    taken = []
    with socket.create_connection(("127.0.0.1", broker.port), 10) as sock:
        for _ in range(10):
            began = time.perf_counter()
            sock.sendall(struct.pack(">i", len(body)) + body)
            size = len(receive(sock))
            taken.append(time.perf_counter() - began)
    memory = resident(broker)
    return (
        f"Metadata of all: {size:,} bytes, first {taken[0] * 1000:.1f} ms, then {min(taken) * 1000:.1f} ms; {memory} MB"
    )


def resident(broker: TidegateBroker) -> int:
    if sys.platform != "linux":
        return -1
    pages = int(Path(f"/proc/{broker.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000


def receive(sock: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", exactly(sock, 4))
    return exactly(sock, size)


def seconds_to_first_produce(broker: TidegateBroker) -> tuple[float, float]:
    """From the start of the process to the answer to acks=all, by the clock and of processor time."""
    request = produce_request([0], one_batch(1), acks=-1)
    began = time.perf_counter()
    starting = threading.Thread(target=broker.start)
    starting.start()
    while True:
        try:
            with socket.create_connection(("127.0.0.1", broker.port), 10) as sock:
                sock.sendall(request)
                answer = receive(sock)
        except OSError:
            time.sleep(0.002)
            continue
        (error,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + 4 + 4 + 4)
        assert error == 0, answer
        taken, used = time.perf_counter() - began, psutil.Process(broker.process.pid).cpu_times()
        starting.join()
        return taken, used.user + used.system
