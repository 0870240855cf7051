"""Records of a topic: searched in steps that the page continues by itself, one at a time, exported, and written."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tidegate.console.console import Console, Visit
from tidegate.console.hexdump import hexdump
from tidegate.console.numbers import whole_number
from tidegate.console.pages.topics import topic_admin, topic_path
from tidegate.console.schema_form import FormField, form_fields, form_value
from tidegate.console.searching import MOST_HITS, Criteria, Search, record_at, registry_of
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.records.decoding import decoder, is_framed, subject_encoder
from tidegate.records.encoding import json_bytes, text_bytes
from tidegate.records.exact_json import json_text, parsed_json
from tidegate.records.shown import shown_record, value_text

if TYPE_CHECKING:
    from registry.client import RegistryClient

__all__ = ["routes"]

_LIMITS: Final = (50, 200, MOST_HITS)
_LONGEST_CELL: Final = 300
_LONGEST_SHOWN: Final = 200_000
_HEX_BYTES: Final = 4096
_MOST_EXPORTED: Final = 1_000_000
_MEDIA: Final = {
    "jsonl": "application/jsonl; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
_BLOCK_BYTES: Final = 65_536
_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_AS_JSON, _AS_TEXT, _BY_SCHEMA, _BY_FIELDS = "json", "text", "schema", "fields"
_MOST_FIELDS: Final = 100
"""The most fields of a form."""


def routes(console: Console) -> list[Route]:
    return [
        console.route("/topics/{name}/records", _show),
        console.route("/topics/{name}/records/begin", _begin),
        console.route("/topics/{name}/records/more", _more, ["POST"]),
        console.route("/topics/{name}/records/export", _export),
        console.route("/topics/{name}/records/{partition:int}/{offset:int}", _record),
        console.route("/topics/{name}/records/{partition:int}/{offset:int}/value", _value),
        console.route("/topics/{name}/produce", _produce_form),
        console.route("/topics/{name}/produce", _produce, ["POST"]),
    ]


def _criteria(values: Any) -> Criteria:
    return Criteria(*(values.get(name, "").strip() for name in ("text", "key", "condition")))


def _limit(values: Any) -> int:
    limit = whole_number(values.get("limit", ""))
    return limit if limit in _LIMITS else _LIMITS[0]


async def _show(visit: Visit) -> Response:
    """The form; the page asks for the first step by itself, so that a slow one does not keep it."""
    query = dict(visit.query)
    chosen = query.get("from", "").strip()
    # The newest, unless something is searched for: that may be anywhere.
    query["from"] = chosen or ("beginning" if _criteria(query) != Criteria() else f"-{_LIMITS[0]}")
    exports = {
        kind: topic_path(visit.parameters["name"], "records", "export", **query | {"format": kind}) for kind in _MEDIA
    }
    begin = topic_path(visit.parameters["name"], "records", "begin", **query)
    return visit.page(
        "records.html",
        name=visit.parameters["name"],
        query=query,
        chosen=chosen,
        limits=_LIMITS,
        limit=_limit(query),
        follows=query.get("follow") == "yes",
        begin=begin,
        exports=exports,
    )


async def _begin(visit: Visit) -> Response:
    query = visit.query
    async with topic_admin(visit) as admin:
        search = await Search.begun(
            admin, visit.parameters["name"], _criteria(query), query.get("from", "end"), query.get("partition", "")
        )
    return await _step(visit, search, dict(query), hits=0)


async def _more(visit: Visit) -> Response:
    form = await visit.form()
    search = Search.restored(visit.parameters["name"], _criteria(form), form.get("state", ""))
    if form.get("follow") == "yes" and search.is_over:
        await search.extend(visit.faces)
    return await _step(visit, search, form, hits=whole_number(form.get("hits", "")) or 0)


async def _step(visit: Visit, search: Search, values: dict[str, str], *, hits: int) -> Response:
    limit = _limit(values)
    # The newest records are those of all partitions, so all of them are read before the page puts them in order.
    room = max(limit, search.total) if search.newest_first and search.total <= MOST_HITS else limit - hits % limit
    await search.step(visit.faces, room)
    rows = [_row(search.topic, hit) for hit in search.hits]
    if search.newest_first:
        rows.reverse()
    is_full = len(rows) >= room and not search.is_over
    return visit.page(
        "records_found.html",
        name=search.topic,
        search=search,
        rows=rows,
        hits=hits + len(rows),
        is_full=is_full,
        follows=values.get("follow") == "yes",
        values={key: values.get(key, "") for key in ("text", "key", "condition", "limit", "follow")},
    )


def _row(topic: str, hit: dict[str, Any]) -> dict[str, Any]:
    key, value = (None if hit[part] is None else value_text(hit[part]) for part in ("key", "value"))
    return {
        "path": topic_path(topic, "records", str(hit["partition"]), str(hit["offset"])),
        "partition": hit["partition"],
        "offset": hit["offset"],
        "timestamp": hit["timestamp"],
        "key": key if key is None else key[:_LONGEST_CELL],
        "value": value if value is None else value[:_LONGEST_CELL],
        "is_cut": value is not None and len(value) > _LONGEST_CELL,
        "size": hit["size"],
    }


async def _export(visit: Visit) -> Response:
    """All hits as a file, while they are found. It ends at the ends of the partitions at the start, and at a million hits."""
    query, topic = visit.query, visit.parameters["name"]
    async with topic_admin(visit) as admin:
        search = await Search.begun(
            admin, topic, _criteria(query), query.get("from", "beginning"), query.get("partition", "")
        )
    kind = query.get("format", "jsonl")
    if kind not in _MEDIA:
        raise UsageError(f"{kind!r} is no format of an export; there are {', '.join(_MEDIA)}")

    async def lines() -> AsyncIterator[str]:
        if kind == "csv":
            yield _csv_line(_COLUMNS)
        written = 0
        while not search.is_over and written < _MOST_EXPORTED:
            await search.step(visit.faces, min(MOST_HITS, _MOST_EXPORTED - written))
            written += len(search.hits)
            for hit in search.hits:
                shown: dict[str, Any] = {name: hit[name] for name in _COLUMNS if name in hit}
                yield _csv_line(_cells(shown)) if kind == "csv" else json_text(shown, constants=True) + "\n"

    file = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in topic)
    headers = {"content-disposition": f'attachment; filename="{file}.{kind}"'}
    content = _as_parquet(lines()) if kind == "parquet" else lines()
    return StreamingResponse(content, media_type=_MEDIA[kind], headers=headers)


async def _as_parquet(lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """The file that a process makes of JSON lines; it begins when all of them are there."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tidegate.records.parquet",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        async for line in lines:
            process.stdin.write(line.encode("utf-8", "backslashreplace"))
            await process.stdin.drain()
        process.stdin.close()
        while block := await process.stdout.read(_BLOCK_BYTES):
            yield block
        if await process.wait():
            raise TidegateError("The records could not be made a Parquet file; the log of the console says why")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _cells(shown: dict[str, Any]) -> list[str]:
    return ["" if (value := shown.get(name)) is None else value_text(value) for name in _COLUMNS]


