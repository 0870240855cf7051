"""Sinks: write records to objects (insert, update, upsert, delete), and publish records as platform events."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from connect.api import (
    ConnectError,
    DataError,
    Dataset,
    JavaRegex,
    Problem,
    Record,
    RecordBatch,
    RetriableConnectError,
    SinkConnector,
    SinkTask,
)
from connectors.salesforce.checking import problems_of
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.config import EventSinkConfig, ObjectSinkConfig, SalesforceConfig
from connectors.salesforce.errors import RETRIABLE_CODES

__all__ = ["EventSink", "EventSinkTask", "ObjectSink", "ObjectSinkTask", "check_login", "operation_of"]

_OPERATIONS: Final = {"created": "insert", "updated": "update", "deleted": "delete", "undeleted": "insert"}
"""Maps the value of ``_EventType``, as the Salesforce sources write it, to an operation."""


def operation_of(event_type: Any) -> str | None:
    """The operation for a record's ``_EventType``, None where it is not set; raises DataError for a gap."""
    kind = str(event_type or "")
    if kind.startswith("gap_"):
        raise DataError(
            f"a change of type {kind} says that Salesforce could not tell what changed: read the record there"
        )
    return _OPERATIONS.get(kind)


def _references(client: SalesforceClient, name: str) -> set[str]:
    """The fields of an object that refer to other records, in lower case: Salesforce accepts names in any case."""
    return {field["name"].lower() for field in client.describe(name)["fields"] if field.get("type") == "reference"}


Writer = Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]


def check_login(config: SalesforceConfig, required: str, key: str) -> Iterable[Problem]:
    """Log in and check that an object exists."""
    return problems_of(config, key, lambda client: client.describe(required))


class _SalesforceSinkTask(SinkTask[Any]):
    """Base class of both sinks' tasks: one client, requests of at most ``batch_size`` records, results reported per
    record.
    """

    def start(self) -> None:
        self.client = SalesforceClient(self.config)
        self.resources.callback(self.client.close)

    def cancel(self) -> None:
        self.client.abort()

    def _write(self, records: Sequence[tuple[Record, Mapping[str, Any]]], writer: Writer) -> None:
        """Send records; those that Salesforce rejects permanently are reported to ``errors.*``, one by one.

        If any result may succeed later, the whole ``put`` is retriable. Records that were created are then written
        again, so inserts are at least once, as in the original.
        """
        for start in range(0, len(records), self.config.batch_size):
            chunk = records[start : start + self.config.batch_size]
            results = writer([fields for _, fields in chunk])
            if len(results) != len(chunk):
                raise ConnectError(f"Salesforce answered {len(results)} results for {len(chunk)} records")
            for (record, _), result in zip(chunk, results, strict=True):
                self._judge(record, result)

    def _judge(self, record: Record, result: Mapping[str, Any]) -> None:
        if result.get("success"):
            return
        errors = result.get("errors") or [{}]
        code = errors[0].get("statusCode", "UNKNOWN")
        fields = f" (fields {', '.join(errors[0]['fields'])})" if errors[0].get("fields") else ""
        message = f"Salesforce refused the record: {code}: {errors[0].get('message', '')}{fields}"
        if code in RETRIABLE_CODES:
            raise RetriableConnectError(message)
        self.context.errant_records.report(record, DataError(message))

    def _fields(self, record: Record) -> dict[str, Any]:
        if not isinstance(record.value, Mapping):
            raise DataError(
                f"a record for Salesforce must be a struct or a JSON object of fields, not {record.value!r:.80}"
            )
        return {name: _plain(value) for name, value in record.value.items()}


