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
from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["import_one_at_a_time"]

_PATIENCE_S: Final = 30
"""A module that has a thread import something, and waits for it, must not wait for ever."""


def import_one_at_a_time() -> None:
    """Have every import of a module that is not loaded yet wait until other threads' imports are done."""
    turn = threading.RLock()
    import_statement, import_module = builtins.__import__, importlib.import_module

    def statement_in_turn(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - they may be given by name
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level == 0 and _is_loaded(name, fromlist or ()):
            return import_statement(name, globals, locals, fromlist, level)
        has_turn = turn.acquire(timeout=_PATIENCE_S)
        try:
            return import_statement(name, globals, locals, fromlist, level)
        finally:
            if has_turn:
                turn.release()

    def module_in_turn(name: str, package: str | None = None) -> Any:
        has_turn = turn.acquire(timeout=_PATIENCE_S)
        try:
            return import_module(name, package)
        finally:
            if has_turn:
                turn.release()

    builtins.__import__, importlib.import_module = statement_in_turn, module_in_turn


def _is_loaded(name: str, members: Sequence[str]) -> bool:
    module = sys.modules.get(name)
    if module is None or getattr(module.__spec__, "_initializing", False):
        return False
    return all(member in vars(module) for member in members)
