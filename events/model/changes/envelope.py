"""Changes in the format of Debezium's connectors: an Avro envelope of before, after, source, op and transaction."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from events.errors import UndecodablePayload
from events.model.changes.columns import Column, column_of

__all__ = ["UNAVAILABLE", "Change", "Envelope", "NotAnEnvelope", "RecordKey"]

UNAVAILABLE: Final = "__debezium_unavailable_value"
"""Marks a value that did not change and that the database did not send."""
_COMMITTED: Final = ("txId", "gtid", "transaction_id", "lsn", "commit_lsn")


class NotAnEnvelope(UndecodablePayload):
    """The schema of a record is not a Debezium change envelope."""


class Change(NamedTuple):
    """One change of one row. ``before`` and ``after`` have columns by name, if the database sent them."""

    op: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    source: Mapping[str, Any]
    transaction: Mapping[str, Any] | None

    @property
    def committed_ms(self) -> int:
        return int(self.source.get("ts_ms") or 0)

    @property
    def transaction_id(self) -> str:
        """An id of the transaction that is equal for all its changes, in any table."""
        source_key = f"{self.source.get('connector')}/{self.source.get('name')}/{self.source.get('db')}"
        for name in _COMMITTED:
            if self.source.get(name) is not None:
                return f"{source_key}/{self.source[name]}"
        if self.transaction is not None:
            return f"{source_key}/{self.transaction['id']}"
        return f"{source_key}/{self.source.get('file')}/{self.source.get('pos')}/{self.committed_ms}"

    @property
    def commit_number(self) -> int:
        """Increases with the commits of one database, as far as its source block has a position."""
        try:
            known = [int(each) for each in json.loads(self.source.get("sequence") or "[]") if each is not None]
        except (ValueError, TypeError):
            known = []
        if known:
            return known[0]
        for name in ("lsn", "change_id"):
            if isinstance(self.source.get(name), int):
                return int(self.source[name])
        digits = "".join(filter(str.isdigit, str(self.source.get("file") or "").rpartition(".")[2]))
        if digits and isinstance(self.source.get("pos"), int):
            return int(digits) << 32 | int(self.source["pos"])
        return self.committed_ms

    @property
    def origin(self) -> str:
        """The changeOrigin in Salesforce's format: the kind of source, and the connector's name."""
        return (
            f"io/debezium/{self.source.get('connector')}/{self.source.get('version')};client={self.source.get('name')}"
        )


class Envelope:
    """One version of a table's change records: its columns by name, and a parser of records."""

    def __init__(self, text: str) -> None:
        """Raises NotAnEnvelope."""
        import fastavro

        try:
            form = json.loads(text)
            row = _row(form)
            self.columns: dict[str, Column] = {field["name"]: column_of(field["type"]) for field in row["fields"]}
            self._parsed = fastavro.parse_schema(_without_logical_types(form))
        except (
            ValueError,
            KeyError,
            TypeError,
            LookupError,
            RecursionError,
            fastavro.schema.SchemaParseException,
        ) as e:
            raise NotAnEnvelope(
                "The records are not changes in Debezium's form, a record of before, after, source and op: "
                "is a transform such as ExtractNewRecordState set on the connector?"
            ) from e

    def change(self, payload: bytes) -> Change:
        """The change in an Avro body; raises UndecodablePayload."""
        values = _read(self._parsed, payload)
        return Change(
            str(values.get("op")),
            values.get("before"),
            values.get("after"),
            values.get("source") or {},
            values.get("transaction"),
        )


class RecordKey:
    """One version of a table's record keys."""

    def __init__(self, text: str) -> None:
        import fastavro

        try:
            self._parsed = fastavro.parse_schema(_without_logical_types(json.loads(text)))
        except (ValueError, RecursionError, fastavro.schema.SchemaParseException) as error:
            raise UndecodablePayload("The schema of a record's key is not Avro") from error

    def id(self, payload: bytes) -> str:
        """The record's id as text; several columns are joined by commas. Raises UndecodablePayload."""
        values = _read(self._parsed, payload)
        if isinstance(values, Mapping):
            return ",".join(str(value) for name, value in values.items() if name != "__dbz__physicalTableIdentifier")
        return str(values)


def _read(schema: Any, payload: bytes) -> Any:
    import fastavro

    try:
        return fastavro.schemaless_reader(io.BytesIO(payload), schema, None)
    except Exception as error:
        raise UndecodablePayload(f"The record does not fit its Avro schema: {type(error).__name__}") from error


def _row(form: Any) -> Mapping[str, Any]:
    fields = {field["name"]: field["type"] for field in form["fields"]}
    if not {"before", "after", "source", "op"} <= set(fields):
        raise KeyError("op")
    for name in ("before", "after"):
        members = fields[name] if isinstance(fields[name], list) else [fields[name]]
        for member in members:
            if isinstance(member, Mapping) and member.get("type") == "record":
                return member
    raise KeyError("before")


def _without_logical_types(form: Any) -> Any:
    """Remove logical types except decimals, so that values stay numbers."""
    if isinstance(form, list):
        return [_without_logical_types(each) for each in form]
    if not isinstance(form, dict):
        return form
    decimal = form.get("logicalType") == "decimal"
    return {
        name: value if name in ("default", "connect.parameters") else _without_logical_types(value)
        for name, value in form.items()
        if name != "logicalType" or decimal
    }
