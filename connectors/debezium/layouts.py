"""Builds the schemas and the topic name of a table's events from the schemas of its captured columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from connect.api import DataError, Field, Schema
from connect.api.names import adjuster
from connectors.debezium.config import CaptureConfig
from connectors.debezium.envelope import envelope, topic_name
from connectors.debezium.events import Layout

__all__ = ["Layouts"]


class Layouts:
    """Builds layouts from the configured prefix, delimiter and name adjustment.

    ``source`` is the schema of the source block.
    """

    def __init__(self, config: CaptureConfig, source: Schema) -> None:
        self._prefix, self._delimiter, self._source = config.prefix, config.delimiter, source
        self._schema_name = adjuster(config.schema_adjustment.lower())
        self._field_name = adjuster(config.field_names, field=True)

    def topic(self, *parts: str) -> str:
        return topic_name(self._prefix, *parts, delimiter=self._delimiter)

    def of(
        self,
        table: tuple[str, str],
        columns: Sequence[tuple[str, Schema]],
        key: Sequence[str],
        more: Sequence[tuple[str, Schema]] = (),
    ) -> tuple[Layout, tuple[int, ...]]:
        """The layout of a table (schema, name) with these columns, and where those of the key are: among them, or after them
        among ``more``, columns that keys have otherwise than rows or that rows have not.

        Raises DataError for a key column that the table has not, or whose type has no form.
        """
        names = [name for name, _ in (*columns, *more)]
        for name in key:
            if name not in names:
                raise DataError(
                    f"column {name!r} of table {'.'.join(table)} is in the key but cannot be captured: "
                    "name other columns in message.key.columns"
                )
        topic = self.topic(*table)
        fields = [Field(self._field_name(name), schema) for name, schema in (*columns, *more)]
        positions = tuple(len(names) - 1 - names[::-1].index(name) for name in key)
        row = Schema.struct(fields[: len(columns)], name=self._schema_name(f"{topic}.Value"), optional=True)
        key_schema = None
        if positions:
            members = [Field(fields[at].name, _plain(fields[at].schema)) for at in positions]
            key_schema = Schema.struct(members, name=self._schema_name(f"{topic}.Key"))
        value = envelope(self._schema_name(f"{topic}.Envelope"), row, self._source)
        return Layout(topic, key_schema, row, value, self._source), positions


def _plain(schema: Schema) -> Schema:
    """The schema without the parameters that column.propagate.source.type adds; keys do not have them."""
    kept = {n: v for n, v in schema.parameters.items() if not n.startswith("__debezium.source.")}
    return schema if len(kept) == len(schema.parameters) else replace(schema, parameters=kept)
