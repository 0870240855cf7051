"""The progress of a command that takes long, on standard error: a bar on a terminal, and a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

__all__ = ["progress_of", "status_of"]

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


@contextmanager
def status_of(doing: str) -> Iterator[Callable[[str], None]]:
    """Give the function that tells what is being done, where there is nothing to count."""
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status(doing) as status:
            yield status.update
        return
    pause = _Pause()
    yield lambda note: click.echo(note, err=True) if pause.over() else None


class _Pause:
    """Whether it is time for a line in a log again."""

    def __init__(self) -> None:
        self._printed_at = time.monotonic()

    def over(self) -> bool:
        if time.monotonic() - self._printed_at < _LINE_EVERY_S:
            return False
        self._printed_at = time.monotonic()
        return True


def _lines(doing: str) -> Callable[[int, int | None, str], None]:
    pause = _Pause()

    def tell(done: int, total: int | None, note: str) -> None:
        if pause.over():
            click.echo(f"{doing} {note}".strip() + f": {done:,}" + (f" of {total:,}" if total else ""), err=True)

    return tell
