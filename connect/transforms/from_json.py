"""jcustenborder's FromJson: converts text or bytes with JSON to a struct, by a JSON Schema in the configuration.

Source: github.com/jcustenborder/kafka-connect-json-schema.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from connect.api import ConnectError, DataError, Field, Problem, RecordBatch, Schema, SchemaType, config, key, one_of
from connect.data.java.date_format import DateFormat, date_format
from connect.transforms.sides import SideTransformation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FromJsonKey", "FromJsonValue"]

Reader = Callable[[Any], Any]
"""Converts a JSON value that is not null to a column's value; raises ValueError."""

_MOST_BYTES: Final = 1 << 20
_MOST_DEPTH: Final = 64
_TIMEOUT_S: Final = 10
_EXACT: Final = decimal.Context(prec=76, traps=[decimal.Inexact, decimal.InvalidOperation])
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@config
class FromJsonConfig:
    """Keys of FromJson."""

    location: str = key(
        "json.schema.location",
        default="Url",
        check=one_of("Url", "Inline"),
        importance="high",
        doc="Where the JSON Schema is: Url (json.schema.url) or Inline (json.schema.inline).",
    )
    url: str = key(
        "json.schema.url",
        default="File:///doesNotExist",
        importance="high",
        doc="Where the JSON Schema is read from, once: an http, https or file URL.",
    )
    inline: str = key("json.schema.inline", default="", importance="high", doc="The JSON Schema itself.")
    validates: bool = key(
        "json.schema.validation.enabled",
        default=False,
        doc="Whether every value is checked against the whole JSON Schema.",
    )
    excluded: list[str] = key(
        "json.exclude.locations",
        default=(),
        importance="low",
        doc="Properties to leave out, as pointers into the JSON Schema: #/properties/name.",
    )

    def problems(self) -> Iterable[Problem]:
        if self.location == "Url":
            if urlsplit(self.url).scheme.lower() not in ("http", "https", "file"):
                yield Problem("json.schema.url", f"{self.url} is no URL that begins with http, https or file")
            return
        try:
            _Translation(_document(self.inline), frozenset(self.excluded)).translated()
        except ConnectError as error:
            yield Problem("json.schema.inline", str(error))


class _FromJson(SideTransformation):
    """Properties missing from the JSON Schema are dropped. A value of another type is an error."""

    config_class = FromJsonConfig
    config: FromJsonConfig

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        if schema.type not in (SchemaType.STRING, SchemaType.BYTES) or schema.name is not None:
            kind = schema.name or schema.type.value
            raise DataError(f"FromJson reads text or bytes, and the {self.side} of {batch.topic} is {kind}")
        return self._read(column, json.loads)

    def apply(self, batch: RecordBatch) -> list[RecordBatch]:
        column, schema = self.column(batch)
        if column is None or column.null_count == len(column):
            return [batch]
        made, made_schema = self._read(column, _unquoted) if schema is None else self.change(batch, schema, column)
        return [self.changed(batch, made, made_schema)]

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        raise NotImplementedError("the result has a schema: see apply")

    @cached_property
    def _document(self) -> Any:
        return _document(self.config.inline if self.config.location == "Inline" else _fetched(self.config.url))

    @cached_property
    def _reading(self) -> tuple[Schema, Reader]:
        return _Translation(self._document, frozenset(self.config.excluded)).translated()

    @cached_property
    def _validator(self) -> Any:
        from registry.formats.json_schema.schema import JsonSchema

        return JsonSchema(self._document, {}).validator() if self.config.validates else None

    def _read(self, column: pa.Array, loads: Callable[[Any], Any]) -> tuple[pa.Array, Schema]:
        import pyarrow as pa

        schema, reader = self._reading
        values = []
        for row, text in enumerate(column.to_pylist()):
            try:
                value = None if text is None else loads(text)
                if value is not None and self._validator is not None:
                    self._check(value)
                values.append(None if value is None else reader(value))
            except (ValueError, ArithmeticError, RecursionError) as error:
                raise DataError(
                    f"the {self.side} cannot be read as JSON of this schema: {error}", rows=[row]
                ) from error
        try:
            return pa.array(values, schema.arrow_type), schema
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise DataError(
                f"the {self.side} does not fit its schema: {error}", rows=_misfits(values, schema)
            ) from error

    def _check(self, value: Any) -> None:
        from registry.errors import InvalidSchema

        try:
            problems = [error.message for error in self._validator.iter_errors(value)]
        except InvalidSchema as error:
            raise ConnectError(f"the JSON Schema cannot be used to validate: {error}") from error
        if problems:
            raise ValueError(
                f"Could not validate JSON. Found {len(problems)} violations(s).\n" + "\n".join(problems[:10])
            )


