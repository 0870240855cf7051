"""``tidegate events entities``: tables of CDC connectors whose changes are change events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from tidegate.cli.events_client import client_of, events_options
from tidegate.cli.options import done, done_option, json_option, print_json, print_table
from tidegate.kit.errors import UsageError

__all__ = ["entities"]


@click.group()
def entities() -> None:
    """Say which captured tables are entities, whose changes subscribers get as change events."""


@entities.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@events_options
@done_option
def define(files: tuple[Path, ...], **where: Any) -> None:
    """Define or change entities, each in a JSON file: entity, topic, fields."""
    client = client_of(**where)
    for definition in [_read(file) for file in files]:
        made = client.define_entity(definition)
        text = f"{made['entity']} is defined: changes in topic {made['topic']} are events on {made['channel']}"
        done(text, entity=made["entity"], action="defined", topic=made["topic"], channel=made["channel"])


def _read(file: Path) -> dict[str, Any]:
    try:
        definition = json.loads(file.read_text())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not JSON: {error}") from error
    if not isinstance(definition, dict):
        raise UsageError(f"{file} holds no object; an entity is {{'entity': ..., 'topic': ...}}")
    return definition


@entities.command("list")
@events_options
@json_option
def list_entities(as_json: bool, **where: Any) -> None:
    """List the entities that are defined."""
    answer = client_of(**where).entities()
    if as_json:
        print_json(answer)
    else:
        print_table(["entity", "topic", "channel"], [[e["entity"], e["topic"], e["channel"]] for e in answer])


@entities.command()
@click.argument("names", nargs=-1, required=True, metavar="ENTITY...")
@events_options
@done_option
def delete(names: tuple[str, ...], **where: Any) -> None:
    """Delete entities: their changes are no longer events. Published events stay for their retention."""
    client = client_of(**where)
    for name in names:
        client.forget_entity(name)
        done(f"{name} is forgotten", entity=name, action="deleted")