def _csv_line(cells: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)  # RFC 4180
    return text.getvalue()


async def _record(visit: Visit) -> Response:
    name, partition, offset = (visit.parameters[part] for part in ("name", "partition", "offset"))
    async with topic_admin(visit) as admin:
        record = await record_at(admin, visit.faces, name, partition, offset)
    where = {"name": name, "partition": partition, "offset": offset}
    if record is None:
        return visit.page("record.html", 404, record=None, **where)
    async with registry_of(visit.faces) as client:
        shown = await asyncio.to_thread(shown_record, record, decoder(client))
    key, value = (_pretty(shown[part]) for part in ("key", "value"))
    return visit.page(
        "record.html",
        record=record,
        key=key,
        value=value[:_LONGEST_SHOWN] if value is not None else None,
        is_cut=value is not None and len(value) > _LONGEST_SHOWN,
        headers=[(header, _pretty(decoder(None)(data))) for header, data in record.headers],
        schema_ids=[(part, _schema_id(getattr(record, part))) for part in ("key", "value")],
        dumps=[
            (part, hexdump(data, _HEX_BYTES), len(data)) for part in ("key", "value") if (data := getattr(record, part))
        ],
        hex_bytes=_HEX_BYTES,
        whole=topic_path(name, "records", str(partition), str(offset), "value"),
        **where,
    )


async def _value(visit: Visit) -> Response:
    """The bytes of a value, as a file."""
    name, partition, offset = (visit.parameters[part] for part in ("name", "partition", "offset"))
    async with topic_admin(visit) as admin:
        record = await record_at(admin, visit.faces, name, partition, offset)
    if record is None or record.value is None:
        raise UsageError(f"There is no value at offset {offset} of partition {partition} of topic {name}")
    headers = {"content-disposition": f'attachment; filename="value-{partition}-{offset}"'}
    return Response(record.value, media_type="application/octet-stream", headers=headers)


def _pretty(value: Any) -> str | None:
    """Text as it is, JSON with a line for each member; numbers keep their digits."""
    return value if value is None or isinstance(value, str) else json_text(value, constants=True, indent=True)


def _schema_id(data: bytes | None) -> int | None:
    return int.from_bytes(data[1:5], "big") if data is not None and is_framed(data) else None


async def _produce_form(visit: Visit) -> Response:
    return await _form_page(visit, {})


