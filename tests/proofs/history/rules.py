"""The rules a history must obey. Each names what it found wrong: record, place, times; the shortest explanation first.

A power cut may take what nobody was told is on the disk, even if somebody has read it: where one happened, what was acknowledged
only after it is excused for not being where an earlier reader saw something else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.proofs.history.history import Event, History

__all__ = ["RULES", "Digest", "judge"]

Where = tuple[str, int]


class Sent(NamedTuple):
    id: int
    who: str
    where: Where
    at: float
    txn: int | None
    source: tuple[str, int, int, int] | None


class Transaction:
    def __init__(self) -> None:
        self.committing: float | None = None
        self.phase = ""
        self.group: str | None = None
        self.offsets: dict[str, int] = {}

    @property
    def fate(self) -> str:
        """committed, aborted, or unknown."""
        return self.phase if self.phase in ("committed", "aborted") else "unknown" if self.committing else "aborted"


class Digest:
    """A history, looked up by what rules ask for."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.kinds: dict[str, dict[str, Any]] = {}
        self.sent: dict[int, Sent] = {}
        self.acked: dict[int, tuple[int, float]] = {}
        self.transactions: dict[int, Transaction] = {}
        self.logs: dict[str, dict[Where, dict[int, int]]] = {"read_uncommitted": {}, "read_committed": {}}
        self.ends: dict[str, dict[Where, int]] = {"read_uncommitted": {}, "read_committed": {}}
        self.cuts: list[float] = []
        for event in history.events:
            self._take(event)

    def _take(self, event: Event) -> None:
        match event["do"]:
            case "sender":
                self.kinds[event["name"]] = event
            case "send":
                where = (event["topic"], event["partition"])
                source = event.get("source")
                self.sent[event["id"]] = Sent(
                    event["id"], event["who"], where, event["t"], event.get("txn"), tuple(source) if source else None
                )
            case "ack":
                self.acked[event["id"]] = (event["offset"], event["t"])
            case "txn":
                transaction = self.transactions.setdefault(event["txn"], Transaction())
                transaction.phase = event["phase"]
                if event["phase"] == "committing":
                    transaction.committing = event["t"]
                    transaction.group, transaction.offsets = event.get("group"), event.get("offsets", {})
            case "log":
                where = (event["topic"], event["partition"])
                self.logs[event["isolation"]][where] = dict(map(tuple, event["records"]))
                self.ends[event["isolation"]][where] = event["end"]
            case "fault" if event["kind"] == "power cut":
                self.cuts.append(event["t"])

    @property
    def everything(self) -> dict[Where, dict[int, int]]:
        return self.logs["read_uncommitted"]

    @property
    def committed(self) -> dict[Where, dict[int, int]]:
        return self.logs["read_committed"]

    def offsets_of(self, event: Event) -> tuple[str, dict[str, int]]:
        """The group and the offsets that an event tells of; none for most."""
        if event["do"] in ("commit", "fetched offsets"):
            return event["group"], event["offsets"]
        if event["do"] == "txn" and event["phase"] == "committed":
            ended = self.transactions[event["txn"]]
            return str(ended.group), ended.offsets
        return "", {}

    def fate(self, sent: Sent) -> str:
        return "committed" if sent.txn is None else self.transactions[sent.txn].fate

    def told_before_a_cut(self, number: int) -> bool:
        """Whether the record was acknowledged before the last power cut, or there was none."""
        return not self.cuts or (number in self.acked and self.acked[number][1] < self.cuts[0])

    def taken_by_a_cut(self, number: int, offset: int) -> bool:
        """Whether a power cut may have removed the record from its offset: it had not been acknowledged before."""
        sent = self.sent.get(number)
        cut = next((cut for cut in self.cuts if sent is not None and cut > sent.at), None)
        told = self.acked.get(number, (-1, 0.0))
        return cut is not None and not (told[0] == offset and told[1] < cut)

    def tell(self, number: int) -> str:
        sent = self.sent.get(number)
        if sent is None:
            return f"record {number}, which nobody sent,"
        ack = self.acked.get(number)
        said = f"acknowledged at offset {ack[0]}, {ack[1]:.3f} s" if ack else "never acknowledged"
        of = f" of transaction {sent.txn} ({self.fate(sent)})" if sent.txn is not None else ""
        return (
            f"record {number}{of} from {sent.who}, sent to {sent.where[0]}-{sent.where[1]} at {sent.at:.3f} s, {said},"
        )


