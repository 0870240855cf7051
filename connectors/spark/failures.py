"""Words for errors of Spark, and whether the same job may succeed later."""

from __future__ import annotations

import contextlib
import importlib
import re
from typing import Final

from tidegate.kit.errors import TidegateError

__all__ = ["first_words", "is_passing"]

_MOST_CAUSES: Final = 20
_MOST_WORDS: Final = 2000
_PASSING: Final = frozenset(
    {
        "io.delta.exceptions.DeltaConcurrentModificationException",
        "java.net.SocketException",
        "java.net.SocketTimeoutException",
        "java.net.UnknownHostException",
        "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
        "org.apache.hadoop.ipc.RetriableException",
        "org.apache.hadoop.ipc.StandbyException",
        "org.apache.hadoop.net.ConnectTimeoutException",
    }
)
"""Exceptions of the JVM, and all below them, of a server that is away or a table that others change. ConnectException is a
SocketException."""

_PYTHON_ERROR: Final = re.compile(
    r"^((?:broker|connectors|registry|pyspark_tidegate|tidegate)(?:\.\w+)+): (.+)$", re.MULTILINE
)
"""The last line of a traceback with an error of ours: in Spark's words it stands between lines of the JVM."""


_AROUND: Final = re.compile(
    r"\A(\[STREAM_FAILED\] Query \[id = [^\]]*\] terminated with exception: |An error occurred while calling \S+\n: )"
)
"""Words before those of the failure itself."""
_IN_SQL: Final = re.compile(r"^== SQL[^(\n]*\((line \d+, position \d+)\) ==\n(.+)$", re.MULTILINE)
"""Where in a query a value failed, and that line of it."""


def first_words(error: Exception) -> str:
    """The words of our own error where one of a Python worker is behind it, else Spark's first line, the line of SQL that it tells of,
    and the last cause."""
    if _has_lost_jvm(error):
        return f"Spark's JVM is gone: it was killed, or had too little memory ({error})"[:_MOST_WORDS]
    description = _AROUND.sub("", str(getattr(error, "desc", None) or error))
    if ours := _PYTHON_ERROR.findall(description):
        return str(ours[-1][1])[:_MOST_WORDS]
    lines = [line.strip() for line in description.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    at = [f"{where}: {line.strip()}" for where, line in _IN_SQL.findall(description)[:1]]
    return " | ".join([lines[0] if lines else type(error).__name__, *at, *causes[-1:]])[:_MOST_WORDS]


def is_passing(error: Exception) -> bool:
    """Whether the same job may succeed later: a server was away, as our own error or an exception of the JVM behind it says, or the
    JVM is gone, as when it is killed.

    A stage that failed has that of its last task.
    """
    if isinstance(error, TidegateError):
        return error.retriable
    if _has_lost_jvm(error):
        return True
    if ours := _PYTHON_ERROR.findall(str(getattr(error, "desc", None) or error)):
        return _is_retriable(ours[-1][0])
    return _has_passing_cause(error)


def _has_lost_jvm(error: Exception) -> bool:
    from py4j.protocol import Py4JNetworkError

    return isinstance(error, Py4JNetworkError | ConnectionError)


def _is_retriable(name: str) -> bool:
    """Whether errors of this class pass. A library's own class is not one of ours."""
    module, _, class_name = name.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), class_name)
    except (ImportError, AttributeError):
        return False
    return isinstance(kind, type) and issubclass(kind, TidegateError) and bool(kind.retriable)


def _has_passing_cause(error: Exception) -> bool:
    from py4j.protocol import Py4JError

    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    with contextlib.suppress(Py4JError, OSError):  # the JVM that could say it is gone
        for _ in range(_MOST_CAUSES):
            if thrown is None:
                return False
            kind = thrown.getClass()
            while kind is not None:
                if kind.getName() in _PASSING:
                    return True
                kind = kind.getSuperclass()
            thrown = thrown.getCause()
    return False
