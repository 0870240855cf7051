"""``tidegate lineage``: from where to where the connectors have moved records."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tidegate.cli.connectors.reach import connect_options, rest_of
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.clients.lineage import Column, Lineage, Node, lineage_of, open_lineage_events
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import UsageError

__all__ = ["lineage"]


@click.command()
@click.argument("what", required=False)
@click.option("--column", metavar="NAME", help="Follow one column of WHAT, a topic, table or folder.")
@click.option("--open-lineage", is_flag=True, help="Print OpenLineage's job events, one as JSON in each line.")
@connect_options
@json_option
def lineage(
    what: str | None, column: str | None, open_lineage: bool, connect: str | None, data: Path, as_json: bool
) -> None:
    """Show from where to where records have moved: tables, files and topics, and the connectors between them.

    With WHAT, a topic, connector, table or folder, only what comes to it and goes from it; with --column a column of it, as
    far as the transforms tell.

    Example: tidegate lineage orders --column total
    """
    told = lineage_of(rest_of(data, connect))
    if open_lineage:
        for event in open_lineage_events(told):
            click.echo(json.dumps(event, ensure_ascii=False))
        return
    nodes = _chosen(told, what) if what is not None else told.nodes
    if column is not None:
        _print_trace(told, nodes if what is not None else [], column, as_json=as_json)
        return
    part = told.around(nodes) if what is not None else told
    steps = [(start, end) for start, end in part.edges]
    if as_json:
        print_json([{"from": start._asdict(), "to": end._asdict()} for start, end in steps])
        return
    print_table(["From", "To"], [[_shown(start), _shown(end)] for start, end in steps])
    if not steps:
        click.echo("No connector has moved anything yet.", err=True)


def _chosen(told: Lineage, what: str) -> list[Node]:
    nodes = told.find(what)
    if not nodes:
        near = nearest_name(what, [node.name for node in told.nodes])
        raise UsageError(f"no connector has moved anything of {what}" + (f"; is {near} meant?" if near else ""))
    return nodes


def _print_trace(told: Lineage, nodes: list[Node], column: str, *, as_json: bool) -> None:
    known = [node for node in nodes if any(name == column for name, _, _ in told.columns(node))]
    if not known:
        if not nodes:
            raise UsageError("--column needs WHAT: the topic, table or folder that has the column")
        names = sorted({name for node in nodes for name, _, _ in told.columns(node)})
        raise UsageError(f"no column {column} is known there; known are: {', '.join(names) or 'none'}")
    pairs = [pair for node in known for pair in told.trace((node, column))]
    if as_json:
        print_json([{"from": _column(a), "to": _column(b), "connector": name} for a, b, name in pairs])
        return
    print_table(["From", "Connector", "To"], [[_text(a), name, _text(b)] for a, b, name in pairs])


def _shown(node: Node) -> str:
    return node.name if node.kind == "dataset" else f"{node.kind} {node.name}"


def _text(column: Column) -> str:
    return f"{_shown(column[0])} . {column[1]}"


def _column(column: Column) -> dict[str, str]:
    return {**column[0]._asdict(), "column": column[1]}
