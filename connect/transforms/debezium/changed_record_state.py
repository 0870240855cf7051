"""ExtractChangedRecordState: headers tell which columns an update changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connect.api import Header, RecordBatch, Schema, SchemaType, Transformation, config, key
from connect.data.header_changes import added
from connect.transforms.debezium.fields import is_envelope

__all__ = ["ExtractChangedRecordState", "ExtractChangedRecordStateConfig"]


@config
class ExtractChangedRecordStateConfig:
    """Keys of ExtractChangedRecordState."""

    changed: str | None = key(
        "header.changed.name",
        default=None,
        importance="low",
        doc="The header with the names of the columns that changed.",
    )
    unchanged: str | None = key(
        "header.unchanged.name",
        default=None,
        importance="low",
        doc="The header with the names of the columns that did not change.",
    )


class ExtractChangedRecordState(Transformation):
    """The lists are empty if there is no row before or after the change. Records other than changes pass."""

    config_class = ExtractChangedRecordStateConfig
    config: ExtractChangedRecordStateConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        schema = batch.value_schema
        if schema is None or not is_envelope(schema) or not (self.config.changed or self.config.unchanged):
            return [batch]
        parts = [batch.values.field(schema.field_names.index(name)) for name in ("before", "after")]
        rows = zip(*(column.to_pylist(maps_as_pydicts="strict") for column in parts), strict=True)
        changes = batch.values.is_valid().to_pylist()
        return [
            added(batch, [self._headers(*row) if change else () for change, row in zip(changes, rows, strict=True)])
        ]

    def _headers(self, before: Any, after: Any) -> Sequence[Header]:
        names: dict[bool, list[str]] = {True: [], False: []}
        if before is not None and after is not None:
            for name, value in after.items():
                names[not _same(before.get(name), value)].append(name)
        return [
            Header(header, names[changed], _list_schema(header))
            for header, changed in ((self.config.changed, True), (self.config.unchanged, False))
            if header
        ]


def _list_schema(name: str) -> Schema:
    text = Schema(SchemaType.STRING, optional=True)
    return Schema(SchemaType.ARRAY, value_schema=text, optional=True, name=name)


def _same(first: Any, other: Any) -> bool:
    return bool(first == other or (first != first and other != other))  # noqa: PLR0124 - NaN