def _misfits(values: list[Any], schema: Schema) -> list[int]:
    import pyarrow as pa

    wrong = []
    for row, value in enumerate(values):
        try:
            pa.array([value], schema.arrow_type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            wrong.append(row)
    return wrong


def _unquoted(text: str) -> Any:
    """A value without schema is JSON already; a string in it may contain the actual JSON."""
    value = json.loads(text)
    return json.loads(value) if isinstance(value, str) else value


class FromJsonKey(_FromJson):
    """Of the key."""

    side = "key"


class FromJsonValue(_FromJson):
    """Of the value."""

    side = "value"


def _fetched(url: str) -> str:
    """The content of a URL. Raises ConnectError."""
    parts = urlsplit(url)
    if parts.scheme.lower() == "file":
        try:
            with Path(unquote(parts.path)).open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise ConnectError(f"json.schema.url {url} cannot be read: {error.strerror or error}") from error
    else:
        content = _downloaded(url)
    if len(content) > _MOST_BYTES:
        raise ConnectError(f"json.schema.url {url} is larger than {_MOST_BYTES} bytes")
    return content.decode("utf-8", "replace")


def _downloaded(url: str) -> bytes:
    import requests

    try:
        with requests.get(url, timeout=_TIMEOUT_S, stream=True) as answer:
            answer.raise_for_status()
            return b"".join(_up_to(answer.iter_content(65536), _MOST_BYTES + 1))
    except requests.RequestException as error:
        raise ConnectError(f"json.schema.url {url} cannot be read: {error}") from error


def _up_to(chunks: Iterable[bytes], most: int) -> Iterable[bytes]:
    for chunk in chunks:
        yield chunk
        most -= len(chunk)
        if most <= 0:
            return


def _document(text: str) -> Any:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConnectError(f"the JSON Schema is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ConnectError(f"the JSON Schema is {type(document).__name__} and should be an object")
    return document


class _Translation:
    """A JSON Schema as a Connect schema, with readers of its values."""

    def __init__(self, document: Mapping[str, Any], excluded: frozenset[str]) -> None:
        self._document, self._excluded = document, excluded
        self._base = str(document.get("$id") or "")

    def translated(self) -> tuple[Schema, Reader]:
        """Raises ConnectError for schemas that Connect's types can't express."""
        return self._of(self._document, "#", optional=False, depth=0)

    def _of(self, schema: Any, at: str, *, optional: bool, depth: int) -> tuple[Schema, Reader]:
        if depth > _MOST_DEPTH:
            raise ConnectError(f"the JSON Schema is nested too deep, or refers to itself, at {at[:200]}")
        if not isinstance(schema, Mapping):
            raise ConnectError(f"{at} is {schema!r} and should be an object")
        if "$ref" in schema:
            target, at = self._referred(str(schema["$ref"]), at)
            return self._of(target, at, optional=optional, depth=depth + 1)
        doc = schema.get("description") or None
        chosen, kind = self._chosen(schema, at)
        if chosen is not schema:
            member_schema, reader = self._of(chosen, at, optional=optional, depth=depth + 1)
            return (member_schema if doc is None else _documented(member_schema, doc)), reader
        made, reader = self._made(schema, kind, at, depth)
        return _documented(made.as_optional(optional), doc), reader

    def _chosen(self, schema: Mapping[str, Any], at: str) -> tuple[Mapping[str, Any], str]:
        """The only alternative that is not null, and its type."""
        for keyword in ("anyOf", "oneOf", "allOf"):
            if isinstance(choices := schema.get(keyword), list):
                real = [each for each in choices if not (isinstance(each, Mapping) and each.get("type") == "null")]
                if len(real) != 1:
                    raise ConnectError(f"{at} has {len(real)} alternatives that are not null: exclude it, or keep one")
                if not isinstance(real[0], Mapping):
                    raise ConnectError(f"{at} has {real[0]!r} for an alternative, which should be an object")
                return real[0], ""
        kind = schema.get("type")
        if isinstance(kind, list):
            kinds = [each for each in kind if each != "null"]
            if len(kinds) != 1:
                raise ConnectError(f"{at} has {len(kinds)} types that are not null: exclude it, or keep one")
            return {**schema, "type": kinds[0]}, ""
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else None
        if not isinstance(kind, str):
            raise ConnectError(f"{at} has no type that a field could have")
        return schema, kind

    def _made(self, schema: Mapping[str, Any], kind: str, at: str, depth: int) -> tuple[Schema, Reader]:
        match kind:
            case "object":
                return self._struct(schema, at, depth)
            case "array":
                items, reader = self._of(schema.get("items"), f"{at}/items", optional=False, depth=depth + 1)
                return Schema.array(items), _array(reader)
            case "integer":
                return Schema(SchemaType.INT64), _integer
            case "number":
                return Schema(SchemaType.FLOAT64), _number
            case "boolean":
                return Schema(SchemaType.BOOLEAN), _boolean
            case "string":
                return _text_type(schema, at)
        raise ConnectError(f"{at} is of type {kind!r}, which no field can have")

    def _struct(self, schema: Mapping[str, Any], at: str, depth: int) -> tuple[Schema, Reader]:
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping):
            raise ConnectError(f"{at}/properties is no object")
        required = schema.get("required")
        needed = frozenset(filter(_is_text, required)) if isinstance(required, list) else frozenset()
        fields, readers = [], {}
        for name in sorted(properties):
            pointer = f"{at}/properties/{name}"
            if name == "$schema" or pointer in self._excluded:
                continue
            member_schema, readers[name] = self._of(
                properties[name], pointer, optional=name not in needed, depth=depth + 1
            )
            fields.append(Field(name, member_schema))
        return Schema.struct(fields, name=self._name(schema, at)), _struct(readers, needed)

    def _name(self, schema: Mapping[str, Any], at: str) -> str | None:
        """Its title, otherwise its path with dots for other characters."""
        said = schema.get("title") or self._base + (at if at != "#" or not self._base else "")
        return ".".join(part for part in re.split(r"[#\\/.]+", str(said)) if part) or None

    def _referred(self, reference: str, at: str) -> tuple[Any, str]:
        if not reference.startswith("#"):
            raise ConnectError(f"{at} refers to {reference[:200]!r}: only references within the document are read")
        node: Any = self._document
        for step in reference.removeprefix("#").split("/")[1:]:
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping) or step not in node:
                raise ConnectError(f"{at} refers to {reference[:200]!r}, which is not there")
            node = node[step]
        return node, reference


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _documented(schema: Schema, doc: str | None) -> Schema:
    from dataclasses import replace

    return schema if doc is None else replace(schema, doc=str(doc))


