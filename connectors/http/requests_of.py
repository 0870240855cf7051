"""Turns records into requests: the address, the body, and which records share a request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.api import DataError, JavaRegex, Record, RecordBatch, SchemaType
from connect.formats import java_texts, json_column
from connectors.http.settings import HttpSettings
from tidegate.kit.url_paths import LeadsElsewhere, with_values

__all__ = ["HttpRequest", "filled", "requests_of"]

_PLACEHOLDER: Final = re.compile(r"\$\{([^}]+)\}")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request and the records that it contains."""

    method: str
    url: str
    body: bytes | None
    records: Sequence[Record]
    headers: Sequence[tuple[str, str]] | None = None
    """Set where the headers differ between requests."""


@dataclass(frozen=True, slots=True)
class _SharedParts:
    """The parts that all records of one request have in common."""

    url: str
    group: str = ""
    headers: tuple[tuple[str, str], ...] | None = None


def requests_of(batch: RecordBatch, settings: HttpSettings) -> Iterator[HttpRequest | tuple[Record, DataError]]:
    """The requests for a batch in its order; a record that cannot be sent is returned with the reason."""
    pending: list[tuple[Record, str]] = []
    shared: _SharedParts | None = None
    bodies = _bodies(batch, settings)
    for record, text in zip(batch.records(), bodies, strict=True):
        try:
            if text is None:
                made = _of_null(record, settings)
            else:
                destination = _shared_parts(record, settings, filled(settings.group_by, record))
                made = None
        except DataError as error:
            yield record, error
            continue
        if text is None and made is None:
            continue
        if pending and (text is None or destination != shared or len(pending) >= settings.records):
            yield _joined(pending, shared, settings)
            pending = []
        if text is None:
            assert made is not None
            yield made
        else:
            pending.append((record, text))
            shared = destination
    if pending:
        yield _joined(pending, shared, settings)


def _shared_parts(record: Record, settings: HttpSettings, group: str = "") -> _SharedParts:
    headers = None
    if settings.fills_headers:
        headers = tuple((name, filled(value, record)) for name, value in settings.headers)
    literals = _PLACEHOLDER.split(settings.url)  # each other one is the name of a placeholder
    pieces = [(_text(_part(text, record)) if n % 2 else text, bool(n % 2)) for n, text in enumerate(literals)]
    return _SharedParts(_address(pieces, record), group, headers)


def _address(pieces: Sequence[tuple[str, bool]], record: Record) -> str:
    try:
        return with_values(pieces)
    except LeadsElsewhere as error:
        raise DataError(
            f"the record at offset {record.offset} of {record.topic} has no address of its own: {error}"
        ) from error


def _joined(
    pending: Sequence[tuple[Record, str]], destination: _SharedParts | None, settings: HttpSettings
) -> HttpRequest:
    assert destination is not None
    body = settings.prefix + settings.separator.join(text for _, text in pending) + settings.suffix
    records = [record for record, _ in pending]
    return HttpRequest(settings.method, destination.url, body.encode(), records, destination.headers)


def _of_null(record: Record, settings: HttpSettings) -> HttpRequest | None:
    """The request for a record without value: a DELETE with its key, no request, or an error."""
    if settings.nulls == "fail":
        raise DataError(
            f"the record at offset {record.offset} of {record.topic} has no value, and behavior.on.null.values is fail"
        )
    if settings.nulls != "delete":
        return None
    if record.key is None:
        raise DataError(f"the record at offset {record.offset} of {record.topic} has neither value nor key to delete")
    destination = _shared_parts(record, settings)
    url = destination.url
    if "${key" not in settings.url:
        url = _address([(f"{url.rstrip('/')}/", False), (_text(record.key), True)], record)
    return HttpRequest("DELETE", url, None, [record], destination.headers)


def _bodies(batch: RecordBatch, settings: HttpSettings) -> list[str | None]:
    schema = batch.value_schema
    nested = schema is not None and schema.type in (SchemaType.STRUCT, SchemaType.ARRAY, SchemaType.MAP)
    as_json = settings.json or (settings.structs_as_json and nested)
    column = json_column(schema, batch.values) if as_json else java_texts(batch)
    texts: list[str | None] = column.to_pylist()
    valid = batch.values.is_valid().to_pylist()
    if schema is None and not settings.json:
        texts = [_unquoted(text) for text in texts]
    return [
        _replaced(text, settings) if there and text is not None else None
        for text, there in zip(texts, valid, strict=True)
    ]


def _unquoted(text: str | None) -> str | None:
    """A text without schema is a JSON string; this is its content."""
    return str(json.loads(text)) if text is not None and text.startswith('"') else text


def _replaced(text: str, settings: HttpSettings) -> str:
    for pattern, replacement in settings.replacements:
        text = JavaRegex(pattern).replace_all(text, replacement)
    return text


def filled(template: str, record: Record) -> str:
    """The template with ``${topic}``, ``${key}``, ``${key.field}`` and ``${field}`` (of the value) filled in.

    Raises DataError where the record has no such field.
    """
    return _PLACEHOLDER.sub(lambda match: _text(_part(match[1], record)), template)


def _part(name: str, record: Record) -> Any:
    if name == "topic":
        return record.topic
    at, path = record.value, name.split(".")
    if path[0] in ("key", "value"):
        at, path = (record.key if path[0] == "key" else record.value), path[1:]
    for step in path:
        if not isinstance(at, Mapping) or step not in at:
            raise DataError(f"the record at offset {record.offset} of {record.topic} has no {name} for the address")
        at = at[step]
    return at


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), default=str)
    return "null" if value is None else str(value)
