"""Parses a query with Spark's own parser, in a JVM that starts no Spark: a wrong one is told of before a job runs.

``python -m connectors.spark.parsing`` reads the query from standard input and prints ``{"problem": null}`` or Spark's words, as JSON.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from connect.api import ConnectError, Problem, get_logger
from connectors.spark.java import find_java

__all__ = ["Unchecked", "problem_of", "problems_of_query"]

logger = get_logger(__name__)

_PATIENCE_S: Final = 8.0
"""The validation of a connector has ten seconds."""
_ONE_AT_A_TIME: Final = threading.Lock()
"""A JVM takes two seconds of a processor: however many ask, one runs."""
_TRACE: Final = re.compile(r"^\s+at ", re.MULTILINE)


class Unchecked(ConnectError):
    """The query could not be parsed here: no Java, no pyspark, no time, or placeholders that Spark replaces."""


def problems_of_query(sql: str | None) -> Iterable[Problem]:
    """The error that Spark's parser finds in ``spark.sql``. Where the parser can't be asked, a warning says so."""
    if sql is None:
        return
    try:
        problem = problem_of(sql)
    except Unchecked as error:
        logger.warning("a query is not checked before the first job of its connector", reason=str(error))
        return
    if problem is not None:
        yield Problem("spark.sql", f"spark.sql is no query that Spark can parse: {problem}")


@functools.lru_cache(maxsize=64)
def problem_of(sql: str) -> str | None:
    """Spark's words about a query that does not parse, with the line; None if it parses. Blocks for the start of a JVM.

    Raises Unchecked.
    """
    if "${" in sql:
        raise Unchecked("the query has ${...}, which Spark replaces when the job runs")
    if importlib.util.find_spec("pyspark") is None:
        raise Unchecked("pyspark is missing: pip install 'tidegate[spark]'")
    deadline = time.monotonic() + _PATIENCE_S
    if not _ONE_AT_A_TIME.acquire(timeout=_PATIENCE_S):
        raise Unchecked(f"other queries were being parsed for {_PATIENCE_S:g} s")
    try:
        return _asked(sql, deadline)
    finally:
        _ONE_AT_A_TIME.release()


def _asked(sql: str, deadline: float) -> str | None:
    try:
        process = _started()
    except OSError as error:  # also of an owner who may start no programs
        raise Unchecked(f"no process can be started to parse it: {error}") from error
    with process:
        try:
            answer, words = process.communicate(sql, max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Unchecked(f"Java took longer than {_PATIENCE_S:g} s to start") from None
    if process.returncode:
        raise Unchecked((words.strip().splitlines() or ["the parser ended without words"])[-1])
    problem = json.loads(answer)["problem"]
    return None if problem is None else str(problem)


def _started() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "connectors.spark.parsing"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _parse(sql: str, java: Path) -> str | None:
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    from py4j.protocol import Py4JJavaError

    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    jars = Path(spec.origin).parent / "jars"
    started = launch_gateway(
        classpath=f"{jars}/*",
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        java_path=str(java),
        javaopts=["-Xshare:auto", "-XX:TieredStopAtLevel=1"],
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
        redirect_stderr=subprocess.DEVNULL,
        redirect_stdout=subprocess.DEVNULL,
    )
    port, token, process = started
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        gateway.jvm.org.apache.spark.sql.execution.SparkSqlParser().parseQuery(sql)
    except Py4JJavaError as error:
        return _TRACE.split(str(error.java_exception.getMessage()))[0].strip()
    finally:
        gateway.close()
        process.kill()
        process.wait()
    return None


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tidegate-spark-") as scratch:
        try:
            java = find_java(Path(scratch)) / "bin" / "java"
        except ConnectError as error:
            print(error, file=sys.stderr)
            return 1
        print(json.dumps({"problem": _parse(sys.stdin.read(), java)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