def _text_type(schema: Mapping[str, Any], at: str) -> tuple[Schema, Reader]:
    if schema.get("contentEncoding") == "base64":
        return Schema(SchemaType.BYTES), _bytes
    match schema.get("format"):
        case "date":
            return Schema.date(), lambda value: dt.date.fromisoformat(_text(value))
        case "time":
            return Schema.time(), _time
        case "date-time":
            return Schema.timestamp(), _instant
        case "decimal":
            scale = schema.get("scale")
            if not str(scale).isdigit():
                raise ConnectError(f"{at} has the format decimal and scale {scale!r}, which should be a number")
            return Schema.decimal(int(str(scale))), _decimal(int(str(scale)))
        case "custom-timestamp":
            pattern = schema.get("dateTimeFormat")
            try:
                form = date_format(str(pattern or ""))
            except ValueError as error:
                raise ConnectError(f"{at} has dateTimeFormat {pattern!r}: {error}") from error
            return Schema.timestamp(parameters={"dateFormat": str(pattern)}), _by_pattern(form, str(pattern))
    return Schema(SchemaType.STRING), _text


def _struct(readers: Mapping[str, Reader], required: frozenset[str]) -> Reader:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _unfit(value, "should be an object")
        made = {}
        for name, reader in readers.items():
            item = value.get(name)
            if item is None and name in required:
                raise ValueError(f"{name} is required and null or missing")
            try:
                made[name] = None if item is None else reader(item)
            except (ValueError, ArithmeticError) as error:
                raise ValueError(f"{name}: {error}") from error
        return made

    return read


def _array(reader: Reader) -> Reader:
    def read(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _unfit(value, "should be an array")
        if any(item is None for item in value):
            raise ValueError("an array holds null, and its items are required")
        return [reader(item) for item in value]

    return read


def _unfit(value: Any, problem: str) -> ValueError:
    return ValueError(f"{_shown(value)} {problem}")


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:100]


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise _unfit(value, "should be an integer")
    if not -(1 << 63) <= value < 1 << 63:
        raise _unfit(value, "is beyond 64 bits")
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unfit(value, "should be a number")
    return float(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _unfit(value, "should be true or false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _unfit(value, "should be text")
    return value


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except binascii.Error as error:
        raise ValueError(f"{_shown(value)} is no base64: {error}") from error


def _time(value: Any) -> dt.time:
    made = dt.time.fromisoformat(_text(value))
    if made.tzinfo is not None:
        raise _unfit(value, "should be a time without a zone")
    return made.replace(microsecond=made.microsecond // 1000 * 1000)


def _instant(value: Any) -> dt.datetime:
    made = dt.datetime.fromisoformat(_text(value))
    if made.tzinfo is None:
        raise _unfit(value, "should say its zone: 2024-01-02T03:04:05Z")
    return made.replace(microsecond=made.microsecond // 1000 * 1000)


def _by_pattern(form: DateFormat, pattern: str) -> Reader:
    def read(value: Any) -> dt.datetime:
        ms = form.parse(_text(value))
        if ms is None:
            raise ValueError(f"{_shown(value)} is not of the form {pattern}")
        return _EPOCH + dt.timedelta(milliseconds=ms)

    return read


def _decimal(scale: int) -> Reader:
    def read(value: Any) -> decimal.Decimal:
        try:
            exact = decimal.Decimal(_text(value))
        except decimal.InvalidOperation:
            raise _unfit(value, "is no decimal number") from None
        if not exact.is_finite():
            raise _unfit(value, "is no decimal number")
        with decimal.localcontext(_EXACT):
            try:
                return exact.quantize(decimal.Decimal(1).scaleb(-scale))
            except (decimal.Inexact, decimal.InvalidOperation):
                raise ValueError(
                    f"{_shown(value)} has more than {scale} digits after the point, or is too long"
                ) from None

    return read
