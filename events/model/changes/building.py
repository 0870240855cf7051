"""Makes change events from a table's change records."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from events.errors import InvalidMetadata
from events.model.changes import bitmaps
from events.model.changes.columns import Column
from events.model.changes.envelope import UNAVAILABLE, Change, Envelope
from events.model.changes.fields import SYSTEM_FIELDS, ChangeField
from events.model.changes.schemas import HEADER, ChangeEventSchema, to_avro_text

__all__ = ["Made", "TableEvents"]

_STANDARD: Final = ("Name", "OwnerId", *SYSTEM_FIELDS)
_KEYS: Final = uuid.UUID("6f1d6c7e-9d1c-5d53-8f5b-0e5a7c1f6f7a")
OVERFLOW_ID: Final = "000000000000000AAA"
"""The id for changes of a whole table."""
_OPS: Final = {"c": "CREATE", "u": "UPDATE", "d": "DELETE", "r": "CREATE"}


class _FieldSource(NamedTuple):
    """A column and its target in the event: a field, or a part of a compound one."""

    column: str
    read: Column
    field: str
    part: str

    @property
    def name(self) -> str:
        return f"{self.field}.{self.part}" if self.part else self.field


class Made(NamedTuple):
    """A new event: its values, and the whole row for filters (by field; parts as ``Field.Part``; including the header)."""

    values: dict[str, Any]
    row: dict[str, Any]

    def as_gap(self) -> dict[str, Any]:
        """The event that only says that there was such a change."""
        header = dict(self.values[HEADER])
        header |= {"changeType": f"GAP_{header['changeType']}", "changedFields": [], "nulledFields": []}
        return {HEADER: header}


class TableEvents:
    """Makes the events of one entity from one version of its table's records."""

    def __init__(
        self, entity: str, envelope: Envelope, *, names: Mapping[str, str | None], snapshot: bool, deleted_column: str
    ) -> None:
        """Raises InvalidMetadata if names conflict with the table's columns or with each other."""
        self.entity, self.envelope = entity, envelope
        self._snapshot, self._deleted = snapshot, deleted_column
        columns = [*names, *([deleted_column] if deleted_column else [])]
        if missing := [column for column in columns if column not in envelope.columns]:
            raise InvalidMetadata(
                f"Entity {entity}: its table has no column {missing[0][:100]}; it has {', '.join(envelope.columns)}",
                fields=("fields",),
            )
        self._field_sources = [
            _FieldSource(column, read, *_target(name))
            for column, read in envelope.columns.items()
            if (name := names.get(column, _field_name(entity, column))) is not None
        ]
        self._fields = _fields(entity, self._field_sources)
        names_ = {field.name for field in self._fields}
        self._system = tuple(name for name in SYSTEM_FIELDS if name not in names_)
        self._layout: list[tuple[str, tuple[str, ...]]] = [(HEADER, ()), *((name, ()) for name in self._system)]
        self._layout += [(field.name, tuple(part.name for part in field.parts)) for field in self._fields]
        self.text = to_avro_text(entity, self._fields)
        """The schema of the events."""
        self.schema = ChangeEventSchema(0, self.text)

    def make(
        self, change: Change, record_id: str | None, *, user: str, sequence: int, enriched: Collection[str] = ()
    ) -> Made | None:
        """The event of a change; None if Salesforce has none. ``enriched`` are fields that updates and deletes always
        contain.

        A change with unreadable values becomes a gap event.
        """
        kind = self._kind(change)
        if kind is None:
            return None
        ids = [record_id] if record_id is not None else []
        header: dict[str, Any] = {
            "entityName": self.entity,
            "recordIds": ids,
            "changeType": kind,
            "changeOrigin": change.origin,
            "transactionKey": str(uuid.uuid5(_KEYS, change.transaction_id)),
            "sequenceNumber": sequence,
            "commitTimestamp": change.committed_ms,
            "commitNumber": change.commit_number,
            "commitUser": user,
            "nulledFields": [],
            "diffFields": [],
            "changedFields": [],
        }
        made = Made({HEADER: header}, {})
        if kind == "GAP_OVERFLOW":
            header["recordIds"] = [OVERFLOW_ID]
            return made
        try:
            self._fill(made, change, kind, enriched)
        except (ValueError, TypeError, KeyError, OverflowError, ArithmeticError):
            return Made(made.as_gap(), {})
        made.row.update({f"{HEADER}.{name}": value for name, value in header.items()})
        return made

    def _kind(self, change: Change) -> str | None:
        if change.op == "t":
            return "GAP_OVERFLOW"
        if change.op == "r" and not self._snapshot:
            return None
        kind = _OPS.get(change.op)
        if self._deleted and kind in ("UPDATE", "DELETE"):
            was, is_ = self._is_deleted(change.before), self._is_deleted(change.after)
            if kind == "DELETE":
                return None if was else kind  # for subscribers it was deleted already
            if is_:
                return None if was else "DELETE"
            return "UNDELETE" if was else kind
        return kind

    def _is_deleted(self, row: Mapping[str, Any] | None) -> bool:
        return row is not None and row.get(self._deleted) not in (None, False, 0, "", "f", "false")

    def _fill(self, made: Made, change: Change, kind: str, enriched: Collection[str]) -> None:
        row = change.before if kind == "DELETE" and change.after is None else change.after
        read = self._read(row or {})
        values, header = made.values, made.values[HEADER]
        made.row.update(read)
        if kind == "DELETE":
            shown = self._enriched(read, enriched)
        elif kind == "UPDATE":
            changed = self._changed(change)
            header["changedFields"] = bitmaps.encode(self._layout, {*changed, *self._stamps("LastModifiedDate")})
            nulled = self._nulled(changed, read)
            header["nulledFields"] = bitmaps.encode(self._layout, nulled)
            shown = changed | self._enriched(read, enriched)
        else:
            shown = set(read)
        for source in self._field_sources:
            if source.name in shown and read.get(source.name) is not None:
                self._put(values, source, read[source.name])
        self._stamp(values, header, kind)

    def _read(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a row by field, without those that the database did not send."""
        return {
            source.name: None if (value := row[source.column]) is None else source.read.value(value)
            for source in self._field_sources
            if source.column in row and not _unavailable(row[source.column])
        }

    def _changed(self, change: Change) -> set[str]:
        """Fields whose values differ; all received fields if the database does not send old values."""
        before, after = change.before, change.after or {}
        return {
            source.name
            for source in self._field_sources
            if not _unavailable(after.get(source.column))
            and (before is None or before.get(source.column) != after.get(source.column))
        }

    def _nulled(self, changed: Collection[str], read: Mapping[str, Any]) -> set[str]:
        """Changed fields without a value; a compound field by its own name if it has no parts left."""
        nulled = {name for name in changed if read.get(name) is None}
        for field in self._fields:
            parts = {f"{field.name}.{part.name}" for part in field.parts}
            if parts and parts <= nulled:
                nulled = nulled - parts | {field.name}
        return nulled

    def _enriched(self, read: Mapping[str, Any], enriched: Collection[str]) -> set[str]:
        return {
            source.name
            for source in self._field_sources
            if read.get(source.name) is not None and (source.field in enriched or source.name in enriched)
        }

    def _put(self, values: dict[str, Any], source: _FieldSource, value: Any) -> None:
        if not source.part:
            values[source.field] = value
            return
        compound = values.get(source.field)
        if compound is None:
            parts = next(parts for name, parts in self._layout if name == source.field)
            compound = values[source.field] = dict.fromkeys(parts)
        compound[source.part] = value

    def _stamps(self, *names: str) -> set[str]:
        return {name for name in names if name in self._system}

    def _stamp(self, values: dict[str, Any], header: Mapping[str, Any], kind: str) -> None:
        by_kind = {
            "CREATE": SYSTEM_FIELDS,
            "UPDATE": ("LastModifiedDate",),
            "UNDELETE": ("LastModifiedDate", "LastModifiedById"),
        }
        for name in self._stamps(*by_kind.get(kind, ())):
            values[name] = header["commitUser"] if name.endswith("Id") else header["commitTimestamp"]


def _unavailable(value: Any) -> bool:
    return value in (UNAVAILABLE, UNAVAILABLE.encode())


def _field_name(entity: str, column: str) -> str:
    return f"{column}__c" if entity.endswith("__c") and column not in _STANDARD else column


def _target(name: str) -> tuple[str, str]:
    field, _, part = name.partition(".")
    return field, part


def _fields(entity: str, field_sources: list[_FieldSource]) -> tuple[ChangeField, ...]:
    """The fields in the order of their first columns."""
    by_name: dict[str, ChangeField] = {}
    for source in field_sources:
        field = by_name.get(source.field)
        if not source.part and field is None:
            by_name[source.field] = ChangeField(source.field, source.read.kind)
            continue
        parts = field.parts if field is not None else ()
        if (field is not None and not (field.parts and source.part)) or source.part in [part.name for part in parts]:
            raise InvalidMetadata(
                f"Entity {entity}: two columns are to be {source.name}, {source.column} is the second",
                fields=("fields",),
            )
        by_name[source.field] = ChangeField(source.field, parts=(*parts, ChangeField(source.part, source.read.kind)))
    if HEADER in by_name:
        raise InvalidMetadata(f"Entity {entity}: {HEADER} is no name for a field", fields=("fields",))
    return tuple(by_name.values())
