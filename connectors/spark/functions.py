"""Functions of users, ``module:function``, that make a DataFrame of the topics' views.

``python -m connectors.spark.functions`` reads a name from standard input, imports it and prints ``{"problem": null}`` or what is wrong,
as JSON: what a module does when it is imported happens in that process.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from tidegate.kit.errors import UsageError

__all__ = ["load_function", "problem_of_function"]

_PATIENCE_S: Final = 8.0
"""The validation of a connector has ten seconds."""


def load_function(name: str) -> Callable[..., Any]:
    """The function of this name, to be called with the views and the session. Raises UsageError that says what is wrong with it."""
    module_name, _, attribute = name.partition(":")
    if not (module_name and attribute):
        raise UsageError(f"spark.function is {name!r}: it must be module:function")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise UsageError(
            f"spark.function is {name}, and the module {module_name} can't be imported: {type(error).__name__}: {error} "
            "(spark.python.path names folders with modules)"
        ) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        wrong = "has no function" if function is None else "has no function, but a value,"
        raise UsageError(f"spark.function is {name}, and the module {module_name} {wrong} {attribute}")
    if _takes(function, 2):
        return function  # type: ignore[no-any-return]
    if _takes(function, 1):
        return lambda views, _: function(views)
    raise UsageError(
        f"spark.function is {name}, which takes {inspect.signature(function)}: it is called with the views by name, and with the "
        "SparkSession if it takes two arguments"
    )


def _takes(function: Callable[..., Any], arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError:
        return False
    except ValueError:  # a function of C, whose parameters nobody knows
        return arguments == 2
    return True


def problem_of_function(name: str, folders: Sequence[str]) -> str | None:
    """The problem of a function, as ``load_function`` says it; None if it has none. ``folders`` are looked in for its module first.

    Blocks for the start of a Python. The owner of the connector may have no right to start one: that is a problem too.
    """
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "connectors.spark.functions"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [*folders, os.environ.get("PYTHONPATH")]))},
            start_new_session=True,
        )
    except OSError as error:
        return f"spark.function is {name}, which can't be looked at: {error.strerror or error}"
    with process:
        try:
            answer, words = process.communicate(name, _PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"spark.function is {name}, whose module took longer than {_PATIENCE_S:g} s to be imported"
    if process.returncode:
        last = (words.strip().splitlines() or ["no words"])[-1]
        return (
            f"spark.function is {name}, and Python ended with status {process.returncode} when it imported it: {last}"
        )
    problem = json.loads(answer.splitlines()[-1])["problem"]  # a module may print
    return None if problem is None else str(problem)


def main() -> int:
    try:
        load_function(sys.stdin.read())
    except UsageError as error:
        problem: str | None = str(error)
    else:
        problem = None
    print(json.dumps({"problem": problem}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
