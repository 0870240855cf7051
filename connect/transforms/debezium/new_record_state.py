"""ExtractNewRecordState: a change event becomes the row after the change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.api import (
    DataError,
    Field,
    Header,
    Problem,
    RecordBatch,
    Schema,
    SchemaType,
    Transformation,
    config,
    key,
    one_of,
)
from connect.data.defaults import with_default
from connect.data.header_changes import added
from connect.data.headers import header_lists
from connect.data.structs import struct_of
from connect.transforms.debezium.fields import EnvelopeField, envelope_fields, is_envelope
from connect.transforms.replace_field import ReplaceFieldConfig, ReplaceKeyField, ReplaceValueField
from connect.transforms.sides import copied_basics
from connect.transforms.timestamp_router import routed

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ExtractNewRecordState", "ExtractNewRecordStateConfig"]

_MODES: Final = {
    "drop": (True, "drop"),
    "tombstone": (True, "tombstone"),
    "rewrite": (True, "rewrite"),
    "rewrite-with-tombstone": (False, "rewrite"),
    "delete-to-tombstone": (True, "tombstone"),
}
"""Whether tombstones are dropped, and how deletes are handled."""
_LEGACY_DELETES: Final = {"drop": "drop", "none": "tombstone", "rewrite": "rewrite"}


@config
class ExtractNewRecordStateConfig:
    """Keys of ExtractNewRecordState."""

    mode: str = key(
        "delete.tombstone.handling.mode",
        default="tombstone",
        check=one_of(*_MODES, ignore_case=True),
        doc="What becomes of a delete and of the tombstone after it. drop: neither stays; tombstone: the delete becomes a "
        "tombstone; rewrite: the delete is the row as it was, with __deleted=true; rewrite-with-tombstone: likewise, "
        "and the tombstone stays; delete-to-tombstone: as tombstone.",
    )
    drop_tombstones: bool | None = key(
        "drop.tombstones",
        default=None,
        importance="low",
        doc="Whether tombstones are dropped.",
        deprecated="Debezium 2.5 merged it into delete.tombstone.handling.mode.",
    )
    delete_handling: str | None = key(
        "delete.handling.mode",
        default=None,
        check=one_of(*_LEGACY_DELETES, ignore_case=True),
        importance="low",
        doc="What becomes of deletes: drop, rewrite, or none (they become tombstones).",
        deprecated="Debezium 2.5 merged it into delete.tombstone.handling.mode.",
    )
    route_by_field: str = key(
        "route.by.field", default="", importance="low", doc="A field of the row whose text becomes the topic."
    )
    fields_prefix: str = key("add.fields.prefix", default="__", importance="low", doc="Comes before each added field.")
    add_fields: list[str] = key(
        "add.fields",
        default=[],
        aliases=["add.source.fields"],
        importance="low",
        doc="Fields of the envelope to add to the row: op, ts_ms, those of source, or struct.field; name:new renames one.",
    )
    headers_prefix: str = key(
        "add.headers.prefix", default="__", importance="low", doc="Comes before the name of each added header."
    )
    add_headers: list[str] = key(
        "add.headers",
        default=[],
        importance="low",
        doc="Fields of the envelope to add as headers, named as in add.fields.",
    )
    operation_header: bool = key(
        "operation.header",
        default=False,
        importance="low",
        doc="Whether the operation becomes the header __op.",
        deprecated="Use add.headers=op.",
    )
    drop_fields_header: str | None = key(
        "drop.fields.header.name",
        default=None,
        importance="low",
        doc="A header that holds a list of the row's fields to leave out.",
    )
    drop_fields_from_key: bool = key(
        "drop.fields.from.key", default=False, importance="low", doc="Whether those leave the key, too."
    )
    drop_fields_compatible: bool = key(
        "drop.fields.keep.schema.compatible",
        default=True,
        importance="low",
        doc="Whether only optional fields are left out, so that the schema stays compatible.",
    )
    replace_null: bool = key(
        "replace.null.with.default",
        default=True,
        importance="low",
        doc="Whether, in rewriting, a field without a value takes the default of its schema.",
    )

    def problems(self) -> Iterable[Problem]:
        for name, value in (("add.fields", self.add_fields), ("add.headers", self.add_headers)):
            try:
                envelope_fields(value, "")
            except ValueError as error:
                yield Problem(name, f"Invalid value {','.join(value)} for configuration {name}: {error}")

    @property
    def handling(self) -> tuple[bool, str]:
        """Whether tombstones are dropped, and how deletes are handled.

        The keys of Debezium 1.x and 2.0 to 2.4 apply if set.
        """
        if self.drop_tombstones is None and self.delete_handling is None:
            return _MODES[self.mode.lower()]
        deletes = _LEGACY_DELETES[(self.delete_handling or "drop").lower()]
        return self.drop_tombstones is not False, deletes


class _Kinds(NamedTuple):
    """Masks over the rows of a batch."""

    tombstones: Any
    deletes: Any
    kept: Any


class ExtractNewRecordState(Transformation):
    """Records that are not change events (by schema name) pass unchanged; truncate events are dropped."""

    config_class = ExtractNewRecordStateConfig
    config: ExtractNewRecordStateConfig
    traces_fields = True

    @cached_property
    def _fields(self) -> list[EnvelopeField]:
        return envelope_fields(self.config.add_fields, self.config.fields_prefix)

    @cached_property
    def _headers(self) -> list[EnvelopeField]:
        names = [*self.config.add_headers, *(["op"] if self.config.operation_header else [])]
        return envelope_fields(names, self.config.headers_prefix)

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        schema = batch.value_schema
        if batch.values.null_count == len(batch):
            drops, _ = self.config.handling
            return [_none_of(batch)] if drops else [self._with_headers(batch, schema)]
        if schema is None or not is_envelope(schema) or "after" not in schema.field_names:
            return self._not_envelopes(batch)
        return self._unwrapped(batch, schema)

    def _not_envelopes(self, batch: RecordBatch) -> list[RecordBatch]:
        """Tombstones among them are handled as tombstones."""
        drops, _ = self.config.handling
        return [batch.filter(batch.values.is_valid()) if drops and batch.values.null_count else batch]

    def _unwrapped(self, batch: RecordBatch, schema: Schema) -> list[RecordBatch]:
        kinds = self._kinds(batch, schema)
        batch = self._with_headers(batch, schema)
        # Rows before and after a change usually have one schema; if not, a batch is split between them.
        after = schema.field("after").schema
        before = schema.field("before").schema if "before" in schema.field_names else after
        rewrites = self.config.handling[1] == "rewrite"
        alike = before.fields == after.fields
        made: list[RecordBatch] = []
        for start, stop in [(0, len(batch))] if alike or not rewrites else _runs(kinds.deletes):
            part = batch.slice(start, stop - start) if stop - start < len(batch) else batch
            deletes = kinds.deletes[start:stop]
            row_schema = before if rewrites and not alike and deletes.all() else after
            made += self._rows(part, schema, row_schema, deletes, kinds.kept[start:stop])
        if not made:
            return [_none_of(batch)]
        last = made[-1]
        made[-1] = last.replace(source_offset=batch.source_offset) if last.source_offsets is None else last
        return made

    def _kinds(self, batch: RecordBatch, schema: Schema) -> _Kinds:
        import pyarrow.compute as pc

        def mask(array: pa.Array) -> Any:
            return array.to_numpy(zero_copy_only=False)

        drops, deletes_become = self.config.handling
        tombstones = mask(batch.values.is_null())
        gone = mask(pc.struct_field(batch.values, ["after"]).is_null()) & ~tombstones
        had = (
            mask(pc.struct_field(batch.values, ["before"]).is_valid())
            if "before" in schema.field_names
            else gone & False
        )
        deletes = gone & had
        kept = ~(gone & ~had)
        if drops:
            kept &= ~tombstones
        if deletes_become == "drop":
            kept &= ~deletes
        return _Kinds(tombstones, deletes, kept)

    def _rows(
        self, batch: RecordBatch, schema: Schema, row_schema: Schema, deletes: Any, kept: Any
    ) -> list[RecordBatch]:
        import pyarrow as pa

        envelopes = batch.values
        column, made = self._row_column(envelopes, schema, row_schema, deletes)
        topics = self._topics(batch, schema, deletes)
        unwrapped = batch.replace(values=column, value_schema=made)
        parts = [unwrapped] if topics is None else routed(unwrapped, topics)
        batches: list[RecordBatch] = []
        start = 0
        for part in parts:
            keep = kept[start : start + len(part)]
            start += len(part)
            left = part if keep.all() else part.filter(pa.array(keep))
            batches += self._without_dropped(left) if len(left) else []
        return batches

    def _row_column(
        self, envelopes: pa.Array, schema: Schema, row_schema: Schema, deletes: Any
    ) -> tuple[pa.Array, Schema]:
        """The rows with added fields; null for deletes that become tombstones."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rewrites = self.config.handling[1] == "rewrite"
        rows = pc.struct_field(envelopes, ["after"])
        parts = [pc.struct_field(rows, [index]) for index in range(len(row_schema.fields))] if not deletes.all() else []
        present = rows.is_valid()
        if rewrites and deletes.any():
            old = pc.struct_field(envelopes, ["before"])
            is_delete = pa.array(deletes)
            old_parts = [pc.struct_field(old, [index]) for index in range(len(row_schema.fields))]
            parts = (
                [pc.if_else(is_delete, old_part, other) for old_part, other in zip(old_parts, parts, strict=True)]
                if parts
                else old_parts
            )
            present = pc.or_(present, is_delete)
        elif not parts:
            parts = [pa.nulls(len(rows), member.schema.arrow_type) for member in row_schema.fields]
        fields = list(row_schema.fields)
        if rewrites:
            if self.config.replace_null:
                parts = [with_default(member.schema, part) for member, part in zip(fields, parts, strict=True)]
            fields.append(Field("__deleted", Schema(SchemaType.STRING, optional=True)))
            parts.append(pc.if_else(pa.array(deletes), "true", "false"))
        for old_part in self._fields:
            added_schema = old_part.schema(schema)
            if added_schema is not None:
                fields.append(Field(old_part.new_name, added_schema))
                parts.append(old_part.column(schema, envelopes))
        names = [member.name for member in fields]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"Cannot create field because of field name duplication {twice}")
        made = copied_basics(row_schema, fields)
        like = pc.if_else(present, True, None)
        return struct_of(made, parts, like), made

    def _topics(self, batch: RecordBatch, schema: Schema, deletes: Any) -> list[str] | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        name = self.config.route_by_field
        if not name:
            return None
        made = None
        for part, picked in (("after", ~deletes), ("before", deletes)):
            if picked.any() and part in schema.field_names and name in schema.field(part).schema.field_names:
                texts = pc.struct_field(batch.values, [part, name])
                if part == "after" and self.config.handling[1] == "rewrite" and self.config.replace_null:
                    texts = with_default(schema.field(part).schema.field(name).schema, texts)
                made = texts if made is None else pc.if_else(pa.array(picked), texts, made)
        if made is None:
            return None
        return [text if isinstance(text, str) and text.strip() else batch.topic for text in made.to_pylist()]

    def _with_headers(self, batch: RecordBatch, schema: Schema | None) -> RecordBatch:
        if not self._headers:
            return batch
        columns = []
        for header in self._headers:
            header_schema = header.schema(schema) if is_envelope(schema) and schema is not None else None
            values = (
                header.column(schema, batch.values).to_pylist()
                if header_schema is not None and schema is not None
                else None
            )
            columns.append((header, header_schema, values))
        nulls = batch.values.is_null().to_pylist()
        more: list[list[Header]] = []
        for row, null in enumerate(nulls):
            if null:  # a tombstone only says that the row is gone
                text = Schema(SchemaType.STRING)
                more.append([Header(header.new_name, "d", text) for header in self._headers if header.name == "op"])
            else:
                more.append(
                    [
                        Header(header.new_name, vs[row], header_schema)
                        for header, header_schema, vs in columns
                        if vs is not None
                    ]
                )
        return added(batch, more)

    def _without_dropped(self, batch: RecordBatch) -> list[RecordBatch]:
        """The batch without the fields listed in a header of each record."""
        name = self.config.drop_fields_header
        if not name or batch.headers is None:
            return [batch]
        lists = [_list_in(headers, name) for headers in header_lists(batch.headers)]
        made: list[RecordBatch] = []
        for names, rows in groupby(range(len(batch)), key=lists.__getitem__):
            members = list(rows)
            part = batch.slice(members[0], len(members)) if len(members) < len(batch) else batch
            made += self._dropped(part, names) if names else [part]
        return made

    def _dropped(self, batch: RecordBatch, names: tuple[str, ...]) -> Sequence[RecordBatch]:
        def droppable(schema: Schema | None) -> list[str]:
            if schema is None or schema.type is not SchemaType.STRUCT:
                return []
            compatible = self.config.drop_fields_compatible
            return [m.name for m in schema.fields if m.name in names and (m.schema.optional or not compatible)]

        if self.config.drop_fields_from_key and (gone := droppable(batch.key_schema)):
            (batch,) = ReplaceKeyField(ReplaceFieldConfig(exclude=gone)).apply(batch)
        if gone := droppable(batch.value_schema):
            return ReplaceValueField(ReplaceFieldConfig(exclude=gone)).apply(batch)
        return [batch]

    def field_after(self, path: str) -> str | None:
        """The row after a change; other fields of the envelope are told by ``add.fields`` alone."""
        return path.removeprefix("after.") if path.startswith("after.") else None


def _list_in(headers: tuple[Header, ...], name: str) -> tuple[str, ...]:
    value = next((header.value for header in headers if header.key == name), None)
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _none_of(batch: RecordBatch) -> RecordBatch:
    return batch.slice(0, 0).replace(source_offset=batch.source_offset)


def _runs(mask: Any) -> list[tuple[int, int]]:
    import numpy as np

    edges = [0, *(np.flatnonzero(mask[1:] != mask[:-1]) + 1).tolist(), len(mask)]
    return [(start, stop) for start, stop in pairwise(edges) if stop > start]
