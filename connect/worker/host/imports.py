"""One thread of a task host imports at a time.

Python locks each module alone. Where two threads import a package with circular imports by different modules, each waits
for the other's; Python notices, and gives one of them the half-made module: "cannot import name ... from partially
initialized module" (docs.python.org, ``importlib``; sqlalchemy's dialect of PostgreSQL is such a package). Tasks start at
the same time, each in a thread, and their code imports what it needs then.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

__all__ = ["import_one_at_a_time"]

_PATIENCE_S: Final = 10
"""A thread that imports while another waits for it, inside an import or with a lock that an import needs, goes on then."""


def import_one_at_a_time() -> None:
    """Have every import of a module that is not loaded yet wait until other threads' imports are done.

    ``importlib._bootstrap._find_and_load`` is what all imports come to: statements, ``importlib``, C and Cython. If only
    some of them took turns, one that has the turn could wait for a module that another loads, which waits for the turn.
    """
    bootstrap: Any = sys.modules["_frozen_importlib"]
    find_and_load: Callable[[str, object], ModuleType] = bootstrap._find_and_load
    turn, this_thread = threading.Lock(), threading.local()

    def find_and_load_in_turn(name: str, import_: object) -> ModuleType:
        # A module's own imports belong to its import, also where that has lost its patience.
        if getattr(this_thread, "imports", False) or _is_loaded(name):
            return find_and_load(name, import_)
        has_turn = turn.acquire(timeout=_PATIENCE_S)
        this_thread.imports = True
        try:
            return find_and_load(name, import_)
        finally:
            this_thread.imports = False
            if has_turn:
                turn.release()

    bootstrap._find_and_load = find_and_load_in_turn


def _is_loaded(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)
