"""``tidegate events``: define, list, describe, publish and follow platform events."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click

from tidegate.cli.channels import channels, subscriptions
from tidegate.cli.entities import entities
from tidegate.cli.events_client import client_of, events_options
from tidegate.cli.events_users import apps, users
from tidegate.cli.options import done, done_option, json_option, print_json, print_table
from tidegate.cli.triggers import triggers
from tidegate.kit.errors import UsageError

__all__ = ["events"]

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


@click.group()
def events() -> None:
    """Define, list, publish and follow platform events; manage channels, subscriptions, triggers, users and connected apps."""


for group in (channels, subscriptions, entities, triggers, users, apps):
    events.add_command(group)


@events.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--retention-hours", type=float, help="How long their topics keep events; -1: for good. [default: the service's]"
)
@events_options
@done_option
def define(files: tuple[Path, ...], retention_hours: float | None, **where: Any) -> None:
    """Define or change events from Salesforce metadata or Avro (.avsc).

    A folder gives every event below it (force-app, objects/X__e), a zip every event in it, a file X__e.object-meta.xml or
    X__e.object its own. All are read before the first is defined.
    """
    retention_ms = None
    if retention_hours is not None:
        if not math.isfinite(retention_hours):
            raise UsageError(f"--retention-hours is {retention_hours}; hours are needed, or -1 for good")
        retention_ms = -1 if retention_hours == -1 else round(retention_hours * 3_600_000)
    for made in client_of(**where).define_files(files, retention_ms=retention_ms):
        done(
            f"{made['name']} is defined: topic {made['topic']}, schema {made['schemaId']} under {made['subject']}",
            event=made["name"],
            action="defined",
            topic=made["topic"],
            schemaId=made["schemaId"],
            subject=made["subject"],
        )


@events.command("export")
@click.argument("names", nargs=-1, metavar="[EVENT]...")
@click.option("--to", "folder", type=click.Path(path_type=Path, file_okay=False), help="Write files below this folder.")
@click.option(
    "--form",
    type=click.Choice(["sfdx", "object"]),
    default="sfdx",
    show_default=True,
    help="A folder per event with a file per field, or one X__e.object.",
)
@events_options
@done_option
def export_events(names: tuple[str, ...], folder: Path | None, form: str, **where: Any) -> None:
    """Write definitions as Salesforce metadata: of all events unless some are named; on the screen without --to."""
    from events.model.metadata_export import object_xml, sfdx_files

    client = client_of(**where)
    for name in names or [event["name"] for event in client.events()]:
        definition = client.definition(name)
        files = {f"{definition.name}.object": object_xml(definition)} if form == "object" else sfdx_files(definition)
        if folder is None:
            xml = object_xml(definition).decode()
            done(xml.rstrip("\n"), event=definition.name, xml=xml)
            continue
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        text = f"{definition.name}: {len(files)} files below {folder}"
        done(text, event=definition.name, action="exported", files=sorted(str(folder / path) for path in files))


@events.command("list")
@events_options
@json_option
def list_events(as_json: bool, **where: Any) -> None:
    """List the events that are defined."""
    events_ = client_of(**where).events()
    if as_json:
        print_json(events_)
    else:
        print_table(
            ["event", "label", "topic", "schema"], [[e["name"], e["label"], e["topic"], e["schemaId"]] for e in events_]
        )


@events.command()
@click.argument("event")
@events_options
@json_option
def describe(event: str, as_json: bool, **where: Any) -> None:
    """Show an event's fields."""
    description = client_of(**where).describe(event)
    if as_json:
        print_json(description)
        return
    schema = description["schema"] if isinstance(description["schema"], dict) else json.loads(description["schema"])
    click.echo(f"{description['name']}  {description['label']}  topic {description['topic']}")
    rows = [
        [f["name"], json.dumps(f["type"]) if not isinstance(f["type"], str) else f["type"], f.get("doc")]
        for f in schema["fields"]
    ]
    print_table(["field", "type", "doc"], rows)


@events.command()
@click.argument("event")
@click.argument("fields", nargs=-1, metavar="[FIELD=VALUE]...")
@click.option("--json-fields", "text", metavar="JSON", help="The fields as a JSON object, instead of FIELD=VALUE.")
@events_options
@done_option
def publish(event: str, fields: tuple[str, ...], text: str | None, **where: Any) -> None:
    """Publish one event; prints its uuid once the log has it."""
    values: dict[str, Any] = {}
    if text is not None:
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise UsageError(f"--json-fields is not JSON: {error}") from error
        if not isinstance(values, dict):
            raise UsageError(f"--json-fields is {text[:50]}; a JSON object is needed, such as " + '{"Amount__c": 1}')
    for field in fields:
        name, equals, value = field.partition("=")
        if not equals:
            raise click.UsageError(f"{field!r}: give FIELD=VALUE")
        values[name] = _typed(value)
    uuid = client_of(**where).publish(event, values)
    done(uuid, event=event, action="published", uuid=uuid)


def _typed(value: str) -> Any:
    """A number, true, false or null as such; anything else is text."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


@events.command()
@click.argument("event")
@click.option(
    "--replay", default=-1, show_default=True, help="-1: from now on; -2: all that are kept; else after this replay id."
)
@click.option("-n", "count", type=int, help="Stop after so many events.")
@events_options
def subscribe(event: str, replay: int, count: int | None, **where: Any) -> None:
    """Follow an event, or a channel such as /data/ChangeEvents, through the Pub/Sub API, one JSON line each.

    Times are written as CometD writes them: 2026-01-31T12:00:00.000Z.
    """
    stream = client_of(**where).follow(event, replay_id=replay)
    for number, received in enumerate(stream, 1):
        line = {"replayId": received.replay_id, "uuid": received.uuid, **received.fields}
        line |= {name: _as_time(line[name]) for name in received.times}
        click.echo(json.dumps(line, default=str))
        if number == count:
            return


def _as_time(milliseconds: Any) -> Any:
    """As ISO 8601; what no calendar has, and null, as it stands."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except (OverflowError, TypeError):
        return milliseconds
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