class ObjectSinkTask(_SalesforceSinkTask):
    """Writes records to one object type."""

    config: ObjectSinkConfig

    def dataset(self, topic: str) -> Dataset | None:
        del topic
        dataset: Dataset = self.config.dataset(self.config.object_name)
        return dataset

    def start(self) -> None:
        super().start()
        self._begin(self.client)

    def _begin(self, client: SalesforceClient) -> None:
        self._ignored = JavaRegex(self.config.ignore_pattern)
        self._references = _references(client, self.config.object_name) if self.config.ignore_references else set()

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        client = SalesforceClient(self.config)
        try:
            self._begin(client)
        finally:
            client.close()
        for operation, _, fields in self._readable(batches):
            yield f"{operation} {self.config.object_name}: {_shown(fields)}"

    def put(self, batches: Sequence[RecordBatch]) -> None:
        # runs of one operation in the order of the records, so that an update never overtakes the insert before it
        for operation, run in groupby(self._readable(batches), key=lambda item: item[0]):
            self._write([(record, fields) for _, record, fields in run], self._writer(operation))

    def _readable(self, batches: Sequence[RecordBatch]) -> Iterator[tuple[str, Record, Mapping[str, Any]]]:
        for batch in batches:
            for record in batch.records():
                if record.value is None and self.config.operation != "delete":
                    continue  # a tombstone has no fields to write
                try:
                    yield self._prepared(record)
                except DataError as error:
                    self.context.errant_records.report(record, error)

    def _prepared(self, record: Record) -> tuple[str, Record, Mapping[str, Any]]:
        fields = self._fields(record)
        asked = operation_of(fields.get("_EventType"))
        operation = self.config.operation if self.config.override_event_type or asked is None else asked
        if operation != "insert" and self.config.use_custom_id and operation != "delete":
            operation = "upsert"
        unchanged = _unchanged(fields) - {self.config.custom_id}
        kept = {
            name: value
            for name, value in fields.items()
            if name not in self.config.ignore_fields
            and name.lower() not in self._references
            and not self._ignored.fullmatch(name)
            and name not in unchanged
        }
        identity = self.config.custom_id if operation == "upsert" else "Id"
        if operation == "insert":
            kept.pop("Id", None)
        elif not kept.get(identity):
            raise DataError(
                f"to {operation} {self.config.object_name} a record needs the field {identity}; it has {', '.join(kept)}"
            )
        if operation == "upsert":
            kept.pop("Id", None)
        return operation, record, {"attributes": {"type": self.config.object_name}, **kept}

    def _writer(self, operation: str) -> Writer:
        if operation == "insert":
            return self.client.create
        if operation == "update":
            return self.client.update
        if operation == "upsert":
            return lambda records: self.client.upsert(self.config.object_name, self.config.custom_id, records)
        return lambda records: self.client.delete([str(record["Id"]) for record in records])


class ObjectSink(SinkConnector[ObjectSinkConfig]):
    """Writes records of topics to objects: each record creates, for example, an Account."""

    config_class = ObjectSinkConfig
    task_class = ObjectSinkTask

    @classmethod
    def check(cls, config: ObjectSinkConfig) -> Iterable[Problem]:
        return check_login(config, config.object_name, "salesforce.object")


class EventSinkTask(_SalesforceSinkTask):
    """Publishes each record as a platform event."""

    config: EventSinkConfig

    def dataset(self, topic: str) -> Dataset | None:
        del topic
        dataset: Dataset = self.config.dataset(self.config.event)
        return dataset

    def put(self, batches: Sequence[RecordBatch]) -> None:
        self._write(list(self._readable(batches)), self.client.create)

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        for _, fields in self._readable(batches):
            yield f"publish {self.config.event}: {_shown(fields)}"

    def _readable(self, batches: Sequence[RecordBatch]) -> Iterator[tuple[Record, Mapping[str, Any]]]:
        for batch in batches:
            for record in batch.records():
                if record.value is None:
                    continue
                try:
                    fields = {n: v for n, v in self._fields(record).items() if n.endswith("__c")}
                except DataError as error:
                    self.context.errant_records.report(record, error)
                    continue
                yield record, {"attributes": {"type": self.config.event}, **fields}


class EventSink(SinkConnector[EventSinkConfig]):
    """Publishes records of topics as platform events; fields that do not end in __c are left out."""

    config_class = EventSinkConfig
    task_class = EventSinkTask

    @classmethod
    def check(cls, config: EventSinkConfig) -> Iterable[Problem]:
        return check_login(config, config.event, "salesforce.platform.event.name")


def _unchanged(fields: Mapping[str, Any]) -> frozenset[str]:
    """Fields that a change event of an update has as null because they did not change: writing them would clear them."""
    header = fields.get("ChangeEventHeader")
    if not isinstance(header, Mapping) or header.get("changeType") != "UPDATE":
        return frozenset()
    changed = {name.partition(".")[0] for name in header.get("changedFields") or ()}
    return frozenset(name for name in fields if name not in changed and name != "Id")


def _shown(fields: Mapping[str, Any]) -> str:
    import json

    return json.dumps({name: value for name, value in fields.items() if name != "attributes"}, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """The value in the form that Salesforce's JSON accepts."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value) if value.as_tuple().exponent else int(value)
    if isinstance(value, bytes):
        import base64

        return base64.b64encode(value).decode()
    return value