def acknowledged_is_there(digest: Digest) -> Iterator[str]:
    """No acknowledged record is lost; each is at the offset that was said."""
    for number, (offset, _) in digest.acked.items():
        sent = digest.sent[number]
        log = digest.everything.get(sent.where, {})
        if offset < 0:
            # A repeated batch that the broker knows only by its sequence is acknowledged without an offset.
            if number not in log.values():
                yield f"{digest.tell(number)} is not in the log"
        elif log.get(offset) != number:
            yield f"{digest.tell(number)} is not there: offset {offset} holds {_held(log, offset, number)}"


def _held(log: dict[int, int], offset: int, number: int) -> str:
    there = log.get(offset)
    elsewhere = [at for at, number_there in log.items() if number_there == number]
    return f"{'nothing' if there is None else f'record {there}'}; {f'it is at {elsewhere}' if elsewhere else 'it is nowhere'}"


def only_what_was_sent(digest: Digest) -> Iterator[str]:
    """Every record of a log is one that was sent there, whole."""
    for where, log in digest.everything.items():
        for offset, number in log.items():
            if number not in digest.sent or digest.sent[number].where != where:
                yield f"{digest.tell(number)} is in {where[0]}-{where[1]} at offset {offset}"


def once(digest: Digest) -> Iterator[str]:
    """Idempotent producers' records are in the log once at most."""
    for where, log in digest.everything.items():
        seen: dict[int, int] = {}
        for offset, number in log.items():
            sent = digest.sent.get(number)
            if sent is None or digest.kinds[sent.who]["kind"] == "plain":
                continue
            if number in seen:
                yield f"{digest.tell(number)} is twice in {where[0]}-{where[1]}: at {seen[number]} and at {offset}"
            seen[number] = offset


def in_order(digest: Digest) -> Iterator[str]:
    """A producer's records are in the order it sent them to the partition (plain producers: with one request in flight)."""
    for where, log in digest.everything.items():
        last: dict[str, tuple[int, int]] = {}
        known: set[int] = set()
        for offset, number in sorted(log.items()):
            sent = digest.sent.get(number)
            if sent is None or number in known or digest.kinds[sent.who]["reorders"]:
                continue
            known.add(number)
            before = last.get(sent.who)
            if before is not None and before[1] > number:
                yield (
                    f"{digest.tell(number)} is at offset {offset} of {where[0]}-{where[1]}, behind record {before[1]} "
                    f"at {before[0]}, which was sent later"
                )
            last[sent.who] = (offset, number)


def reads_agree(digest: Digest) -> Iterator[str]:
    """A record that a reader saw at an offset exists.

    The reader saw offsets in order, omitted none, and got no hidden records.
    """
    sessions: dict[tuple[Any, ...], list[tuple[int, int, float]]] = {}
    for event in digest.history.of("read"):
        key = (event["who"], event["session"], event["isolation"], (event["topic"], event["partition"]))
        sessions.setdefault(key, []).extend((offset, number, event["t"]) for offset, number in event["records"])
    for (who, _, isolation, where), reads in sessions.items():
        yield from _session(digest, who, isolation, where, reads)


