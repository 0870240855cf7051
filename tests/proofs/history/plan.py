"""Turns a seed into a plan: the clients, their speed and topics, and the faults of the broker."""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass

__all__ = ["Fault", "Plan", "Sender", "Table", "plan"]

KINDS = ("plain", "idempotent", "transactional", "copier")
"""Producers of each record on its own (acks=all), of batches that may be sent again, of transactions; and those that read, write
and commit offsets in one transaction."""


@dataclass(frozen=True)
class Table:
    """A topic."""

    name: str
    partitions: int
    config: dict[str, str]


@dataclass(frozen=True)
class Sender:
    """A producer; ``rate`` is records a second, ``size`` bytes at most, ``lengths`` records in a transaction."""

    name: str
    kind: str
    topics: tuple[str, ...]
    rate: int
    size: int
    settings: dict[str, object]
    lengths: tuple[int, int] = (1, 30)
    aborts: float = 0.3
    abandons: float = 0.0
    members: int = 1


@dataclass(frozen=True)
class Reader:
    """A consumer on its own, or (``members`` > 0) a group of them."""

    name: str
    topics: tuple[str, ...]
    isolation: str
    members: int = 0
    settings: dict[str, object] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """A fault at ``at`` seconds; ``lasts`` is how long the broker is stopped, down, or its disk is full."""

    at: float
    kind: str
    lasts: float


@dataclass(frozen=True)
class Plan:
    seed: int
    seconds: float
    settings: dict[str, str]
    topics: tuple[Table, ...]
    senders: tuple[Sender, ...]
    readers: tuple[Reader, ...]
    faults: tuple[Fault, ...]
    last_fault: str

    @property
    def power_cuts(self) -> bool:
        return "power cut" in {self.last_fault, *(fault.kind for fault in self.faults)}


PATIENT = {
    "socket.timeout.ms": 3000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 30,
    "retry.backoff.max.ms": 200,
    "message.timeout.ms": 600_000,
    "queue.buffering.max.messages": 1000,
    "request.timeout.ms": 2000,
}
"""Clients that come back soon and do not give up during a fault. (A record that times out while it is under way makes an idempotent
producer of librdkafka's begin a new epoch, in which others may come twice.)"""


def plan(seed: int, *, seconds: float = 3.0, transactions: bool = True, faults: tuple[str, ...] | None = None) -> Plan:
    """The plan of a seed; ``faults`` are those that the broker at hand can take (None: all)."""
    chance = random.Random(seed)
    power = chance.random() < 0.6
    settings = {
        "acks.all.durability": "disk" if power else chance.choice(["disk", "page-cache"]),
        "log.background.flush.interval.ms": str(chance.choice([20, 100, 1000])),
        "log.flush.offset.checkpoint.interval.ms": str(chance.choice([300, 1000, 60_000])),
        "log.retention.check.interval.ms": str(chance.choice([200, 300_000])),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    }
    topics = tuple(
        Table(
            f"events-{number}",
            chance.randint(1, 3),
            {
                "segment.ms": str(chance.choice([300, 1000, 604_800_000])),
                "segment.bytes": str(chance.choice([1_048_576, 1_073_741_824])),
                "compression.type": chance.choice(["producer", "producer", "producer", "lz4", "zstd", "uncompressed"]),
                "index.interval.bytes": str(chance.choice([100, 4096])),
                "message.timestamp.type": chance.choice(["CreateTime", "CreateTime", "LogAppendTime"]),
            },
        )
        for number in range(chance.randint(1, 2))
    )
    copies = Table("copies", chance.randint(1, 2), {"segment.ms": str(chance.choice([300, 604_800_000]))})
    names = tuple(topic.name for topic in topics)
    senders = [_sender(chance, kind, number, names) for number, kind in enumerate(_kinds(chance, transactions))]
    copying = any(sender.kind == "copier" for sender in senders)
    return Plan(
        seed,
        seconds,
        settings,
        (*topics, copies) if copying else topics,
        tuple(senders),
        _readers(chance, names, copying),
        _faults(chance, seconds, power, faults),
        _allowed(chance.choice(["none", "kill", "power cut" if power else "kill", "restart"]), faults),
    )


def _kinds(chance: random.Random, transactions: bool) -> list[str]:
    kinds = ["plain", "idempotent"] if chance.random() < 0.7 else ["idempotent"] * 2
    if transactions:
        kinds += chance.choice(
            [["transactional"], ["transactional", "transactional"], ["copier"], ["transactional", "copier"]]
        )
    return kinds


def _sender(chance: random.Random, kind: str, number: int, names: tuple[str, ...]) -> Sender:
    settings = {
        **PATIENT,
        "linger.ms": chance.choice([0, 1, 5]),
        "batch.num.messages": chance.choice([5, 20, 100, 1000]),
        "compression.type": chance.choice(["none", "none", "gzip", "snappy", "lz4", "zstd"]),
        "acks": "all",
    }
    if kind == "plain":
        settings["max.in.flight.requests.per.connection"] = chance.choice([1, 1, 5])
    else:
        settings["enable.idempotence"] = True
        settings["max.in.flight.requests.per.connection"] = chance.choice([1, 5, 5])
    if kind in ("transactional", "copier"):
        settings["transactional.id"] = f"{kind}-{number}"
        settings["transaction.timeout.ms"] = chance.choice([4000, 10_000])
        del settings["message.timeout.ms"]  # librdkafka takes the transaction's
    return Sender(
        f"{kind}-{number}",
        kind,
        names,
        chance.choice([50, 200, 600]),
        chance.choice([20, 200, 2000]),
        settings,
        chance.choice([(1, 5), (1, 40), (20, 100)]),
        chance.choice([0.1, 0.4]),
        chance.choice([0.0, 0.1]),
    )


def _readers(chance: random.Random, names: tuple[str, ...], copying: bool) -> tuple[Reader, ...]:
    settings = {key: PATIENT[key] for key in PATIENT if "message" not in key and "request" not in key}
    settings |= {"fetch.wait.max.ms": chance.choice([10, 100, 500]), "fetch.min.bytes": chance.choice([1, 1, 1000])}
    committed = ("copies", *names) if copying else names
    readers = [
        Reader("reader-all", names, "read_uncommitted", 0, settings),
        Reader("reader-committed", committed, "read_committed", 0, settings),
    ]
    grouped = {
        **settings,
        "partition.assignment.strategy": chance.choice(["range", "roundrobin", "cooperative-sticky"]),
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 300,
    }
    isolation = chance.choice(["read_uncommitted", "read_committed"])
    readers.append(Reader("group", names, isolation, chance.randint(1, 3), grouped))
    return tuple(readers)


def _allowed(kind: str, faults: tuple[str, ...] | None) -> str:
    return kind if faults is None or kind in faults or kind == "none" else "kill"


def _faults(chance: random.Random, seconds: float, power: bool, faults: tuple[str, ...] | None) -> tuple[Fault, ...]:
    kinds = ["kill", "kill", "stop", "restart", "disk full", "flush fails"]
    if power:
        kinds += ["power cut"] * 4
    chosen, at = [], chance.uniform(0.4, 1.2)
    while at < seconds:
        kind = _allowed(chance.choice(kinds), faults)
        lasts = chance.choice([0.0, 0.0, 0.3]) if kind in ("kill", "power cut", "restart") else chance.uniform(0.2, 2.5)
        chosen.append(Fault(round(at, 2), kind, round(lasts, 2)))
        at += lasts + chance.uniform(0.5, 1.5)
    return tuple(chosen)