async def _form_page(visit: Visit, values: dict[str, str], error: str = "") -> Response:
    name = visit.parameters["name"]
    subjects: list[str] = []
    if visit.faces.has_registry:
        try:
            subjects = await visit.faces.kept("subjects", lambda: visit.faces.registry.call("GET", "/subjects"))
        except TidegateError as away:
            error = error or f"The schema registry does not answer: {away}"
    expected, key_subject = f"{name}-value", f"{name}-key"
    chosen = {key: visit.query[key] for key in ("subject", "format") if key in visit.query}
    by_schema = _BY_FIELDS if expected in subjects else _AS_JSON
    shown = {"subject": expected, "key_subject": key_subject if key_subject in subjects else "", "format": by_schema}
    shown |= chosen | values
    fields: list[FormField] = []
    if shown["format"] == _BY_FIELDS:
        fields = await asyncio.to_thread(_fields_of, visit, shown["subject"])
        shown["format"] = _BY_FIELDS if fields else _BY_SCHEMA
    return visit.page(
        "produce.html",
        400 if error else 200,
        name=name,
        values=shown,
        fields=fields,
        error=error,
        written=visit.query.get("written", ""),
    )


def _fields_of(visit: Visit, subject: str) -> list[FormField]:
    """The fields of the newest schema of a subject; none where it is no record of Avro, or too large for a form."""
    try:
        with visit.faces.registry_client() as client:
            registered = client.version(subject)
    except TidegateError:
        return []
    schema: Any = json.loads(registered.text) if registered.schema_type == "AVRO" else None
    is_record = isinstance(schema, dict) and schema.get("type") == "record"
    return form_fields(schema) if is_record and len(schema["fields"]) <= _MOST_FIELDS else []


async def _produce(visit: Visit) -> Response:
    """Write a record; what is wrong with it is shown beside what was typed."""
    from broker.client import BatchProducer

    name, form = visit.parameters["name"], await visit.form()
    try:
        key, value, headers, partition = await asyncio.to_thread(_encoded, visit, form)
        async with BatchProducer(visit.faces.kafka) as producer:
            ack = await producer.enqueue(name, key, value, headers, partition=partition)
            await producer.flush()
            at = await ack
    except TidegateError as error:
        return await _form_page(visit, form, error.message)
    where = f"partition {at.partition}, offset {at.offset}"
    visit.audit("write record", topic=name, partition=at.partition, offset=at.offset)
    return visit.redirect(topic_path(name, "produce", written=where))


def _encoded(
    visit: Visit, form: dict[str, str]
) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int | None]:
    """Key, value, headers and partition of a form. Raises UsageError that names the field."""
    text = form.get("partition", "").strip()
    if (partition := whole_number(text)) is None and text:
        raise UsageError(f"Partition: {text[:50]!r} is no number")
    headers: list[tuple[str, bytes | None]] = []
    for line in form.get("headers", "").splitlines():
        name, equals, text = line.partition("=")
        if line.strip() and not equals:
            raise UsageError(f"Headers: {line!r} is no header; give NAME=VALUE in each line")
        if line.strip():
            headers.append((name.strip(), text.encode()))
    key = _key_bytes(visit, form) if form.get("key") else None
    value = None if form.get("null") == "yes" else _value_bytes(visit, form)
    return key, value, headers, partition


def _key_bytes(visit: Visit, form: dict[str, str]) -> bytes:
    text, subject = form["key"], form.get("key_subject", "").strip()
    if not subject:
        return text_bytes(text)
    with visit.faces.registry_client() as client:
        return _by_schema(client, subject, _parsed("Key", text, constants=True), "Key")


def _value_bytes(visit: Visit, form: dict[str, str]) -> bytes:
    text, kind = form.get("value", "").replace("\r\n", "\n"), form.get("format", _AS_JSON)
    if kind == _AS_TEXT:
        return text.encode()
    if kind == _BY_FIELDS:
        subject = form.get("subject", "").strip()
        fields = _fields_of(visit, subject)
        if not fields:
            raise UsageError(f"Value: {subject} has no schema any more from which there is a form")
        with visit.faces.registry_client() as client:
            return _by_schema(client, subject, form_value(fields, form))
    value = _parsed("Value", text, constants=kind == _BY_SCHEMA)
    if kind != _BY_SCHEMA:
        return json_bytes(value, text)
    if not visit.faces.has_registry:
        raise UsageError("Value: this console has no schema registry (schema.registry.url)")
    with visit.faces.registry_client() as client:
        return _by_schema(client, form.get("subject", "").strip(), value)


def _parsed(part: str, text: str, *, constants: bool) -> Any:
    try:
        return parsed_json(text, constants=constants)
    except ValueError as error:
        raise UsageError(f"{part}: not JSON: {error}") from error


def _by_schema(client: RegistryClient, subject: str, value: Any, part: str = "Value") -> bytes:
    from registry.serde import SerializationError

    try:
        return subject_encoder(client, subject)(value)
    except SerializationError as error:
        raise UsageError(f"{part}: it does not fit the schema of {subject}: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{part}: it is nested too deep") from error
