"""The progress of a command that takes long, on standard error: a bar on a terminal, and a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

__all__ = ["progress_of"]

_LINE_EVERY_S: Final = 10.0


@contextmanager
def progress_of(doing: str) -> Iterator[Callable[[int, int | None, str], None]]:
    """Give the function that tells how much is done, of how much if that is known, and of what, as a topic's name.

    A log or a job's mail gets its first line after ten seconds, so that short work stays silent there.
    """
    if not sys.stderr.isatty():
        yield _lines(doing)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(doing, total=None)
        yield lambda done, total, note: shown.update(
            task, completed=done, total=total, description=f"{doing} {note}".strip()
        )


def _lines(doing: str) -> Callable[[int, int | None, str], None]:
    printed_at = time.monotonic()

    def tell(done: int, total: int | None, note: str) -> None:
        nonlocal printed_at
        if time.monotonic() - printed_at >= _LINE_EVERY_S:
            printed_at = time.monotonic()
            click.echo(f"{doing} {note}".strip() + f": {done:,}" + (f" of {total:,}" if total else ""), err=True)

    return tell
