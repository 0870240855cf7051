"""``tidegate schemas``: schemas in any registry with Confluent's REST API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tidegate.cli.credentials import naming_subjects, registry_client
from tidegate.cli.options import address_of, data_option, done, done_option, json_option, print_json, print_table
from tidegate.clients.schemas import Verdict, checked, compared, pretty_schema
from tidegate.kit.errors import TidegateError, UsageError

if TYPE_CHECKING:
    from registry.client import Reference, RegisteredSchema, RegistryClient
    from registry.explain.explanation import Explanation

__all__ = ["schemas"]

F = TypeVar("F", bound=Callable[..., Any])

_REFERENCED: Final = 42206
"""Confluent's code of an error: other schemas refer to this one."""


@click.group()
def schemas() -> None:
    """List, get, register, check, diff and delete schemas: Avro, JSON Schema and Protobuf."""


def registry_options(function: F) -> F:
    """``--registry``, ``--registry-config`` and ``--data``."""
    config = click.option(
        "--registry-config",
        "config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A properties file with what the registry asks of clients (basic.auth.user.info, ssl.truststore.location, ...).",
    )
    address = click.option("--registry", "url", metavar="URL", help="The registry to talk to.")
    return data_option(config(address(function)))


def schema_options(function: F) -> F:
    """``--type`` and ``--reference``, of a schema in a file."""
    type_ = click.option(
        "--type",
        "schema_type",
        type=click.Choice(["AVRO", "JSON", "PROTOBUF"], case_sensitive=False),
        help="The type of schema; told from the file unless given.",
    )
    reference = click.option(
        "--reference",
        "references",
        multiple=True,
        metavar="NAME=SUBJECT[@VERSION]",
        help="A schema that this one builds on, under the name it calls it; the latest version unless given.",
    )
    return type_(reference(function))


@contextmanager
def _client(data: Path, url: str | None, config: Path | None) -> Iterator[RegistryClient]:
    """A client; the error of a subject that does not exist names the nearest."""
    with _made_client(data, url, config) as client, naming_subjects(client):
        yield client


def _made_client(data: Path, url: str | None, config: Path | None) -> RegistryClient:
    from registry.client import RegistryClient, RegistryClientConfig
    from tidegate.kit.config import parse

    if config is None:
        return registry_client(data, url)
    from tidegate.kit.properties import read_properties

    settings = dict(read_properties(config))
    settings["schema.registry.url"] = url or settings.get("schema.registry.url") or address_of("registry", data)
    parsed = parse(RegistryClientConfig, settings)
    return RegistryClient.configured(parsed, parsed.url)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: it is not UTF-8 text ({error.reason})") from error


def _type_of(path: Path, text: str) -> str:
    """The type of the schema in a file: by its name, else by whether it parses as Avro."""
    if path.suffix in (".avsc", ".proto"):
        return "AVRO" if path.suffix == ".avsc" else "PROTOBUF"
    try:
        value = json.loads(text)
    except ValueError:
        return "PROTOBUF"
    kinds = ("record", "enum", "fixed", "error", "map")
    avro = isinstance(value, list | str) or (isinstance(value, dict) and value.get("type") in kinds)
    return "AVRO" if avro else "JSON"


def _references(texts: Sequence[str]) -> list[Reference]:
    from registry.client import Reference

    references = []
    for text in texts:
        name, equals, target = text.partition("=")
        subject, _, version = target.rpartition("@") if "@" in target else (target, "", "-1")
        if not equals or not name or not subject or not (version == "-1" or version.isdigit()):
            raise click.UsageError(f"--reference {text!r}: give NAME=SUBJECT or NAME=SUBJECT@VERSION")
        references.append(Reference(name, subject, int(version)))
    return references


class _File:
    """A schema in a file, with its references from the registry."""

    def __init__(self, client: RegistryClient, path: Path, schema_type: str | None, references: Sequence[str]) -> None:
        from dataclasses import replace

        self.path, self.text = path, _read(path)
        self.type = (schema_type or _type_of(path, self.text)).upper()
        # The latest version is fetched once, so that every step sees the same one.
        self.references = [
            replace(reference, version=client.version(reference.subject).version)
            if reference.version == -1
            else reference
            for reference in _references(references)
        ]

    def checked(self, client: RegistryClient, subject: str) -> Verdict:
        from registry.client import RegisteredSchema

        schema = RegisteredSchema("", 0, 0, self.text, self.type, tuple(self.references))
        try:
            client.any_parsed(schema)
        except TidegateError as error:
            raise UsageError(f"{self.path}: {error}") from error
        return checked(client, subject, schema)


