"""Connectors as files: apply, diff, export, edit, validate."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click

from tidegate.cli.connectors.applied import Applied, fingerprint, read_applied
from tidegate.cli.connectors.files import (
    as_text,
    file_of,
    read_connector,
    read_connectors,
    write_connector,
)
from tidegate.cli.connectors.group import connectors
from tidegate.cli.connectors.looking import tell_missing_topics_of
from tidegate.cli.connectors.reach import connect_options, connector_argument, rest_of
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.clients.rest import NotThere, Rest
from tidegate.clients.worker import masked_config, path_of
from tidegate.configuration.connectors import as_document
from tidegate.kit.errors import TidegateError, UsageError

__all__: list[str] = []

_LONGEST_WAIT_S: Final = 120.0
_PAUSE_S: Final = 0.2
_STEADY_S: Final = 1.0
"""How long a connector has to run before it counts as running."""
_LONGEST_STALE_S: Final = 10.0
"""How long the status of a connector may still be the one before its change."""


@connectors.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE|DIR...")
@click.option("--force", is_flag=True, help="Apply also what has keys that look misspelt.")
@click.option("--wait", is_flag=True, help="Return when all tasks run; exit status 1 if one fails.")
@click.option("--prune", is_flag=True, help="Delete connectors that were applied from DIR and have no file there now.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@connect_options
@json_option
def apply(
    files: tuple[Path, ...],
    force: bool,
    wait: bool,
    prune: bool,
    yes: bool,
    data: Path,
    connect: str | None,
    as_json: bool,
) -> None:
    """Create or update connectors from JSON or properties files, or folders of them: all, or none if one is wrong.

    In a folder, the file .tidegate-applied.json records what was applied from it. --prune deletes only connectors in
    this record whose configuration is still as it was applied.

    Example: tidegate connectors apply connectors/ --prune
    """
    rest = rest_of(data, connect)
    read = read_connectors(files)
    problems = [
        problem for name, (path, config) in read.items() for problem in _problems(rest, path, name, config, force)
    ]
    if problems:
        raise UsageError("nothing was applied:\n" + "\n".join(problems))
    records = _records(rest, files)
    if prune and not records:
        raise UsageError("--prune needs a folder: it deletes what was applied from one")
    gone = _gone(rest, records, set(read)) if prune else []
    if gone and not yes:
        _confirm(gone)
    existing = rest.call("GET", "/connectors")
    done: list[dict[str, Any]] = []
    stale: dict[str, str] = {}
    try:
        for name, (path, config) in read.items():
            try:
                now = rest.call("GET", path_of(name, "/config")) if name in existing else {}
                unchanged = now == _as_stored(name, config)
                if not unchanged:
                    if wait and name in existing and (reason := _failure(_parts(rest, name))) is not None:
                        stale[name] = reason
                    now = rest.call("PUT", path_of(name, "/config"), {**config, "name": name})["config"]
            except TidegateError as error:
                raise TidegateError(f"{path}: {error}") from error
            if (record := records.get(path.parent)) is not None:
                record.connectors[name] = fingerprint(now)
            action = "unchanged" if unchanged else "updated" if name in existing else "created"
            done.append({"name": name, "action": action})
            if not as_json:
                click.echo(f"{name} {done[-1]['action']}")
        for left in gone:
            if left.why_kept is None:
                rest.call("DELETE", path_of(left.name))
                del left.record.connectors[left.name]
                done.append({"name": left.name, "action": "deleted"})
                if not as_json:
                    click.echo(f"{left.name} deleted")
            else:
                click.echo(f"{left.name} stays: {left.why_kept}", err=True)
    finally:
        for record in records.values():
            record.write()
    if wait:
        _wait_until_running(rest, read, stale, quiet=as_json)
        tell_missing_topics_of(rest, read)
    if as_json:
        print_json(done)
    elif not read and not gone:
        nothing = "" if not prune else ", and nothing that was applied from it is left to delete"
        click.echo(f"{', '.join(map(str, files))} has no connector files{nothing}")


@dataclass(frozen=True, slots=True)
class _Gone:
    """A connector of a record that has no file now; ``why_kept`` says why it is not deleted."""

    name: str
    record: Applied
    why_kept: str | None


def _records(rest: Rest, paths: Sequence[Path]) -> dict[Path, Applied]:
    folders = [path for path in paths if path.is_dir()]
    if not folders:
        return {}
    cluster = rest.call("GET", "/")["kafka_cluster_id"]
    return {folder: read_applied(folder, str(cluster)) for folder in folders}


def _gone(rest: Rest, records: Mapping[Path, Applied], named: set[str]) -> list[_Gone]:
    gone = []
    for record in records.values():
        for name, known in sorted(record.connectors.items()):
            if name in named:
                continue
            try:
                config = rest.call("GET", path_of(name, "/config"))
            except NotThere:
                del record.connectors[name]
                continue
            why = "it was changed in another way since it was applied; delete it yourself if it is not needed"
            gone.append(_Gone(name, record, None if fingerprint(config) == known else why))
    return gone


def _confirm(gone: Sequence[_Gone]) -> None:
    doomed = [left.name for left in gone if left.why_kept is None]
    if not doomed:
        return
    for name in doomed:
        click.echo(f"{name} would be deleted: it was applied from this folder and has no file there now", err=True)
    if not sys.stdin.isatty():
        raise UsageError(f"nothing was applied: deleting {', '.join(doomed)} needs --yes where nobody can be asked")
    click.confirm(f"Delete {len(doomed)} connectors?", abort=True, err=True)


def _problems(rest: Rest, path: Path | str, name: str, config: Mapping[str, Any], force: bool) -> Iterator[str]:
    """The errors that the worker finds in a file, and keys that look misspelt."""
    plugin = _plugin_of(path, config)
    whole = {**config, "name": name}
    try:
        answer = rest.call("PUT", f"/connector-plugins/{quote(plugin)}/config/validate", whole)
    except TidegateError as error:
        yield f"{path}: {error}"
        return
    for entry in answer["configs"]:
        for problem in entry["value"]["errors"]:
            yield f"{path}: {entry['value']['name']}: {problem}"
    for key, near in _unknown(rest, plugin, whole).items():
        if near is not None and not force:
            yield f"{path}: nobody knows the key {key}; is {near} meant? (--force applies it as it is)"
        else:
            click.echo(f"{path}: nobody knows the key {key}", err=True)


def _plugin_of(path: Path | str, config: Mapping[str, Any]) -> str:
    plugin = str(config.get("connector.class", ""))
    if not plugin:
        raise UsageError(f"{path} has no connector.class")
    return plugin.rpartition(".")[2]


def _wait_until_running(rest: Rest, names: Iterable[str], stale: dict[str, str], *, quiet: bool) -> None:
    """Return when the connectors and all their tasks run, and have done so for a moment: many fail at their first record.

    ``stale`` are the reasons why connectors had failed before. Raises TidegateError with the reasons when some fail.
    """
    began, waiting, failed = time.monotonic(), list(names), list[str]()
    running_since: dict[str, float] = {}
    while waiting:
        now = time.monotonic()
        for name in tuple(waiting):
            parts = _parts(rest, name)
            trace = _failure(parts)
            if trace is not None and trace == stale.get(name) and now - began < _LONGEST_STALE_S:
                continue  # the status follows the configuration a moment later
            if trace is not None:
                failed.append(f"{name} failed:\n{trace.strip()}")
                waiting.remove(name)
                continue
            if parts:
                stale.pop(name, None)
            if len(parts) < 2 or any(part["state"] != "RUNNING" for part in parts):
                running_since.pop(name, None)
            elif now - running_since.setdefault(name, now) >= _STEADY_S:
                count = len(parts) - 1
                click.echo(f"{name} runs, {count} {'task' if count == 1 else 'tasks'}", err=quiet)
                waiting.remove(name)
        if waiting and now - began > _LONGEST_WAIT_S:
            failed += [
                f"{name} does not run after {_LONGEST_WAIT_S:.0f} s: `tidegate connectors status {name}` says where it is"
                for name in waiting
            ]
            break
        time.sleep(_PAUSE_S if waiting else 0)
    if failed:
        raise TidegateError("\n".join(failed))


def _failure(parts: Iterable[Mapping[str, Any]]) -> str | None:
    """Why the first of them that has failed did; None if none has."""
    return next((part.get("trace", "") for part in parts if part["state"] == "FAILED"), None)


def _parts(rest: Rest, name: str) -> list[dict[str, Any]]:
    """The statuses of the connector and its tasks; none while it has no status yet."""
    with contextlib.suppress(NotThere):
        status = rest.call("GET", path_of(name, "/status"))
        return [status["connector"], *status["tasks"]]
    return []


@connectors.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE|DIR...")
@click.option("--prune", is_flag=True, help="Count what `apply --prune` would delete as a difference.")
@connect_options
@json_option
def diff(files: tuple[Path, ...], prune: bool, data: Path, connect: str | None, as_json: bool) -> None:
    """Show what `apply` would change. The exit status is 1 if there is a difference, otherwise 0. Secrets are hidden.

    Example: tidegate connectors diff connectors/
    """
    rest = rest_of(data, connect)
    read = read_connectors(files)
    differences = [_difference(rest, name, config) for name, (_, config) in read.items()]
    if prune:
        gone = _gone(rest, _records(rest, files), set(read))
        differences += [{"name": left.name, "state": "gone", "keys": {}} for left in gone if left.why_kept is None]
    if as_json:
        print_json(differences)
    else:
        for difference in differences:
            _print_difference(difference)
    if any(difference["state"] != "same" for difference in differences):
        raise click.exceptions.Exit(1)


def _difference(rest: Rest, name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The changes that applying a configuration would make: by key, the value now and then."""
    try:
        now = rest.call("GET", path_of(name, "/config"))
    except NotThere:
        now = None
    then = _as_stored(name, config)
    shown_now = masked_config(rest, now) if now is not None else {}
    shown_then = masked_config(rest, then)
    keys = {
        key: {"from": shown_now.get(key), "to": shown_then.get(key)}
        for key in sorted({*then, *(now or {})})
        if then.get(key) != (now or {}).get(key)
    }
    return {"name": name, "state": "new" if now is None else "changed" if keys else "same", "keys": keys}


