"""``tidegate events triggers``: lists triggers and flows with their states; resumes and suspends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tidegate.cli.events_client import client_of, events_options
from tidegate.cli.options import done, done_option, json_option, print_json, print_table

__all__ = ["triggers"]


@click.group()
def triggers() -> None:
    """List, check, resume and suspend triggers and flows."""


@triggers.command("list")
@events_options
@json_option
def list_triggers(as_json: bool, **where: Any) -> None:
    """List triggers and flows with their positions."""
    answer = client_of(**where).triggers()
    if as_json:
        print_json(answer["subscribers"])
        return
    rows = [
        [
            subscriber["Name"],
            "flow" if subscriber["Type"] == "Flow" else "trigger",
            subscriber["Topic"],
            subscriber["Status"],
            subscriber["waiting"],
        ]
        for subscriber in answer["subscribers"]
    ]
    print_table(["name", "kind", "event", "status", "waiting"], rows)


@triggers.command()
@click.argument("name", required=False)
@events_options
@json_option
def status(name: str | None, as_json: bool, **where: Any) -> None:
    """Show position, tip, retries and last error of a trigger, or of all; and files that cannot be loaded."""
    answer = client_of(**where).triggers()
    chosen = [
        subscriber
        for subscriber in answer["subscribers"]
        if name in (None, subscriber["Name"], subscriber["Name"].rpartition("-")[0])
    ]
    if name is not None and not chosen:
        raise click.UsageError(f"there is no trigger {name!r}")
    if as_json:
        print_json({"subscribers": chosen, "problems": answer["problems"]})
        return
    columns = ("Name", "Status", "Position", "Tip", "Retries", "LastError")
    rows = [[subscriber[column] for column in columns] for subscriber in chosen]
    print_table(["name", "status", "position", "tip", "retries", "last error"], rows)
    for file, problem in answer["problems"].items():
        click.echo(f"{file} is not loaded: {problem}")


@triggers.command()
@click.argument("name")
@click.option("--latest", is_flag=True, help="Skip the events that are waiting.")
@events_options
@done_option
def resume(name: str, latest: bool, **where: Any) -> None:
    """Let a trigger in the Error state, or a suspended one, go on where it stood."""
    client_of(**where).change_trigger(name, {"status": "Running", "replay": "latest" if latest else "processed"})
    done(f"{name} goes on{' with new events' if latest else ''}", trigger=name, action="resumed")


@triggers.command()
@click.argument("name")
@events_options
@done_option
def suspend(name: str, **where: Any) -> None:
    """Stop calling a trigger; its events wait until it is resumed."""
    client_of(**where).change_trigger(name, {"status": "Suspended"})
    done(f"{name} is suspended", trigger=name, action="suspended")


@triggers.command()
@click.argument("name")
@events_options
@done_option
def forget(name: str, **where: Any) -> None:
    """Remove a trigger that no longer exists from the list."""
    client_of(**where).forget_trigger(name)
    done(f"{name} is forgotten", trigger=name, action="forgotten")


@triggers.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def check(folder: Path, as_json: bool) -> None:
    """Load the triggers and flows of a folder without running them; status 1 when a file cannot be loaded."""
    from events.server.triggers import read_project

    project = read_project(folder)
    if as_json:
        print_json(
            {
                "triggers": [
                    {
                        "name": trigger.name,
                        "kind": trigger.kind,
                        "event": trigger.event,
                        "batch": trigger.batch_size,
                        "partitions": trigger.partitions,
                    }
                    for trigger in project.triggers.values()
                ],
                "problems": {str(file): str(problem) for file, problem in project.problems.items()},
            }
        )
        if project.problems:
            raise click.exceptions.Exit(1)
        return
    print_table(
        ["name", "kind", "event", "batch", "partitions"],
        [
            [trigger.name, trigger.kind, trigger.event, trigger.batch_size, trigger.partitions]
            for trigger in project.triggers.values()
        ],
    )
    for file, problem in project.problems.items():
        click.echo(f"{file} cannot be loaded: {problem}", err=True)
    if project.problems:
        raise click.exceptions.Exit(1)
