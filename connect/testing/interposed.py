"""A connector whose task reports every call to a conductor and follows its answers; runs in the task host
(``connect.testing.conductor``).

Nothing of the connector is replaced: its own code runs, and stops, dies or fails at the conductor's command.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from connect.api import Connector, JobTask, SinkTask, SourceTask, Task

__all__ = ["LineCounter", "files_of", "interposed"]

_CALLS: Final = {
    SinkTask: ("start", "open", "put", "pre_commit", "close", "stop"),
    SourceTask: ("start", "poll", "committed", "stop"),
    JobTask: ("start", "run", "stop"),
}
_REPLY_S: Final = 600.0


def files_of(connector_class: type[Connector[Any]]) -> tuple[str, ...]:
    """Prefixes of the file names with the connector's code: its package, and the modules of its task's base classes."""
    top = connector_class.__module__.partition(".")[0]
    file = str(getattr(sys.modules[top], "__file__", None) or "")
    package = Path(file).parent if Path(file).name == "__init__.py" else Path(file)
    bases = [base for base in connector_class.task_class.__mro__ if issubclass(base, Task) and base is not Task]
    modules = [sys.modules[base.__module__].__file__ for base in bases]
    return tuple(dict.fromkeys([str(package), *(str(module) for module in modules)]))


class LineCounter:
    """Counts the lines of some files that this thread executes within ``counting``; calls ``at`` before line
    ``stop_at``.
    """

    def __init__(self, files: Sequence[str], at: Callable[[], None], stop_at: int | None) -> None:
        self._files, self._at, self._stop_at = tuple(files), at, stop_at
        self.lines = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(self._files) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.lines += 1
            if self.lines == self._stop_at:
                self._at()
        return self._line


def interposed(connector_class: type[Connector[Any]], port: int) -> type[Connector[Any]]:
    """A subclass, which a worker runs like the original, with a conductor at ``port`` of 127.0.0.1."""
    below = next(base for base in _CALLS if issubclass(connector_class.task_class, base))
    files = files_of(connector_class)
    link = _Link(port)

    def wrapped(name: str) -> Callable[..., Any]:
        def call(self: Any, *arguments: Any) -> Any:
            return _conducted(link, files, self, name, arguments)

        return call

    members = {name: wrapped(name) for name in _CALLS[below]}
    task_class = type(connector_class.task_class.__name__, (connector_class.task_class,), members)
    return type(connector_class.__name__, (connector_class,), {"task_class": task_class})


def _conducted(link: _Link, files: Sequence[str], task: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    """One call of the task, reported at its beginning, at a requested line, and at its end."""
    instance = task.__dict__.setdefault("_conducted_as", uuid.uuid4().hex)
    told = {"call": name, "pid": os.getpid(), "thread": threading.get_ident(), "instance": instance}
    rows = sum(len(batch) for batch in arguments[0]) if name == "put" else None
    order = link.ask({**told, "phase": "begin", "rows": rows})

    def at_line() -> None:
        _obey(link.ask({**told, "phase": "line"}))

    counter = LineCounter(files, at_line, order.get("line"))
    called = getattr(super(type(task), task), name)
    outcome: dict[str, Any] = {"error": None}
    try:
        with counter.counting():
            result = called(*arguments)
        if name == "poll":
            rows = sum(len(batch) for batch in result)
    except BaseException as error:
        outcome["error"] = f"{type(error).__name__}: {error}"
        raise
    finally:
        _obey(link.ask({**told, **outcome, "phase": "end", "rows": rows, "lines": counter.lines}))
    return result


def _obey(order: Mapping[str, Any]) -> None:
    if order.get("do") == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


class _Link:
    """One connection per thread to the conductor. Once it is closed, every answer is to continue."""

    def __init__(self, port: int) -> None:
        self._port, self._mine = port, threading.local()

    def ask(self, event: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if not hasattr(self._mine, "file"):
                connection = socket.create_connection(("127.0.0.1", self._port), _REPLY_S)
                self._mine.file = connection.makefile("rw")
            self._mine.file.write(json.dumps(event) + "\n")
            self._mine.file.flush()
            return dict(json.loads(self._mine.file.readline() or "{}"))
        except OSError:
            return {}