@schemas.command("list")
@click.option("--prefix", default="", help="Only subjects that begin so.")
@registry_options
@json_option
def list_subjects(prefix: str, data: Path, url: str | None, config: Path | None, as_json: bool) -> None:
    """List subjects with their newest version."""
    with _client(data, url, config) as client:
        versions = [client.version(subject) for subject in client.subjects(prefix)]
    rows = [{"subject": f.subject, "version": f.version, "id": f.id, "type": f.schema_type} for f in versions]
    if as_json:
        print_json(rows)
    else:
        print_table(["subject", "version", "id", "type"], [list(row.values()) for row in rows])


@schemas.command()
@click.argument("subject", required=False)
@click.option("--version", default="latest", show_default=True, help="Which version.")
@click.option("--id", "schema_id", type=int, help="The schema with this id, in place of a subject's.")
@registry_options
@json_option
def get(
    subject: str | None,
    version: str,
    schema_id: int | None,
    data: Path,
    url: str | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Print a schema of a subject, or the schema with an id, such as the one in a record."""
    with _client(data, url, config) as client:
        if schema_id is not None and subject is None:
            schema = client.registered(schema_id)
        elif subject is not None and schema_id is None:
            schema = client.version(subject, version)
        else:
            raise click.UsageError("give a SUBJECT or --id")
    if as_json:
        print_json(_as_json(schema))
    else:
        click.echo(pretty_schema(schema))


@schemas.command("versions")
@click.argument("subject")
@registry_options
@json_option
def list_versions(subject: str, data: Path, url: str | None, config: Path | None, as_json: bool) -> None:
    """List the versions of a subject with their ids and references."""
    with _client(data, url, config) as client:
        versions = [client.version(subject, number) for number in client.versions(subject)]
    if as_json:
        print_json([_as_json(version) for version in versions])
        return
    rows = [
        [v.version, v.id, v.schema_type, ", ".join(f"{r.name} = {r.subject}@{r.version}" for r in v.references)]
        for v in versions
    ]
    print_table(["version", "id", "type", "references"], rows)


@schemas.command()
@click.argument("subject")
@click.option("--version", help="Only this version; without it all.")
@click.option("--permanent", is_flag=True, help="For good, ids too: only what was deleted before.")
@registry_options
@done_option
def delete(
    subject: str, version: str | None, permanent: bool, data: Path, url: str | None, config: Path | None
) -> None:
    """Delete a subject or a version. Records with its id stay readable until it is deleted --permanent."""
    with _client(data, url, config) as client, _naming_referrers(client, subject, version):
        if version is None:
            deleted = client.delete_subject(subject, permanent=permanent)
        else:
            deleted = [client.delete_version(subject, version, permanent=permanent)]
    how = "for good" if permanent else "(--permanent deletes it for good)"
    done(
        f"deleted of {subject}: version {', '.join(map(str, deleted))} {how}",
        subject=subject,
        action="deleted",
        versions=deleted,
        permanent=permanent,
    )


@contextmanager
def _naming_referrers(client: RegistryClient, subject: str, version: str | None) -> Iterator[None]:
    """Adds to a refusal which schemas refer to this one."""
    from registry.client import Refused

    try:
        yield
    except Refused as error:
        if error.error_code != _REFERENCED:
            raise
        versions = client.versions(subject) if version is None else [client.version(subject, version).version]
        by = {each for number in versions for each in client.referencing(subject, number) if each[0] != subject}
        if not by:  # the registry tells of deleted ones that they refer, not which they are
            raise
        named = ", ".join(f"{name} version {number}" for name, number in sorted(by))
        raise Refused(f"{error} Delete first what refers to it: {named}", error.error_code) from error


@schemas.command()
@click.argument("subject", required=False)
@click.argument("level", required=False)
@click.option("--global", "of_all", is_flag=True, help="The level of subjects that have none of their own.")
@click.option("--reset", is_flag=True, help="Give the subject the global level again.")
@registry_options
@json_option
def compat(
    subject: str | None,
    level: str | None,
    of_all: bool,
    reset: bool,
    data: Path,
    url: str | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Show or set the compatibility level of a subject, or with --global of all.

    Example: tidegate schemas compat orders-value FULL
    """
    if of_all and subject is not None:
        level, subject = subject, None
    if not of_all and subject is None:
        raise click.UsageError("give a SUBJECT or --global")
    if reset and (of_all or level is not None):
        raise click.UsageError("--reset is for a subject, without a level")
    with _client(data, url, config) as client:
        if reset and subject is not None:
            client.reset_compatibility(subject)
        elif level is not None:
            client.set_compatibility(level.upper(), subject)
        current = client.compatibility(subject)
    if as_json:
        print_json({"subject": subject, "level": current})
    else:
        click.echo(f"{subject or 'all subjects without a level of their own'}: {current}")


@schemas.command()
@click.argument("subject")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--normalize", is_flag=True, help="Put in order what has no meaning before the schema is stored.")
@schema_options
@registry_options
@json_option
def register(
    subject: str,
    file: Path,
    normalize: bool,
    schema_type: str | None,
    references: tuple[str, ...],
    data: Path,
    url: str | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Register a schema; prints its id. Registering the same schema again gives the same id."""
    from registry.client import Incompatible, Refused

    with _client(data, url, config) as client:
        it = _File(client, file, schema_type, references)
        try:
            schema_id = client.register(
                subject, it.text, references=it.references, normalize=normalize, schema_type=it.type
            )
        except Incompatible as error:
            hint = f"`tidegate schemas check {subject} {file}` lists each problem and its fix"
            raise Incompatible(f"{error}; {hint}", error.error_code) from error
        except Refused as error:
            if "Undefined name" not in str(error):
                raise
            hint = "--reference NAME=SUBJECT says which subject has the schema of a name"
            raise Refused(f"{error}; {hint}", error.error_code) from error
    if as_json:
        print_json({"subject": subject, "id": schema_id, "type": it.type})
    else:
        click.echo(schema_id)


@schemas.command()
@click.argument("subject")
@click.argument("file", type=click.Path(path_type=Path))
@schema_options
@registry_options
@json_option
def check(
    subject: str,
    file: Path,
    schema_type: str | None,
    references: tuple[str, ...],
    data: Path,
    url: str | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Check whether a schema may become the next version of a subject; if not, list the problems and how to fix them.

    The registry decides; exit status 1 if it says no.
    """
    with _client(data, url, config) as client:
        verdict = _File(client, file, schema_type, references).checked(client, subject)
    if as_json:
        print_json(
            {
                "subject": subject,
                "compatible": verdict.is_compatible,
                "level": verdict.level,
                "explanations": [explanation.as_json() for explanation in verdict.explanations],
                "messages": verdict.messages,
            }
        )
    elif verdict.is_first:
        click.echo(f"{file} may become the first version of {subject}")
    elif verdict.is_compatible:
        click.echo(f"{file} may become the next version of {subject} ({verdict.level})")
    else:
        click.echo(f"{file} may not become the next version of {subject} ({verdict.level}):")
        _tell(verdict.explanations, verdict.messages)
    if not verdict.is_compatible:
        raise click.exceptions.Exit(1)


def _tell(told: Sequence[Explanation], messages: Sequence[str]) -> None:
    for explanation in told:
        against = "" if explanation.against is None else f", against version {explanation.against}"
        click.echo(f"\n  {explanation.where}  ({explanation.rule}{against})")
        click.echo(f"    what  {explanation.problem}")
        click.echo(f"    fix   {explanation.fix}")
    if not told:  # the registry may refuse for other reasons
        for message in messages:
            click.echo(f"\n  {message}")


@schemas.command()
@click.argument("subject")
@click.argument("older", default="previous")
@click.argument("newer", default="latest")
@registry_options
@json_option
def diff(subject: str, older: str, newer: str, data: Path, url: str | None, config: Path | None, as_json: bool) -> None:
    """Show what changed between two versions of a subject, by default the last two, and who can still read whom."""
    with _client(data, url, config) as client:
        change = compared(client, subject, older, newer)
    old, new = (f"version {version.version}" for version in (change.older, change.newer))
    lines, backward, forward = change.lines, change.backward, change.forward
    if as_json:
        print_json(
            {
                "subject": subject,
                "older": change.older.version,
                "newer": change.newer.version,
                "diff": lines,
                "backward": [explanation.as_json() for explanation in backward],
                "forward": [explanation.as_json() for explanation in forward],
            }
        )
        return
    for line in lines:
        click.echo(line)
    if not lines:
        click.echo(f"{subject} {old} and {new} are the same")
        return
    for reader, writer, problems in ((new, old, backward), (old, new, forward)):
        click.echo(f"\n{reader} {'cannot read' if problems else 'reads'} data of {writer}")
        for explanation in problems:
            click.echo(f"  {explanation.where}: {explanation.problem} ({explanation.rule})")


def _as_json(schema: RegisteredSchema) -> dict[str, Any]:
    return {
        "subject": schema.subject,
        "version": schema.version,
        "id": schema.id,
        "type": schema.schema_type,
        "references": [reference.as_json() for reference in schema.references],
        "schema": schema.text,
    }