def _session(
    digest: Digest, who: str, isolation: str, where: Where, reads: list[tuple[int, int, float]]
) -> Iterator[str]:
    log, shown_as = digest.everything.get(where, {}), f"{where[0]}-{where[1]}"
    previous = -1
    for offset, number, at in reads:
        if offset <= previous and not digest.cuts:
            yield f"{who} read offset {offset} of {shown_as} at {at:.3f} s after offset {previous}"
        previous = offset
        if log.get(offset) != number and not digest.taken_by_a_cut(number, offset):
            record = _held(log, offset, number)
            yield f"{who} read {digest.tell(number)} at offset {offset} of {shown_as} at {at:.3f} s, where {record}"
    if not reads:
        return
    seen = {offset for offset, *_ in reads}
    first, last = min(seen), max(seen)
    visible = log if isolation == "read_uncommitted" else digest.committed.get(where, {})
    for offset, number in visible.items():
        if first <= offset <= last and offset not in seen and digest.told_before_a_cut(number):
            yield f"{who} read {shown_as} from {first} to {last} ({isolation}) and never saw {digest.tell(number)} at offset {offset}"


def only_committed(digest: Digest) -> Iterator[str]:
    """Readers of committed data never get a record of a transaction that was aborted, or before its commit was asked for."""
    for event in digest.history.of("read"):
        if event["isolation"] != "read_committed":
            continue
        for offset, number in event["records"]:
            sent = digest.sent.get(number)
            if sent is None or sent.txn is None:
                continue
            committing = digest.transactions[sent.txn].committing
            if digest.fate(sent) == "aborted" or committing is None or event["t"] < committing:
                when = (
                    "nobody asked for its commit" if committing is None else f"its commit began at {committing:.3f} s"
                )
                yield (
                    f"{event['who']} (read_committed) got {digest.tell(number)} at offset {offset} at {event['t']:.3f} s; {when}"
                )
    for where, log in digest.committed.items():
        for offset, number in log.items():
            sent = digest.sent.get(number)
            if sent is not None and digest.fate(sent) == "aborted":
                yield f"{digest.tell(number)} is shown to readers of committed data at offset {offset} of {where[0]}-{where[1]}"


def whole_transactions(digest: Digest) -> Iterator[str]:
    """All of a committed transaction is visible.

    Of one whose outcome was not reported, all or nothing is. None stays open.
    """
    for where, end in digest.ends["read_uncommitted"].items():
        stable = digest.ends["read_committed"].get(where, end)
        if stable != end:
            yield f"readers of committed data come to offset {stable} of {where[0]}-{where[1]}, whose end is {end}: a transaction stays open"
    shown = {number for log in digest.committed.values() for number in log.values()}
    members: dict[int, list[int]] = {}
    for sent in digest.sent.values():
        if sent.txn is not None and sent.id in digest.acked:
            members.setdefault(sent.txn, []).append(sent.id)
        elif sent.txn is None and sent.id in digest.acked and sent.id not in shown:
            yield f"{digest.tell(sent.id)} is not shown to readers of committed data"
    for number, records in members.items():
        hidden = [record for record in records if record not in shown]
        fate = digest.transactions[number].fate
        if hidden and (fate == "committed" or (fate == "unknown" and len(hidden) < len(records))):
            yield f"transaction {number} ({fate}) has {len(records)} records, and {len(hidden)} are not shown: {digest.tell(hidden[0])}"


def offsets_never_go_back(digest: Digest) -> Iterator[str]:
    """Once a group's commit was acknowledged, no client gets smaller offsets.

    Once a client has read committed offsets, no client gets smaller ones either, except after a power cut: they can be
    read as soon as they are written, and are acknowledged when they are on disk.
    """
    told: dict[tuple[str, str], list[tuple[float, int]]] = {}
    acknowledged: dict[tuple[str, str], int] = {}
    # A fault is recorded at its end, with the time of its beginning.
    for event in sorted(digest.history.events, key=lambda event: event["t"]):
        group, pairs = digest.offsets_of(event)
        if event["do"] == "fault" and event["kind"] == "power cut":
            told = {key: [(event["t"], acknowledged.get(key, -1))] for key in told}
        for partition, offset in pairs.items():
            key = (group, partition)
            known = told.setdefault(key, [])
            if event["do"] == "fetched offsets":
                index = bisect_right(known, event["began"], key=lambda pair: pair[0])
                if index and offset < known[index - 1][1]:
                    at, before = known[index - 1]
                    yield (
                        f"{event['who']} got offset {offset} for {group} in {partition}, asked at {event['began']:.3f} s; "
                        f"offset {before} was committed or seen at {at:.3f} s"
                    )
            else:
                acknowledged[key] = max(offset, acknowledged.get(key, -1))
            known.append((event["t"], max(offset, known[-1][1] if known else offset)))


