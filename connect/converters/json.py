"""JSON, with each record's schema in an envelope or without schemas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import orjson

from connect.api import Converted, Converter, DataError, Problem, Schema, config, key, one_of
from connect.converters.suggestions import is_meant_as_json, suggestion
from connect.data.json_schema import schema_from_json, schema_to_json
from connect.data.json_text import json_texts
from connect.data.json_values import from_json
from tidegate.kit.config import KeyType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JsonConfig", "JsonConverter"]


@config
class JsonConfig:
    """Keys of JsonConverter."""

    schemas: bool = key(
        "schemas.enable",
        default=True,
        importance="high",
        doc="Include schemas within each of the serialized values and keys.",
        group="Schemas",
        display_name="Enable Schemas",
    )
    cache_size: int = key(
        "schemas.cache.size",
        default=1000,
        type=KeyType.INT,
        importance="high",
        doc="The maximum number of schemas that can be cached in this converter.",
        group="Schemas",
        display_name="Schema Cache Size",
    )
    content: str | None = key(
        "schema.content",
        default=None,
        importance="high",
        doc="In sinks: the schema of all messages, in the form of an envelope's; messages are payloads without one then.",
        group="Schemas",
        display_name="Schema Content",
    )
    decimal_format: str = key(
        "decimal.format",
        default="BASE64",
        check=one_of("BASE64", "NUMERIC", ignore_case=True),
        importance="low",
        doc="Whether decimals are written as base64 of their unscaled bytes or as numbers. Both are read.",
        group="Serialization",
        display_name="Decimal Format",
    )
    replace_null: bool = key(
        "replace.null.with.default",
        default=True,
        importance="low",
        doc="Whether a field without a value takes the default of its schema, where that has one, both in writing and in "
        "reading; otherwise it stays null.",
        group="Serialization",
        display_name="Replace null with default",
    )

    def problems(self) -> Iterable[Problem]:
        if self.content:
            try:
                schema_from_json(orjson.loads(self.content))
            except (orjson.JSONDecodeError, DataError) as error:
                yield Problem("schema.content", f"Failed to parse schema in converter config: {error}")


class JsonConverter(Converter):
    """Kafka Connect's JSON: ``{"schema":...,"payload":...}``, or the payload alone with ``schemas.enable=false``.

    Without a schema a column has JSON texts. They are written unparsed, and checked when read.
    """

    config_class = JsonConfig
    config: JsonConfig

    def __init__(self, config: Any, context: Any) -> None:
        super().__init__(config, context)
        self._envelopes: dict[Schema, str] = {}
        self._schemas: dict[bytes, Schema | None] = {}
        self._prefixes: dict[bytes, Schema] = {}
        self._fixed = schema_from_json(orjson.loads(self.config.content)) if self.config.content else None
        self._numeric = self.config.decimal_format.upper() == "NUMERIC"

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        if schema is None:
            texts = values
            if self.config.schemas:
                texts = pc.binary_join_element_wise('{"schema":null,"payload":', texts, "}", "")
        else:
            texts = json_texts(
                schema,
                values,
                numeric_decimals=self._numeric,
                defaults=self.config.replace_null,
                around=(self._envelope(schema), "}") if self.config.schemas else ("", ""),
            )
        return texts.cast(pa.binary())

    def _envelope(self, schema: Schema) -> str:
        if schema not in self._envelopes:
            if len(self._envelopes) >= self.config.cache_size:
                self._envelopes.clear()
            form = orjson.dumps(schema_to_json(schema, numeric_decimals=self._numeric)).decode()
            self._envelopes[schema] = f'{{"schema":{form},"payload":'
        return self._envelopes[schema]

    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        import pyarrow as pa

        where = f"a {'key' if self.context.is_key else 'value'} of {topic}"
        if not self.config.schemas:
            for row, text in enumerate(data.to_pylist()):
                if text:
                    _parse(text, row, where)
            return [Converted(None, _without_empty(data).cast(pa.string()))]
        if len(data) and self._fixed is None and (made := self._alike(data)) is not None:
            return [made]
        parsed = [None if text is None else _parse(text, row, where) for row, text in enumerate(data.to_pylist())]
        if self._fixed is not None:
            return [Converted(self._fixed, self._column(self._fixed, parsed, where))]
        runs = self._runs(parsed, data, where)
        converted, start = [], 0
        for schema, rows in runs:
            payloads = [None if row is None else row["payload"] for row in rows]
            try:
                column = self._column(schema, payloads, where)
            except DataError as error:
                raise DataError(str(error), rows=[start + row for row in error.rows]) from error
            converted.append(Converted(schema, column))
            start += len(rows)
        return converted

    def _alike(self, data: pa.Array) -> Converted | None:
        """All rows at once, if they have one schema written in the same bytes."""
        import pyarrow.compute as pc

        from connect.converters.json_columns import common_envelope, read_columns

        prefix = common_envelope(data)
        if prefix is None:
            return None
        if prefix not in self._prefixes:
            try:
                schema = schema_from_json(orjson.loads(prefix + b"null}")["schema"])
            except (orjson.JSONDecodeError, KeyError, DataError):
                return None
            if len(self._prefixes) >= self.config.cache_size:
                self._prefixes.clear()
            self._prefixes[prefix] = schema
        schema = self._prefixes[prefix]
        payloads = pc.binary_slice(data, len(prefix), -1)
        column = read_columns(schema, payloads, defaults=self.config.replace_null)
        return None if column is None else Converted(schema, column)

    def _column(self, schema: Schema | None, payloads: list[Any], where: str) -> pa.Array:
        import pyarrow as pa

        if schema is None:
            return pa.array([None if p is None else orjson.dumps(p).decode() for p in payloads], pa.string())
        # A required value may still be a tombstone, and a null payload means one.
        return from_json(schema.as_optional(), payloads, where, defaults=self.config.replace_null)

    def _runs(self, parsed: list[Any], data: pa.Array, where: str) -> list[tuple[Schema | None, list[Any]]]:
        """Adjacent rows of one schema together; a null (tombstone) belongs to its surrounding run."""
        forms: list[bytes] = []
        for row, value in enumerate(parsed):
            if value is None and not data[row].is_valid:
                forms.append(forms[-1] if forms else b"")
            elif not isinstance(value, dict) or set(value) != {"schema", "payload"}:
                raise DataError(
                    f'{where}: JsonConverter with schemas.enable requires "schema" and "payload" fields and may not '
                    "contain additional fields. If you are trying to deserialize plain JSON data, set "
                    "schemas.enable=false in your converter configuration.",
                    rows=[row],
                )
            else:
                forms.append(orjson.dumps(value["schema"]))
                self._learn(forms[-1], value["schema"], row, where)
        first = next((form for form in forms if form), b"")
        forms = [form or first for form in forms]
        runs: list[tuple[Schema | None, list[Any]]] = []
        for form, members in groupby(range(len(parsed)), key=forms.__getitem__):
            runs.append((self._schemas[form] if form else None, [parsed[row] for row in members]))
        return runs

    def _learn(self, form: bytes, value: Any, row: int, where: str) -> None:
        if form in self._schemas:
            return
        try:
            schema = None if value is None else schema_from_json(value)
        except DataError as error:
            raise DataError(f"{where}: {error}", rows=[row]) from error
        # A tombstone among records is null in a column, whatever the schema says.
        self._schemas[form] = schema


def _parse(text: bytes, row: int, where: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if is_meant_as_json(text):
            raise DataError(f"{where} is broken JSON: {error}", rows=[row]) from error
        hint = suggestion(text, is_key=where.startswith("a key"))
        raise DataError(f"{where} is not JSON: {error}{hint}", rows=[row]) from error


def _without_empty(data: pa.Array) -> pa.Array:
    """Empty bytes are no value, as in Kafka Connect."""
    import pyarrow.compute as pc

    empty = pc.fill_null(pc.equal(pc.binary_length(data), 0), False)
    return pc.if_else(empty, None, data) if pc.any(empty).as_py() else data
