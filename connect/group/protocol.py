"""The messages between workers of a group, in the format of Kafka Connect's three protocols.

``default`` (eager, version 0) has an address and a position; ``compatible`` (1, KIP-415) adds a member's items and its
revoked items; ``sessioned`` (2, KIP-507) has the same format and means that requests between workers are signed. The
formats are those of ConnectProtocol and IncrementalCooperativeConnectProtocol: big-endian, strings with an INT16
length, bytes and arrays with an INT32 length where -1 is null. Trailing fields that an older worker omits count as
empty.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from tidegate.kit.errors import TidegateError

__all__ = [
    "CONFIG_MISMATCH",
    "CONNECTOR",
    "Assignment",
    "Item",
    "MalformedWorkerMessage",
    "Protocol",
    "WorkerState",
    "decode_assignment",
    "decode_state",
    "encode_assignment",
    "encode_state",
]

CONNECTOR: Final = -1
"""The number that represents the connector itself among its tasks."""
CONFIG_MISMATCH: Final = 1
"""The error of an impossible assignment: the leader had not read as far as another member."""

_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


class Item(NamedTuple):
    """An item to run: a connector (``number`` is CONNECTOR) or one of its tasks."""

    connector: str
    number: int

    @property
    def is_task(self) -> bool:
        return self.number != CONNECTOR


class MalformedWorkerMessage(TidegateError):
    """Another member's bytes do not match its protocol."""


class Protocol(Enum):
    """The protocols by their names in the group. A worker offers its own and all older ones, its own first."""

    SESSIONED = "sessioned"
    COMPATIBLE = "compatible"
    EAGER = "default"

    @property
    def version(self) -> int:
        return {"sessioned": 2, "compatible": 1, "default": 0}[self.value]

    @property
    def cooperative(self) -> bool:
        """Whether members keep their items through a rebalance until these are revoked."""
        return self is not Protocol.EAGER

    @property
    def offered(self) -> Sequence[Protocol]:
        order = list(Protocol)
        return order[order.index(self) :]

    @classmethod
    def configured(cls, name: str) -> Protocol:
        """The protocol for a value of ``connect.protocol``."""
        return cls.EAGER if name.lower() == "eager" else cls(name.lower())


@dataclass(frozen=True, slots=True)
class Assignment:
    """The leader's assignment for one member.

    Under the cooperative protocols ``items`` are those to start and ``revoked`` those to stop before joining again;
    under the eager one ``items`` are all. After ``delay_ms`` the member joins again, when a lost member's items are
    reassigned. ``offset`` is the position of the config topic at the assignment.
    """

    leader: str
    leader_url: str
    offset: int
    items: frozenset[Item] = frozenset()
    revoked: frozenset[Item] = frozenset()
    delay_ms: int = 0
    error: int = 0


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A member's state when it joins: its REST address, its position in the config topic, its items."""

    url: str
    offset: int
    assignment: Assignment | None = None


def encode_state(state: WorkerState, protocol: Protocol) -> bytes:
    head = _INT16.pack(protocol.version) + _string(state.url) + _INT64.pack(state.offset)
    if not protocol.cooperative:
        return head
    if state.assignment is None:
        return head + _INT32.pack(-1)
    running = encode_assignment(state.assignment, protocol)
    return head + _INT32.pack(len(running)) + running


def encode_assignment(assignment: Assignment, protocol: Protocol) -> bytes:
    head = _INT16.pack(protocol.version) + _INT16.pack(assignment.error)
    head += _string(assignment.leader) + _string(assignment.leader_url) + _INT64.pack(assignment.offset)
    head += _items(assignment.items)
    if not protocol.cooperative:
        return head
    return head + _items(assignment.revoked) + _INT32.pack(assignment.delay_ms)


def decode_state(data: bytes) -> WorkerState:
    """Raises MalformedWorkerMessage."""
    reader = _Reader(data)
    version, url, offset = reader.version(), reader.string(), reader.integer(_INT64)
    running = reader.bytes_or_none() if version and not reader.ended else None
    return WorkerState(url, offset, None if running is None else decode_assignment(running))


def decode_assignment(data: bytes) -> Assignment:
    """Raises MalformedWorkerMessage."""
    reader = _Reader(data)
    version, error = reader.version(), reader.integer(_INT16)
    leader, leader_url, offset = reader.string(), reader.string(), reader.integer(_INT64)
    items = reader.items()
    revoked = reader.items() if version and not reader.ended else frozenset()
    delay_ms = reader.integer(_INT32) if version and not reader.ended else 0
    return Assignment(leader, leader_url, offset, items, revoked, delay_ms, error)


def _string(text: str) -> bytes:
    data = text.encode()
    return _INT16.pack(len(data)) + data


def _items(items: Iterable[Item]) -> bytes:
    by_connector: dict[str, list[int]] = {}
    for name, number in sorted(items):
        by_connector.setdefault(name, []).append(number)
    parts = [_INT32.pack(len(by_connector))]
    for name, numbers in by_connector.items():
        parts += [_string(name), _INT32.pack(len(numbers)), struct.pack(f">{len(numbers)}i", *numbers)]
    return b"".join(parts)


class _Reader:
    """Reads from the front. Truncated or invalid data is a MalformedWorkerMessage."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def ended(self) -> bool:
        return self._at >= len(self._data)

    def version(self) -> int:
        version = self.integer(_INT16)
        if version < 0:
            raise MalformedWorkerMessage(
                f"a worker speaks version {version} of the Connect protocol, which there is not"
            )
        return version

    def integer(self, form: struct.Struct) -> int:
        return int(form.unpack(self._take(form.size))[0])

    def string(self) -> str:
        try:
            return self._take(self.integer(_INT16)).decode()
        except UnicodeDecodeError as error:
            raise MalformedWorkerMessage(f"a worker sent a text that is not UTF-8: {error}") from error

    def bytes_or_none(self) -> bytes | None:
        size = self.integer(_INT32)
        return None if size == -1 else self._take(size)

    def items(self) -> frozenset[Item]:
        items: set[Item] = set()
        for _ in range(self._count(least_bytes=6)):
            name = self.string()
            items.update(Item(name, self.integer(_INT32)) for _ in range(self._count(least_bytes=4)))
        return frozenset(items)

    def _count(self, *, least_bytes: int) -> int:
        """A length, checked against the remaining bytes before anything is allocated; null counts as 0."""
        count = self.integer(_INT32)
        if count * least_bytes > len(self._data) - self._at or count < -1:
            raise MalformedWorkerMessage(f"a worker announced {count} entries in {len(self._data) - self._at} bytes")
        return max(count, 0)

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise MalformedWorkerMessage(f"a worker's message of {len(self._data)} bytes ends before byte {end}")
        taken = self._data[self._at : end]
        self._at = end
        return taken
