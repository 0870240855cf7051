"""The offset topic: positions of sources. Task hosts write it, the worker reads it on request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connect.stores.topic import StoreLog
from connect.stores.values import decoded, encoded

if TYPE_CHECKING:
    from broker.client import KafkaRecord

__all__ = ["OffsetStore", "SourceOffset", "canonical", "offset_key", "parsed_key", "parsed_offset"]


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """One position.

    ``key`` is the record's exact key in the topic: its bytes are the identity under compaction, so an update must write
    the same.
    """

    partition: dict[str, Any]
    offset: dict[str, Any]
    key: str

    def to_json(self) -> dict[str, Any]:
        return {"partition": self.partition, "offset": self.offset}


def offset_key(connector: str, partition: Mapping[str, Any]) -> str:
    """The key of a new position."""
    return encoded([connector, dict(partition)]).decode()


def canonical(partition: Mapping[str, Any]) -> str:
    """The same text for the same partition, regardless of the order of members."""
    return json.dumps(partition, sort_keys=True, separators=(",", ":"))


class OffsetStore:
    """Positions by connector, as far as the topic has been read."""

    def __init__(self, log: StoreLog) -> None:
        self._topic = log
        self._offsets: dict[str, dict[str, SourceOffset]] = {}

    async def start(self) -> None:
        await self._topic.start(self._apply)

    async def stop(self) -> None:
        await self._topic.stop()

    @property
    def failure(self) -> BaseException | None:
        """Why the topic is no longer followed; None while it is."""
        return self._topic.failure

    async def read(self, connector: str) -> list[SourceOffset]:
        """All current positions of a connector in the log."""
        await self._topic.read_to_end()
        return list(self._offsets.get(connector, {}).values())

    async def put(self, connector: str, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> None:
        """Set a position, or delete it."""
        known = self._offsets.get(connector, {}).get(canonical(partition))
        key = known.key if known is not None else offset_key(connector, partition)
        await self._topic.write((key.encode(), None if offset is None else encoded(dict(offset))))

    async def put_all(self, positions: Sequence[tuple[bytes, Mapping[str, Any]]]) -> None:
        """Set positions by the keys of their records."""
        await self._topic.write(*((key, encoded(dict(offset))) for key, offset in positions))

    def _apply(self, record: KafkaRecord) -> None:
        parsed = parsed_offset(record, self._topic.name)
        if parsed is None:
            return
        connector, partition, position = parsed
        known = self._offsets.setdefault(connector, {})
        if position is None:
            known.pop(canonical(partition), None)
        else:
            known[canonical(partition)] = position


def parsed_offset(record: KafkaRecord, topic: str) -> tuple[str, dict[str, Any], SourceOffset | None] | None:
    """Connector, source partition and position (None if deleted) of a record; None for any other record."""
    text = (record.key or b"").decode("utf-8", "replace")
    parsed = parsed_key(text)
    if parsed is None:
        return None
    connector, partition = parsed
    offset = decoded(record.value, topic, text)
    return connector, partition, None if offset is None else SourceOffset(partition, offset, text)


def parsed_key(text: str) -> tuple[str, dict[str, Any]] | None:
    """Connector and source partition of a position's key; None if it is not such a key."""
    try:
        connector, partition = json.loads(text)
    except (ValueError, TypeError):
        return None
    return (connector, partition) if isinstance(connector, str) and isinstance(partition, dict) else None
