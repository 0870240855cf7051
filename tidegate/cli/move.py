"""The command ``tidegate move``."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from tidegate.cli.backup import services_of
from tidegate.cli.options import data_option, echo_error, json_option, print_json, print_table
from tidegate.cli.progress import progress_of
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.files import write_whole
from tidegate.kit.texts import counted, time_text

__all__ = ["move", "moved_text"]

_MOVED: Final = "moved.json"
"""The file in the data folder that says where the platform has moved."""


@click.command()
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The data folder of the platform to move to. It runs, on whatever Kafka, and has none of the topics.",
)
@click.option(
    "--through",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder that keeps the records until the end; `move` in the data folder unless given.",
)
@click.option("--execute", is_flag=True, help="Copy; without it the command only shows what it would do.")
@click.option("--cut-over", is_flag=True, help="Copy the rest, and start the connectors there in place of here.")
@data_option
@json_option
def move(target: Path, through: Path | None, execute: bool, cut_over: bool, data: Path, as_json: bool) -> None:
    """Move this platform to another one: topics and records, positions of groups, schemas with their ids, events and their users,
    access control entries, quotas, connectors with their offsets.

    With --execute it copies what there is, while everything goes on here; again, it copies what is new. With --cut-over too it
    stops the connectors here, copies the rest, compares all records, and starts the connectors there. Stop other producers first:
    where one still writes, nothing is moved, and the connectors here start again.

    Example: tidegate up --detach --data cluster --bootstrap-servers kafka-1:9092 && tidegate move --to cluster --execute
    """
    from tidegate.backup.platform_move import PlatformMove
    from tidegate.backup.store import BackupStore

    if cut_over and not execute:
        raise UsageError("--cut-over changes both platforms: give --execute too")
    if target.resolve() == data.resolve():
        raise UsageError(f"--to {target} is the platform itself")
    if execute and (moved := moved_text(data)):
        raise UsageError(f"{moved}. To move it once more, delete {data / _MOVED}")
    accounts = _EventAccounts(data, target)
    folder = through or data / "move"
    moving = PlatformMove(
        BackupStore(str(folder)),
        partial(services_of, data),
        partial(services_of, target),
        progress_of=progress_of,
        tell=echo_error,
    )
    told = moving.cut_over() if cut_over else moving.copy() if execute else moving.plan()
    if moved := moved_text(data):
        echo_error(moved)
    told["changes"] += accounts.changes
    if cut_over and not told["problems"]:
        accounts.copy()
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # the platform has moved, and the note is for people
            write_whole(data / _MOVED, json.dumps({"to": str(target.absolute()), "at_ms": int(time.time() * 1000)}))
    if as_json:
        print_json(told)
    else:
        print_table(["what", "change"], told["changes"])
        for problem in told["problems"]:
            click.echo(problem, err=True)
        click.echo(_ending(told, target, data))
    if told["problems"]:
        raise click.exceptions.Exit(1)


def moved_text(data: Path) -> str:
    """Where and when a platform has moved; empty for one that has not."""
    try:
        moved = json.loads((data / _MOVED).read_text())
        return f"This platform has moved to {moved['to']}, on {time_text(moved['at_ms'])} UTC"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


class _EventAccounts:
    """The users and connected apps of the events service, which are a file of the data folder. One that is there stays."""

    def __init__(self, data: Path, target: Path) -> None:
        from events.config import ACCOUNTS_FILE

        self._file, self._there = data / "events" / ACCOUNTS_FILE, target / "events" / ACCOUNTS_FILE

    @property
    def changes(self) -> list[list[str]]:
        if not self._file.is_file():
            return []
        if self._there.is_file():
            return [["events users and apps", f"are left as they are in {self._there}"]]
        return [["events users and apps", f"copy {self._file}; sessions end"]]

    def copy(self) -> None:
        """With the certificates of the apps, which stand beside the file; the file is last, and read when it is there."""
        if not self._file.is_file() or self._there.is_file():
            return
        try:
            self._there.parent.mkdir(parents=True, exist_ok=True)
            for certificate in self._file.parent.glob("*.pem"):
                if not (self._there.parent / certificate.name).exists():
                    write_whole(self._there.parent / certificate.name, certificate.read_bytes(), mode=0o600)
            write_whole(self._there, self._file.read_bytes(), mode=0o600)
        except OSError as error:
            raise TidegateError(
                f"the platform has moved, but {self._file} could not be copied to {self._there}: {error.strerror}. Move again "
                "with --cut-over when the reason is gone"
            ) from error


def _ending(told: Mapping[str, Any], target: Path, data: Path) -> str:
    copied = f"{counted(told['topics'], 'topic')}, {counted(told['copied'], 'record')} copied"
    if not told["executed"]:
        return "nothing is changed: --execute copies, --execute --cut-over moves"
    if not told["cut_over"]:
        return f"{copied}; stop producers and add --cut-over to move"
    if told["problems"]:
        return f"{copied}; not moved: the connectors go on here"
    return f"{copied} and compared; clients go to the platform in {target} now, `tidegate down --data {data}` ends this one"