def _as_stored(name: str, config: Mapping[str, Any]) -> dict[str, str]:
    """A configuration as the worker has it once it is applied."""
    return {key: text for key, value in config.items() if (text := as_text(value)) is not None} | {"name": name}


def _print_difference(difference: Mapping[str, Any]) -> None:
    words = {
        "new": "new",
        "changed": "changed",
        "same": "same",
        "gone": "has no file any more: apply --prune deletes it",
    }
    click.echo(f"{difference['name']}: {words[difference['state']]}")
    _print_keys_of(difference, err=False)


def _print_keys_of(difference: Mapping[str, Any], *, err: bool) -> None:
    for key, change in difference["keys"].items():
        for sign, value, colour in (("-", change["from"], "red"), ("+", change["to"], "green")):
            if value is not None:
                click.secho(f"  {sign} {key} = {value}", fg=colour, err=err)


@connectors.command()
@connector_argument(nargs=-1)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write one file for each connector into this folder.",
)
@connect_options
def export(names: tuple[str, ...], folder: Path | None, data: Path, connect: str | None) -> None:
    """Print the configurations of connectors, all unless named, as JSON that `apply` takes back; with --output, write
    files.

    Secrets are written as the worker stores them. A placeholder such as ${file:...} keeps them out of configurations.

    Example: tidegate connectors export --output connectors/
    """
    rest = rest_of(data, connect)
    found = {
        name: rest.call("GET", path_of(name, "/config")) for name in names or sorted(rest.call("GET", "/connectors"))
    }
    documents = [as_document(name, config) for name, config in found.items()]
    if folder is None:
        print_json(documents[0] if len(names) == 1 else documents)
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the folder {folder}: {error.strerror}") from error
        for document in documents:
            path = file_of(document["name"], folder)
            write_connector(path, document)
            click.echo(str(path))
    for name, config in found.items():
        shown = masked_config(rest, config)
        if secret := [key for key in config if shown[key] != config[key]]:
            click.echo(f"{name}: {', '.join(sorted(secret))} has a secret in clear text", err=True)


