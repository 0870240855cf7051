"""The lineage: what moves from where to where as a picture, and the columns of one topic, table or folder."""

from __future__ import annotations

import asyncio
import json
from typing import Final
from urllib.parse import quote, urlencode

from starlette.responses import Response
from starlette.routing import Route

from tidegate.clients.lineage import Lineage, Node, lineage_of, open_lineage_events
from tidegate.console.console import Console, Visit
from tidegate.console.graph import drawn, short_label
from tidegate.kit.errors import TidegateError

__all__ = ["routes"]

_MOST_DRAWN: Final = 120
"""Lines of a picture that one can still read."""
_MOST_LISTED: Final = 500
_MOST_NAMED: Final = 20
_KINDS: Final = {
    **dict.fromkeys(("s3", "gs", "az", "abfs", "abfss", "wasb", "wasbs", "hdfs", "sftp", "ftp"), "files"),
    **dict.fromkeys(("http", "https"), "address"),
    "kafka": "topic elsewhere",
    "salesforce": "object",
}
"""The kind of a dataset by the scheme of its name; other schemes are of tables."""


def routes(console: Console) -> list[Route]:
    return [
        console.route("/lineage", _show),
        console.route("/lineage/open-lineage.jsonl", _exported),
        console.route("/topics/{name}/connectors", _of_topic),
    ]


async def _lineage(visit: Visit) -> Lineage:
    readers = await visit.faces.kept("readers of events", lambda: _readers(visit))
    return await visit.faces.kept("lineage", lambda: visit.faces.connect.run(lambda rest: lineage_of(rest, readers)))


async def _readers(visit: Visit) -> list[tuple[str, Node]]:
    """Triggers and flows with the topics of their events; none where the service is away, or not for this user."""
    if not visit.console.config.events_url:
        return []

    def ask() -> list[tuple[str, Node]]:
        client = visit.faces.events_client()
        topics = {event["name"]: event["topic"] for event in client.events()}
        return [
            (topics[row["Topic"]], Node("trigger", row["Name"]))
            for row in client.triggers()["subscribers"]
            if row["Topic"] in topics
        ]

    try:
        return await asyncio.to_thread(ask)
    except TidegateError:
        return []


async def _show(visit: Visit) -> Response:
    told = await _lineage(visit)
    words, column = visit.query.get("of", "").strip(), visit.query.get("column", "")
    nodes = told.find(words) if words else []
    if words and not nodes:
        nodes = [node for node in told.nodes if words.casefold() in node.name.casefold()]
    part = told.around(nodes) if words else told
    picture = drawn(part.edges) if len(part.edges) <= _MOST_DRAWN else None
    single = nodes[0] if len(nodes) == 1 and words else None
    trace = told.trace((single, column)) if single is not None and column else []
    return visit.page(
        "lineage.html",
        words=words,
        node=single,
        several=nodes[:_MOST_NAMED] if len(nodes) > 1 else [],
        column=column,
        picture=picture,
        chosen={node.id for node in nodes},
        count=len(part.edges),
        most=_MOST_DRAWN,
        edges=part.edges[:_MOST_LISTED],
        columns=told.columns(single) if single is not None else [],
        trace=trace,
        has_columns=bool(told.kafka),
        link=_link,
        page_of=_page_of,
        label=short_label,
        kind=_kind,
    )


async def _of_topic(visit: Visit) -> Response:
    """The connectors and triggers that have moved records of a topic: a part of the pages of the topic and of its schemas."""
    name = visit.parameters["name"]
    told = await _lineage(visit)
    flows = [flow for flow in told.flows if flow.topic == name]
    writers = sorted({(flow.connector, str(flow.dataset or "")) for flow in flows if flow.is_source})
    readers = sorted({(flow.connector, str(flow.dataset or "")) for flow in flows if not flow.is_source})
    triggers = sorted(node.name for topic, node in told.readers if topic == name)
    return visit.page(
        "topic_connectors.html",
        writers=writers[:_MOST_NAMED],
        readers=readers[:_MOST_NAMED],
        triggers=triggers[:_MOST_NAMED],
        lineage=_link(Node("topic", name)),
    )


async def _exported(visit: Visit) -> Response:
    told = await _lineage(visit)
    lines = "".join(f"{json.dumps(event, ensure_ascii=False)}\n" for event in open_lineage_events(told))
    headers = {"content-disposition": 'attachment; filename="open-lineage.jsonl"'}
    return Response(lines, media_type="application/jsonl", headers=headers)


def _link(node: Node, column: str = "") -> str:
    """The lineage of a node, or of a column of it."""
    return f"/lineage?{urlencode({'of': node.id, **({'column': column} if column else {})})}"


def _kind(node: Node) -> str:
    if node.kind != "dataset":
        return node.kind
    scheme, is_url, _ = node.name.partition("://")
    return _KINDS.get(scheme, "table") if is_url else "files"


def _page_of(node: Node) -> str:
    """The node's own page; empty for what has none."""
    pages = {"topic": "/topics/", "connector": "/connectors/"}
    return f"{pages[node.kind]}{quote(node.name, safe='')}" if node.kind in pages else ""
