"""``tidegate schemas``: schemas in any registry with Confluent's REST API."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.cli.options import address_of, data_option, json_option, print_json, print_table
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from registry.client import RegistryClient

__all__ = ["schemas"]

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def schemas() -> None:
    """List, get, register, check and compare schemas."""


def registry_options(function: F) -> F:
    """``--registry`` and ``--data``."""
    return data_option(click.option("--registry", "url", metavar="URL", help="The registry to talk to.")(function))


def _client(data: Path, url: str | None) -> RegistryClient:
    from registry.client import RegistryClient

    return RegistryClient(address_of("registry", data, url))


def _read(path: Path) -> str:
    try:
        text = path.read_text()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    return text


@schemas.command("list")
@click.option("--prefix", default="", help="Only subjects that begin so.")
@registry_options
@json_option
def list_subjects(prefix: str, data: Path, url: str | None, as_json: bool) -> None:
    """List subjects with their newest version."""
    with _client(data, url) as client:
        found = [client.version(subject) for subject in client.subjects(prefix)]
    rows = [{"subject": f.subject, "version": f.version, "id": f.id, "type": f.schema_type} for f in found]
    if as_json:
        print_json(rows)
    else:
        print_table(["subject", "version", "id", "type"], [list(row.values()) for row in rows])


@schemas.command()
@click.argument("subject")
@click.option("--version", default="latest", show_default=True, help="Which version.")
@registry_options
def get(subject: str, version: str, data: Path, url: str | None) -> None:
    """Print a schema."""
    with _client(data, url) as client:
        click.echo(_pretty(client.version(subject, version).text))


@schemas.command()
@click.argument("subject")
@click.argument("file", type=click.Path(path_type=Path))
@registry_options
def register(subject: str, file: Path, data: Path, url: str | None) -> None:
    """Register a schema; prints its id. Registering the same schema again gives the same id."""
    with _client(data, url) as client:
        click.echo(client.register(subject, _read(file)))


@schemas.command()
@click.argument("subject")
@click.argument("file", type=click.Path(path_type=Path))
@registry_options
def check(subject: str, file: Path, data: Path, url: str | None) -> None:
    """Say whether a schema may become the next version of a subject, and what is in its way; exit status 1 if not."""
    with _client(data, url) as client:
        problems = client.problems(subject, _read(file))
    if not problems:
        click.echo(f"{file} is compatible with {subject}")
        return
    for problem in problems:
        click.echo(problem)
    raise click.exceptions.Exit(1)


@schemas.command()
@click.argument("subject")
@click.argument("older", default="previous")
@click.argument("newer", default="latest")
@registry_options
def diff(subject: str, older: str, newer: str, data: Path, url: str | None) -> None:
    """Show what changed between two versions of a subject, by default the last two."""
    with _client(data, url) as client:
        if older == "previous":
            versions = client.versions(subject)
            older = str(versions[-2] if len(versions) > 1 else versions[-1])
        texts = [client.version(subject, version) for version in (older, newer)]
    before, after = (_pretty(text.text).splitlines() for text in texts)
    names = [f"{subject} version {text.version}" for text in texts]
    for line in difflib.unified_diff(before, after, names[0], names[1], lineterm=""):
        click.echo(line)


def _pretty(schema: str) -> str:
    try:
        return json.dumps(json.loads(schema), indent=2, ensure_ascii=False)
    except json.JSONDecodeError:
        return schema