@connectors.command()
@connector_argument()
@click.option("--force", is_flag=True, help="Apply also keys that look misspelt.")
@connect_options
@json_option
def edit(name: str, force: bool, data: Path, connect: str | None, as_json: bool) -> None:
    """Change the configuration of a connector in $EDITOR. It is validated first, and the difference is shown.

    If it is refused, the connector stays as it is, and your text is kept in a file.

    Example: EDITOR=nano tidegate connectors edit orders
    """
    rest = rest_of(data, connect)
    before = rest.call("GET", path_of(name, "/config"))
    path = file_of(name, Path(tempfile.mkdtemp(prefix="tidegate-edit-")))
    write_connector(path, as_document(name, before))
    shown = path.read_bytes()
    kept = False
    try:
        click.edit(filename=str(path), require_save=False)
        difference = _apply_edited(rest, name, before, path, force=force)
    except (TidegateError, click.ClickException) as error:
        said = error.format_message() if isinstance(error, click.ClickException) else str(error)
        kept = path.exists() and path.read_bytes() != shown
        hint = f"\nYour text is kept: mend {path}, then `tidegate connectors apply {path}`" if kept else ""
        raise UsageError(f"{name} is not changed: {said}{hint}") from error
    finally:
        if not kept:
            shutil.rmtree(path.parent)
    if as_json:
        print_json(difference)
    else:
        click.echo("nothing is changed" if difference["state"] == "same" else f"{name} updated")


