"""Notifications about the progress of snapshots in Debezium's form: to a topic (``sink``) or to the worker's log
(``log``).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from connect.api import Field, Record, RecordBatch, Schema, SchemaType, get_logger
from connectors.debezium.config import CaptureConfig

__all__ = ["Notifications", "SnapshotReport"]

logger = get_logger(__name__)
_TEXT: Final = Schema(SchemaType.STRING)
_KEY: Final = Schema.struct([Field("id", _TEXT)], name="io.debezium.connector.common.NotificationKey", version=1)
_VALUE: Final = Schema.struct(
    [
        Field("id", _TEXT),
        Field("type", _TEXT),
        Field("aggregate_type", _TEXT),
        Field("additional_data", Schema.map(_TEXT, _TEXT, optional=True)),
        Field("timestamp", Schema(SchemaType.INT64)),
    ],
    name="io.debezium.connector.common.Notification",
    version=1,
)


class Notifications:
    """Collects notifications; ``taken`` returns them as records, which do not move the offset."""

    def __init__(self, config: CaptureConfig) -> None:
        self._name = config.prefix
        self._topic = config.notification_topic if "sink" in config.notification_channels else None
        self._logged = "log" in config.notification_channels
        self._records: list[Record] = []

    def tell(self, aggregate: str, kind: str, notification_id: str = "", **more: str) -> None:
        """Add a notification; ``more`` is its additional data."""
        told = notification_id or str(uuid.uuid4())
        data = {"connector_name": self._name, **more}
        if self._logged:
            logger.info("notification", id=told, aggregate_type=aggregate, type=kind, additional_data=data)
        if self._topic is not None:
            value: dict[str, Any] = {"id": told, "type": kind, "aggregate_type": aggregate, "additional_data": data}
            value["timestamp"] = time.time_ns() // 1_000_000
            self._records.append(Record(self._topic, value, _VALUE, {"id": told}, _KEY))

    def mark(self) -> int:
        """The number of waiting records, for ``forget_since``."""
        return len(self._records)

    def forget_since(self, mark: int) -> None:
        """Drop the notifications added since ``mark``: the steps they report will be repeated."""
        del self._records[mark:]

    def taken(self) -> list[RecordBatch]:
        records, self._records = self._records, []
        return [RecordBatch.from_records(records)] if records else []


class SnapshotReport:
    """Sends notifications about a snapshot of whole tables: it sees in the batches where tables begin and end.

    Where several connections read tables at the same time, all tables are reported as complete with the last one.
    """

    AGGREGATE: Final = "Initial Snapshot"

    def __init__(self, notifications: Notifications, tables: Mapping[str, str], *, in_order: bool) -> None:
        """``tables`` maps topics to full table names, in the order they are read if ``in_order``."""
        self._notifications, self._in_order = notifications, in_order
        self._names, self._all = dict(tables), ",".join(tables.values())
        self._waiting = [*tables]
        self._rows: dict[str, int] = {}
        self._tell("STARTED")

    def _tell(self, kind: str, **more: str) -> None:
        self._notifications.tell(self.AGGREGATE, kind, **more)

    def delivered(self, batches: Sequence[RecordBatch]) -> None:
        for batch in batches:
            if batch.topic in self._waiting:
                self._begun(batch.topic)
            if batch.topic in self._rows:
                self._rows[batch.topic] += len(batch)

    def _begun(self, topic: str) -> None:
        if self._in_order:
            for other in [*self._rows]:
                self._ended(other)
            for empty in self._waiting[: self._waiting.index(topic)]:
                self._begin(empty)
                self._ended(empty)
        self._begin(topic)

    def _begin(self, topic: str) -> None:
        self._rows[topic] = 0
        self._waiting.remove(topic)
        name = self._names[topic]
        self._tell("IN_PROGRESS", current_collection_in_progress=name, data_collections=self._all)

    def _ended(self, topic: str) -> None:
        rows = self._rows.pop(topic)
        self._tell(
            "TABLE_SCAN_COMPLETED",
            scanned_collection=self._names[topic],
            data_collections=self._all,
            total_rows_scanned=str(rows),
            status="SUCCEEDED",
        )

    def completed(self) -> None:
        for topic in [*self._rows]:
            self._ended(topic)
        for topic in [*self._waiting]:
            self._begin(topic)
            self._ended(topic)
        self._tell("COMPLETED")

    def aborted(self) -> None:
        self._tell("ABORTED")
