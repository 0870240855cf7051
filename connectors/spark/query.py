"""A query over topics, run once, in a process of its own: ``tidegate sql``, and the console's page.

The process is ``connectors.spark.query_process``, so that who asks loads nothing of Spark.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from connect.api import ConnectError
from connectors.spark.cancelling import cancelling
from connectors.spark.java import environment, find_java

__all__ = ["Query", "Result", "run_query"]

_RECORDING_S: Final = 60


@dataclass(frozen=True)
class Query:
    """A query, and where its topics are. ``rows`` is how many of the result are wanted."""

    sql: str
    rows: int
    metadata_columns: bool
    kafka: Mapping[str, str] = field(repr=False)
    registry: Mapping[str, str] = field(repr=False)
    most_bytes: int | None = None
    """The largest result, as JSON; a larger one is an error."""
    fails_on_undecodable: bool = False
    """Whether a record that can't be decoded ends the query. Otherwise it is a row of nulls, and a note tells of it."""


@dataclass(frozen=True)
class Result:
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    """Values as JSON has them; what JSON lacks, such as a decimal or a time, is text."""
    more: bool
    """Whether there are more rows than were asked for."""
    notes: Sequence[str] = ()
    """Sentences about the rows: which topics have records that can't be decoded."""


@contextlib.contextmanager
def run_query(
    query: Query, stopping: threading.Event | None = None, on_progress: Callable[[str], None] = lambda note: None
) -> Iterator[Result]:
    """Run a query on a local Spark that starts and ends with it. A topic is a view by its name, or by its name with underscores
    for what SQL has no letters for; its columns are the fields of its values. With the metadata columns, ``__error`` and ``__bytes`` are
    the reason and the value of a record that can't be decoded.

    ``on_progress`` is told what is being done, in words. A query that does not parse, is more than a query or names a topic that there is
    not is refused before Spark starts.

    Spark is killed once ``stopping`` is set. The end of the context waits for Spark's end; on a machine's first query that takes seconds, as Spark writes its archive of
    classes. Raises ConnectError with Spark's words, and where there is no usable Java.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-spark-") as folder,
        (Path(folder) / "spark.log").open("w+") as log,
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "connectors.spark.query_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(find_java(Path(folder)), Path(folder), local=True),
            cwd=folder,
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None
        stopping = stopping or threading.Event()

        def end(_: threading.Event) -> bool:
            _kill(process)
            return True

        try:
            with cancelling(stopping, end):
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(json.dumps(asdict(query)))
                    process.stdin.close()
                answer = _answer(process.stdout, on_progress)
                if answer is None and stopping.is_set():
                    raise ConnectError("the query was stopped")
                if answer is None:
                    log.seek(0)
                    words = (log.read().strip().splitlines() or ["it left no words"])[-1]
                    raise ConnectError(f"Spark ended with status {process.wait()}: {words}")
                if "error" in answer:
                    raise ConnectError(answer["error"])
                yield Result(answer["columns"], answer["rows"], answer["more"], answer["notes"])
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_RECORDING_S)
        finally:
            _kill(process)
            process.wait()
            process.stdout.close()


def _answer(lines: Iterable[str], on_progress: Callable[[str], None]) -> dict[str, Any] | None:
    """The last line of the process; None where it ended without one."""
    for line in lines:
        said: dict[str, Any] = json.loads(line)
        if "progress" not in said:
            return said
        on_progress(said["progress"])
    return None


def _kill(process: subprocess.Popen[str]) -> None:
    """With all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