def _apply_edited(rest: Rest, name: str, before: Mapping[str, Any], path: Path, *, force: bool) -> dict[str, Any]:
    new_name, config = read_connector(path)
    if new_name != name:
        raise UsageError(
            f"the name is {new_name!r} now: a connector keeps its name; apply the file to make another one"
        )
    difference = _difference(rest, name, config)
    if difference["state"] == "same":
        return difference
    problems = list(_problems(rest, name, name, config, force))
    if problems:
        raise UsageError("\n" + "\n".join(problems))
    if rest.call("GET", path_of(name, "/config")) != before:
        raise UsageError("somebody else changed it meanwhile: compare with `tidegate connectors diff`")
    _print_keys_of(difference, err=True)
    rest.call("PUT", path_of(name, "/config"), {**config, "name": name})
    return difference


@connectors.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE|DIR...")
@connect_options
@json_option
def validate(files: tuple[Path, ...], data: Path, connect: str | None, as_json: bool) -> None:
    """Say what is wrong with connector files, or folders of them, as the worker sees it; exit status 1 if anything is.

    A key that looks misspelt is wrong, too, although the worker would take it. The JSON of a single FILE is the worker's
    answer; of more it is a list of objects of file, name and answer.

    Example: tidegate connectors validate connectors/
    """
    read = read_connectors(files)
    if not read:
        raise UsageError(f"{', '.join(map(str, files))} has no connector files")
    rest = rest_of(data, connect)
    several = len(read) > 1
    answers, wrong = [], False
    for name, (path, config) in read.items():
        plugin, whole = _plugin_of(path, config), {"name": name, **config}
        try:
            answer = rest.call("PUT", f"/connector-plugins/{quote(plugin)}/config/validate", whole)
        except TidegateError as error:
            if not several:
                raise
            click.echo(f"{path}: {error}", err=True)
            wrong = True
            continue
        unknown = _unknown(rest, plugin, whole)
        misspelt = {key: near for key, near in unknown.items() if near is not None}
        wrong = wrong or answer["error_count"] > 0 or bool(misspelt)
        answers.append({"file": str(path), "name": name, "answer": answer})
        if not as_json:
            _print_answer(path, name, answer, misspelt, several=several)
        for key in unknown.keys() - misspelt.keys():
            click.echo(f"{path}: nobody knows the key {key}", err=True)
    if as_json:
        print_json(answers if several or files[0].is_dir() else answers[0]["answer"])
    if wrong:
        raise click.exceptions.Exit(1)


def _print_answer(
    path: Path, name: str, answer: Mapping[str, Any], misspelt: Mapping[str, str], *, several: bool
) -> None:
    wrong = [[e["value"]["name"], error] for e in answer["configs"] for error in e["value"]["errors"]]
    wrong += [
        [key, f"nobody knows this key; is {near} meant? (apply --force takes it)"] for key, near in misspelt.items()
    ]
    if not wrong:
        click.echo(f"{name}: valid")
        return
    if several:
        click.echo(f"{name}: not valid ({path})")
    print_table(["key", "problem"], wrong)


def _unknown(rest: Rest, plugin: str, config: Mapping[str, Any]) -> dict[str, str | None]:
    """Keys that no plugin reads; none if the worker is Apache Kafka's, which does not report them."""
    try:
        nearest: dict[str, str | None] = rest.call(
            "PUT", f"/tidegate/v1/connector-plugins/{quote(plugin)}/config/unknown-keys", config
        )
    except TidegateError:
        return {}
    return nearest
