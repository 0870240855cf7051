"""One thread of a task host imports at a time.

Python locks each module alone. Where two threads import a package with circular imports by different modules, each waits
for the other's; Python notices, and gives one of them the half-made module: "cannot import name ... from partially
initialized module" (docs.python.org, ``importlib``; sqlalchemy's dialect of PostgreSQL is such a package). Tasks start at
the same time, each in a thread, and their code imports what it needs then.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["import_one_at_a_time"]

_PATIENCE_S: Final = 30
"""A module that has a thread import something, and waits for it, must not wait for ever."""


def import_one_at_a_time() -> None:
    """Have every import of a module that is not loaded yet wait until other threads' imports are done."""
    lock = threading.RLock()
    import_statement, import_module = builtins.__import__, importlib.import_module

    @contextmanager
    def turn() -> Iterator[None]:
        has_turn = lock.acquire(timeout=_PATIENCE_S)
        try:
            yield
        finally:
            if has_turn:
                lock.release()

    def statement_in_turn(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - they may be given by name
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level == 0 and _is_loaded(name, fromlist or ()):
            return import_statement(name, globals, locals, fromlist, level)
        with turn():
            return import_statement(name, globals, locals, fromlist, level)

    def module_in_turn(name: str, package: str | None = None) -> Any:
        with turn():
            return import_module(name, package)

    builtins.__import__, importlib.import_module = statement_in_turn, module_in_turn


def _is_loaded(name: str, members: Sequence[str]) -> bool:
    module = sys.modules.get(name)
    if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
        return False
    members_there = getattr(module, "__dict__", {})  # a package may put any object in place of a module
    return all(member in members_there for member in members)
