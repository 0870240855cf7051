"""Runs an example: its README's commands in a copy of its folder, on a fresh platform on free ports."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tidegate.examples.catalog import Example
from tidegate.examples.shell import Shell
from tidegate.kit.errors import UsageError

__all__ = ["copy", "follow", "run"]

_IGNORED: Final = shutil.ignore_patterns("tidegate-data", "__pycache__")
_SITE: Final = ".site"


def copy(example: Example, folder: Path) -> None:
    """Copy the example's files. Raises UsageError unless ``folder`` is empty or missing."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not an empty folder: name another --folder")
    shutil.copytree(example.folder, folder, ignore=_IGNORED, dirs_exist_ok=True)


def run(
    example: Example,
    folder: Path | None,
    *,
    on_command: Callable[[int, str], None],
    on_output: Callable[[str], None],
) -> float:
    """Follow the README; return the seconds that it took.

    Without ``folder`` the copy is temporary. ``on_command`` gets the number of the command, from 1, and its text.
    Raises UsageError that says what the machine lacks, and PageNotFollowed where the README is not true.
    """
    if lacking := example.lacks():
        raise UsageError(f"{example.name} needs {' and '.join(lacking)}")
    began = time.monotonic()
    with _folder(example, folder) as copied:
        follow(example, copied, on_command=on_command, on_output=on_output)
    return time.monotonic() - began


def follow(
    example: Example,
    copied: Path,
    *,
    environment: dict[str, str] | None = None,
    on_command: Callable[[int, str], None] = lambda number, text: None,
    on_output: Callable[[str], None] = lambda text: None,
) -> None:
    """Follow the README in a copy of the example's folder; the platform it starts is stopped. Raises PageNotFollowed.

    Packages that the README installs with pip go into a folder of the copy, not into the environment of the caller.
    """
    site = copied / _SITE
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    modules = os.pathsep.join([str(Path("node_modules").absolute()), *filter(None, [os.environ.get("NODE_PATH")])])
    shell = Shell(copied, {"PIP_TARGET": str(site), "PYTHONPATH": path, "NODE_PATH": modules, **(environment or {})})
    try:
        for number, command in enumerate(example.commands(), 1):
            on_command(number, shell.here(command.text))
            on_output(shell.run(command))
    finally:
        shell.stop()


@contextmanager
def _folder(example: Example, folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        copy(example, folder)
        yield folder.absolute()
        return
    with tempfile.TemporaryDirectory(prefix=f"tidegate-{example.name}-") as made:
        copied = Path(made) / example.name
        copy(example, copied)
        yield copied
