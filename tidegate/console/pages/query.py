"""A query of Spark SQL over topics, and its result as a table."""

from __future__ import annotations

import csv
import io
import json
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from tidegate.console.console import Console, Visit
from tidegate.console.queries import MOST_ROWS, MOST_S, RunningQuery
from tidegate.kit.errors import TidegateError

__all__ = ["routes"]

_LONGEST_CELL: Final = 300
_MOST_TOPICS: Final = 200


def routes(console: Console) -> list[Route]:
    return [
        console.route("/query", _show),
        console.route("/query", _start, ["POST"]),
        console.route("/query/{id}", _watch),
        console.route("/query/{id}/stop", _stop, ["POST"]),
        console.route("/query/{id}/result.{kind}", _result),
    ]


async def _show(visit: Visit) -> Response:
    latest = visit.console.queries.latest(visit.session.id)
    sql = visit.query.get("sql", "") or (latest.sql if latest is not None else "")
    return await _page(visit, sql)


async def _page(visit: Visit, sql: str, query: RunningQuery | None = None, error: str = "") -> Response:
    topics = await visit.faces.topics()
    return visit.page(
        "query.html",
        400 if error else 200,
        sql=sql,
        query=query,
        rows=_rows(query),
        error=error,
        topics=[name for name in topics if not name.startswith("_")][:_MOST_TOPICS],
        most_rows=MOST_ROWS,
        most_s=MOST_S,
    )


async def _start(visit: Visit) -> Response:
    sql = (await visit.form()).get("sql", "").strip()
    if not sql:
        return await _page(visit, "", error="Write a query")
    try:
        kafka = visit.faces.kafka
        query = visit.console.queries.start(
            visit.session.id,
            sql,
            {"bootstrap.servers": kafka.bootstrap_servers, **kafka.properties},
            visit.faces.registry_properties,
        )
    except TidegateError as error:
        return await _page(visit, sql, error=error.message)
    visit.audit("query", sql=sql[:1000])
    return visit.redirect(f"/query/{query.id}")


async def _watch(visit: Visit) -> Response:
    query = visit.console.queries.look(visit.session.id, visit.parameters["id"])
    if visit.is_partial:
        return visit.page("query_result.html", query=query, rows=_rows(query))
    return await _page(visit, query.sql, query)


async def _stop(visit: Visit) -> Response:
    query = visit.console.queries.look(visit.session.id, visit.parameters["id"])
    query.stopping.set()
    return visit.redirect(f"/query/{query.id}")


async def _result(visit: Visit) -> Response:
    query, kind = visit.console.queries.look(visit.session.id, visit.parameters["id"]), visit.parameters["kind"]
    if kind == "jsonl":
        objects = (dict(zip(query.columns, row, strict=True)) for row in query.rows)
        text = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in objects)
    elif kind == "csv":
        made = io.StringIO()
        writer = csv.writer(made)
        writer.writerow(query.columns)
        writer.writerows([_text(value) for value in row] for row in query.rows)
        text = made.getvalue()
    else:
        raise HTTPException(404)
    headers = {"content-disposition": f'attachment; filename="result.{kind}"'}
    return Response(text, media_type="text/csv" if kind == "csv" else "application/jsonl", headers=headers)


def _rows(query: RunningQuery | None) -> list[list[str | None]]:
    if query is None:
        return []
    return [[None if value is None else _cut(_text(value)) for value in row] for row in query.rows]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}…"
