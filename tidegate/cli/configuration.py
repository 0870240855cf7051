"""The commands ``tidegate export`` and ``tidegate import``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import click

from tidegate.cli.connectors.files import file_of, write_connector
from tidegate.cli.connectors.reach import rest_of
from tidegate.cli.credentials import registry_client
from tidegate.cli.events_client import client_of
from tidegate.cli.kafka.client import client_config
from tidegate.cli.options import address_of, data_option, done, done_option, json_option, print_json, print_table
from tidegate.configuration.connectors import Connectors
from tidegate.configuration.events import event_parts
from tidegate.configuration.kafka import Acls, Quotas, Topics
from tidegate.configuration.parts import Document, Part
from tidegate.configuration.schemas import Subjects
from tidegate.kit.errors import UsageError

__all__ = ["export", "import_", "runs"]

_CANNOT: Final = "cannot"


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@data_option
@done_option
def export(folder: Path, data: Path) -> None:
    """Write everything that is configured on a platform into a folder: topics, schemas, events, channels, subscriptions,
    entities, access control entries, quotas and connectors. No records, no users, no passwords of users.

    Connectors' secrets are written as the worker stores them; files are readable by their owner only.

    Example: tidegate export backup/
    """
    with ExitStack() as stack:
        for part in _parts(data, stack):
            documents = part.read()
            below = folder / part.folder
            try:
                below.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(f"cannot make the folder {below}: {error.strerror}") from error
            for old in below.glob("*.json"):
                old.unlink()  # of things that are gone
            for name, document in documents.items():
                write_connector(file_of(name, below), document)
            done(
                f"{len(documents)} {part.folder} to {below}", part=part.folder, count=len(documents), folder=str(below)
            )


@click.command("import")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--execute", is_flag=True, help="Do it; without it the command only shows what it would do.")
@data_option
@json_option
def import_(folder: Path, execute: bool, as_json: bool, data: Path) -> None:
    """Create and change what `export` wrote, on this platform. Nothing is deleted; schemas keep their ids.

    Exit status 1 if something there is cannot be as in the files.

    Example: tidegate import backup/ --execute
    """
    steps: list[dict[str, str]] = []
    with ExitStack() as stack:
        for part in _parts(data, stack):
            documents = _read(folder / part.folder)
            existing = part.read() if documents else {}
            words = {name: part.difference(document, existing.get(name)) for name, document in documents.items()}
            chosen = {
                name: (documents[name], existing.get(name))
                for name, word in words.items()
                if word and not word.startswith(_CANNOT)
            }
            if execute and chosen:
                part.write(chosen)
            steps += [{"part": part.folder, "name": name, "change": word} for name, word in words.items() if word]
    if as_json:
        print_json({"executed": execute, "changes": steps})
    elif steps:
        print_table(["part", "name", "change"], [list(step.values()) for step in steps])
        click.echo("done" if execute else "nothing is changed: --execute does it")
    else:
        click.echo("everything is as in the files")
    if any(step["change"].startswith(_CANNOT) for step in steps):
        raise click.exceptions.Exit(1)


def _parts(data: Path, stack: ExitStack) -> Iterator[Part]:
    """The parts in the order in which they build on one another; those of a component that does not run are left out."""
    config = client_config(data, None, (), None)
    yield Topics(config)
    if runs("registry", data):
        yield Subjects(stack.enter_context(registry_client(data)))
    if runs("events", data):
        yield from event_parts(client_of(data, None, None, None, None))
    yield Acls(config)
    yield Quotas(config)
    if runs("connect", data):
        yield Connectors(rest_of(data, None))


def runs(face: str, data: Path) -> bool:
    """Whether the platform has this service; a line says so where it has not."""
    try:
        address_of(face, data)
    except UsageError as error:
        click.echo(f"left out: {error}", err=True)
        return False
    return True


def _read(folder: Path) -> dict[str, Document]:
    """The documents of a part, by the names that ``file_of`` made file names of."""
    from urllib.parse import unquote

    documents: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be read: {error}") from error
        if not isinstance(document, dict):
            raise UsageError(f"{path} holds no object; `tidegate export` writes such files")
        documents[unquote(path.stem)] = document
    return documents
