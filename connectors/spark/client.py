"""Runs a Spark driver in a process of its own, follows its progress and can cancel it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from connect.api import ConnectError
from connectors.spark.driver import Job
from connectors.spark.jars import fetch_jars
from connectors.spark.java import find_java

__all__ = ["Cancelled", "run_job"]

_CANCEL_GRACE_S: Final = 3


class Cancelled(ConnectError):
    """The job was cancelled before it was done; nothing of it counts."""


def run_job(
    job: Job, *, stopping: threading.Event, on_progress: Callable[[Mapping[str, Any]], None]
) -> Mapping[str, Any]:
    """Run a job to its end; returns what the driver said last (``rows`` by topic, ``files``).

    Blocks. Raises Cancelled soon after ``stopping`` is set, and ConnectError with Spark's words when the job failed.
    """
    with tempfile.TemporaryDirectory(prefix="tidegate-spark-") as folder:
        scratch = Path(folder)
        java_home = find_java(scratch)
        on_progress({"done": 0, "total": None, "unit": "tasks", "note": "starting Spark"})
        jars = [str(jar) for jar in fetch_jars(java_home, scratch)]
        description = scratch / "job.json"
        Job(**(vars(job) | {"jars": [*jars, *job.jars]})).save(description)
        with (scratch / "spark.log").open("w+") as log, _start(description, java_home, scratch, log) as driver:
            return _follow(driver, log, stopping, on_progress)


def _start(description: Path, java_home: Path, scratch: Path, log: Any) -> subprocess.Popen[str]:
    environment = os.environ | {"JAVA_HOME": str(java_home), "PYSPARK_PYTHON": sys.executable}
    environment.pop("SPARK_HOME", None)  # another Spark on the machine is not the one that was asked for
    return subprocess.Popen(
        [sys.executable, "-m", "connectors.spark.driver", str(description)],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env=environment,
        cwd=scratch,
        start_new_session=True,
    )


def _follow(
    process: subprocess.Popen[str],
    log: Any,
    stopping: threading.Event,
    on_progress: Callable[[Mapping[str, Any]], None],
) -> Mapping[str, Any]:
    ended = threading.Event()
    canceller = threading.Thread(target=_cancel_when, args=(process, stopping, ended), daemon=True)
    canceller.start()
    last: dict[str, Any] = {}
    try:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                said = json.loads(line)
            except json.JSONDecodeError:
                continue  # a library that prints to standard output is not the driver speaking
            if said.get("event") == "progress":
                on_progress(said)
            else:
                last = said
        status = process.wait()
    finally:
        ended.set()
        canceller.join()
    if last.get("event") == "done" and status == 0:
        return last
    if stopping.is_set():
        raise Cancelled("the Spark job was cancelled")
    log.seek(0)
    words = last.get("message") or "".join(log.readlines()[-5:]).strip() or f"the driver ended with status {status}"
    raise ConnectError(f"the Spark job failed: {words}")


def _cancel_when(process: subprocess.Popen[str], stopping: threading.Event, ended: threading.Event) -> None:
    """SIGTERM when asked to stop, SIGKILL to the driver and its JVM when that does not help in time."""
    while not ended.is_set():
        if stopping.wait(0.2):
            process.terminate()
            try:
                process.wait(_CANCEL_GRACE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
            return
