"""The demo's progress: bars on a terminal, and lines in a log, which has no place to draw a bar."""

from __future__ import annotations

import time
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

__all__ = ["add_bar", "bars"]

_LINE_EVERY_S: Final = 5.0


def bars(console: Console) -> Progress:
    """Bars for ``add_bar``, to be used as a context."""
    if not console.is_terminal:
        return _Lines(console)
    words = TextColumn("{task.description}", table_column=Column(min_width=34, no_wrap=True))
    counts = MofNCompleteColumn(table_column=Column(min_width=15, no_wrap=True))
    took = TimeElapsedColumn(table_column=Column(min_width=7, no_wrap=True))
    note = TextColumn("{task.fields[note]}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    return Progress(words, BarColumn(10), counts, took, note, console=console)


def add_bar(progress: Progress, words: str, total: int | None) -> TaskID:
    return progress.add_task(words, total=total, note="")


class _Lines(Progress):
    """Prints a line when a bar is full, and every few seconds one of each bar that moves. Any thread may update."""

    def __init__(self, console: Console) -> None:
        super().__init__(console=console, disable=True)
        self._printed_at: dict[TaskID, float] = {}

    def update(self, task_id: TaskID, **changes: Any) -> None:
        with self._lock:
            task = self._tasks[task_id]
            if task.finished:
                return
            super().update(task_id, **changes)
            now = time.monotonic()
            if task.finished or now - self._printed_at.setdefault(task_id, now) >= _LINE_EVERY_S:
                self._printed_at[task_id] = now
                self.console.print(_line(task), highlight=False, markup=False, soft_wrap=True)


def _line(task: Task) -> str:
    count = f"{task.completed:,.0f}" + ("" if task.total is None else f" of {task.total:,.0f}")
    took = f"{task.elapsed or 0:.0f} s"
    note = f" ({task.fields['note']})" if task.fields["note"] else ""
    return f"{task.description}: {count}, {took}{note}"