def groups_skip_nothing(digest: Digest) -> Iterator[str]:
    """Every record below a group's committed offset was read by a member."""
    last: dict[tuple[str, str], tuple[int, str]] = {}
    for event in digest.history.of("commit"):
        for partition_name, offset in event["offsets"].items():
            last[event["group"], partition_name] = max(
                last.get((event["group"], partition_name), (0, "")), (offset, event["who"])
            )
    seen: dict[tuple[str, Where], set[int]] = {}
    modes: dict[str, str] = {}
    for event in digest.history.of("read"):
        group = event["who"].rpartition("-")[0]
        seen.setdefault((group, (event["topic"], event["partition"])), set()).update(o for o, _ in event["records"])
        modes[group] = event["isolation"]
    for (group, partition_name), (offset, who) in last.items():
        topic, _, partition = partition_name.rpartition("/")
        where = (topic, int(partition))
        for at, number in digest.logs[modes[group]].get(where, {}).items():
            if at < offset and at not in seen.get((group, where), ()) and digest.told_before_a_cut(number):
                yield f"{who} committed offset {offset} of {partition_name} for {group}, whose members never got {digest.tell(number)} at {at}"


def copied_once(digest: Digest) -> Iterator[str]:
    """Records that a copier read and wrote in transactions with its offsets: each below the offsets once, no other at all."""
    shown: dict[tuple[str, tuple[str, int, int]], int] = {}
    for log in digest.committed.values():
        for number in log.values():
            sent = digest.sent.get(number)
            if sent is None or sent.source is None:
                continue
            source = (sent.who, sent.source[:3])
            if source in shown and not digest.cuts:
                yield f"{'-'.join(map(str, source[1][:2]))} offset {source[1][2]} was copied twice: {digest.tell(shown[source])} and {digest.tell(number)}"
            shown[source] = number
    furthest: dict[tuple[str, str], int] = {}
    for event in digest.history.of("final offsets"):
        furthest |= {(event["copier"], partition_name): offset for partition_name, offset in event["offsets"].items()}
    for (copier, partition_name), offset in furthest.items():
        topic, _, partition = partition_name.rpartition("/")
        where = (topic, int(partition))
        for at, number in digest.committed.get(where, {}).items():
            copied = shown.get((copier, (*where, at)))
            if at < offset and copied is None and digest.told_before_a_cut(number):
                yield f"{copier} committed offset {offset} of {partition_name}, and {digest.tell(number)} at {at} was not copied"
            if at >= offset and copied is not None:
                yield f"{copier} stands at offset {offset} of {partition_name}, and {digest.tell(number)} at {at} was copied"


RULES: tuple[Callable[[Digest], Iterator[str]], ...] = (
    acknowledged_is_there,
    only_what_was_sent,
    once,
    in_order,
    reads_agree,
    only_committed,
    whole_transactions,
    offsets_never_go_back,
    groups_skip_nothing,
    copied_once,
)


def judge(history: History) -> list[str]:
    """The violations found: a line for each rule, with its shortest case and the number of cases."""
    digest = Digest(history)
    violations = []
    for rule in RULES if digest.everything else ():
        cases = list(rule(digest))
        if cases:
            more = f" (and {len(cases) - 1} more)" if len(cases) > 1 else ""
            violations.append(f"{rule.__name__.replace('_', ' ')}: {min(cases, key=len)}{more}")
    problems = [f"{event['who']}: {event['text']}" for event in history.of("problem")]
    return violations + problems
