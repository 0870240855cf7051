"""Threads of a task host that import at the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = {
    "__init__": """
import importlib, sys, time
end = time.monotonic() + (3 if sys.argv[1] == "as Python does" else 0.3)
while not importlib._bootstrap._blocking_on and time.monotonic() < end:
    time.sleep(0.01)  # until the other thread waits for us
from . import first
""",
    "first": "from .second import NAME",
    "second": "from . import third\nNAME = 1",
    "third": "",
}
"""Two threads that import this package and its module ``second`` wait for each other, as sqlalchemy's dialects can."""

THREADS = """
import importlib, sys, threading, time
from connect.worker.host.imports import import_one_at_a_time

if sys.argv[1] == "in turn":
    import_one_at_a_time()

def by_name():
    importlib.import_module("circular")

def by_statement():
    import circular.second
    assert circular.second.NAME == 1

failures = []
threading.excepthook = lambda arguments: failures.append(arguments.exc_value)
threads = [threading.Thread(target=by_name), threading.Thread(target=by_statement)]
threads[0].start()
while "circular" not in sys.modules:
    time.sleep(0.01)
threads[1].start()
for thread in threads:
    thread.join()
print(failures)
"""


@pytest.mark.parametrize("way", ["as Python does", "in turn"])
def test_threads_that_import_a_circular_package_get_it_whole(tmp_path: Path, way: str) -> None:
    (tmp_path / "circular").mkdir()
    for name, text in PACKAGE.items():
        (tmp_path / "circular" / f"{name}.py").write_text(text)
    (tmp_path / "in_threads.py").write_text(THREADS)
    command = [sys.executable, str(tmp_path / "in_threads.py"), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    if way == "in turn":
        assert done.stdout == "[]\n"
    else:
        assert "partially initialized module 'circular.second'" in done.stdout, "Python has no need of this any more?"


BYPASS = """
import sys, threading, time
from importlib import import_module  # as libraries have it from before; an import in C or Cython is not seen either
import connect.worker.host.imports as imports

imports._PATIENCE_S = -1  # for ever
imports.import_one_at_a_time()
first = threading.Thread(target=import_module, args=["slow"])
first.start()
while "slow" not in sys.modules:
    time.sleep(0.01)
import needs_slow  # each would wait for the other for ever if the first had no turn
first.join()
"""


def test_imports_that_are_no_statements_take_turns_too(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.5)\nimport colorsys\nimport chunk_of_slow\n")
    (tmp_path / "chunk_of_slow.py").write_text("")
    (tmp_path / "needs_slow.py").write_text("import slow\nassert slow.colorsys\n")
    subprocess.run([sys.executable, "-c", BYPASS], cwd=tmp_path, timeout=60, check=True)


def test_a_module_that_waits_for_a_thread_which_imports_is_not_blocked_for_ever(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(
        "import threading\nthread = threading.Thread(target=__import__, args=['imports_many'])\nthread.start()\nthread.join()\n"
    )
    (tmp_path / "imports_many.py").write_text("import colorsys, shelve, sched\n")
    program = (
        "import connect.worker.host.imports as imports, sys\nimports._PATIENCE_S = 0.2\nimports.import_one_at_a_time()\n"
        "import waiting\nassert 'colorsys' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=60, check=True)


def test_an_object_in_place_of_a_module_is_imported_as_it_is() -> None:
    program = (
        "import sys\nfrom connect.worker.host.imports import import_one_at_a_time\nimport_one_at_a_time()\n"
        "class Slotted:\n    __slots__ = ('name',)\n"
        "sys.modules['slotted'] = Slotted()\nsys.modules['slotted'].name = 7\n"
        "import slotted\nfrom slotted import name\nassert name == 7"
    )
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
