"""Runs Spark jobs in a driver process of its own, follows their progress and can cancel them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from connect.api import ConnectError, JobTaskContext, RetriableConnectError, SourceJobTaskContext
from connectors.spark.cancelling import cancelling
from connectors.spark.jars import Package, fetch_jars
from connectors.spark.java import environment, find_java
from connectors.spark.job import RECORD_CLASSES, WARM, Job
from connectors.spark.load import Load
from tidegate.kit.logs import get_logger

__all__ = ["Cancelled", "SparkDriver", "tell"]

logger = get_logger(__name__)

_EXCEPTION: Final = re.compile(r"^(?:Caused by: |: )?((?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error): .+)$", re.MULTILINE)
"""As the JVM and Python print one; py4j puts a colon before it."""
_WORDS_OF_JAVA: Final = re.compile(
    r"^(?:#|Error|Exception|Unrecognized)|not found|No such file|Exception:", re.MULTILINE
)
"""A JVM that can't start says so in such lines."""
_CANCEL_GRACE_S: Final = 3
_RECORDING_S: Final = 60
_TAKEN: Final = "taken"
"""The answer to records that a stream left out."""


class Cancelled(ConnectError):
    """The job was cancelled before it was done; nothing of it counts."""


class SparkDriver:
    """A driver that is started with the first job and stays for the next ones until ``close`` or ``idle_s`` without one.

    ``run`` is called by one thread at a time; ``close`` waits for it, and ``kill`` ends it from another thread.
    """

    def __init__(self, *, stopping: threading.Event, idle_s: float, packages: Sequence[Package] = ()) -> None:
        """``packages`` are fetched when Spark starts."""
        self._stopping, self._idle_s, self._packages = stopping, idle_s, packages
        self._process: subprocess.Popen[str] | None = None
        self._jars: list[str] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._idle: threading.Timer | None = None
        self._lock = threading.Lock()
        self._recording = False

    def run(
        self,
        job: Job | Load,
        on_progress: Callable[[Mapping[str, Any]], None],
        on_left_out: Callable[[pa.RecordBatch], None] = lambda batch: None,
    ) -> Mapping[str, Any]:
        """Run a job to its end; returns what the driver said last (of a job ``rows`` by topic, ``files``, ``left_out``; of a load what
        ``loading.run`` returns). ``on_left_out`` gets the records that could not be decoded, with the columns ``LEFT_OUT``; those of a stream after
        each micro-batch, which is not done before it returns.

        Blocks. Raises Cancelled soon after ``stopping`` is set, and when the job failed ConnectError with Spark's words,
        RetriableConnectError where a server that it uses was away; the driver is gone after any of them.
        """
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            try:
                with self._cancelling():
                    said = self._run(job, on_progress, on_left_out)
                if said["records"]:
                    _hand_over(Path(said["records"]), on_left_out)
            except BaseException:
                self._end()
                raise
            self._stay()
            return said

    def warm(self, job: Job | Load, on_progress: Callable[[Mapping[str, Any]], None]) -> None:
        """Start Spark for such a job, in the background; ``run`` waits for it. Where that fails, ``run`` tries again and tells.

        The session stays like one that has run a job.
        """
        warming = threading.Thread(target=self._warm, args=(job, on_progress), name="warm Spark", daemon=True)
        warming.start()

    def _warm(self, job: Job | Load, on_progress: Callable[[Mapping[str, Any]], None]) -> None:
        with self._lock:
            try:
                with self._cancelling():
                    self._run(job, on_progress, lambda batch: None, order=WARM)
            except Exception as error:  # noqa: BLE001 - the job has the same error, if it lasts
                logger.info("Spark was not started before the first job", reason=str(error))
                self._end()
                return
            on_progress({"done": 0, "total": None, "unit": "tasks", "note": "Spark is ready"})
            self._stay()

    def _stay(self) -> None:
        """Have the driver end when it has had nothing to do for long enough."""
        self._idle = threading.Timer(self._idle_s, self._rest)
        self._idle.daemon = True
        self._idle.start()

    def close(self) -> None:
        """Let the driver end, when no job is running."""
        if self._recording:
            self.kill()
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            self._end()

    def _rest(self) -> None:
        """Let a driver that has nothing to do end, which has time for the archive of classes first."""
        with self._lock:
            if (process := self._process) is not None:
                self._recording = True
                try:
                    _record_classes(process, self.kill)
                finally:
                    self._recording = False
            self._end()

    def kill(self) -> None:
        """Have the job that runs end at once; ``run`` raises."""
        if (process := self._process) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)

    def _run(
        self,
        job: Job | Load,
        on_progress: Callable[[Mapping[str, Any]], None],
        on_left_out: Callable[[pa.RecordBatch], None],
        *,
        order: str = "",
    ) -> Mapping[str, Any]:
        process, scratch = self._started(job, on_progress)
        description = scratch / "job.json"
        dataclasses.replace(job, jars=[*self._jars, *job.jars]).save(description)
        assert process.stdout is not None
        _write_line(process, f"{order}{description}")
        for line in process.stdout:
            said = _said(line)
            if said.get("event") == "progress":
                on_progress(said)
            elif said.get("event") == "left out":
                _hand_over(Path(said["records"]), on_left_out)
                _write_line(process, _TAKEN)
            elif said.get("event") == "done":
                return said
            elif said.get("event") == "failed":
                kind = RetriableConnectError if said.get("passing") else ConnectError
                raise kind(f"the Spark job failed: {said['message']}")
        status = process.wait()
        if self._stopping.is_set():
            raise Cancelled("the Spark job was cancelled")
        log = (scratch / "spark.log").read_text(errors="replace")
        if status < 0:
            raise RetriableConnectError(f"the Spark driver was killed: it ended by signal {-status}")
        if _ended_without_a_word(log):
            raise RetriableConnectError("Spark's JVM was killed while it started, or could not start, without a word")
        raise ConnectError(f"the Spark driver ended with status {status}: {_last_words(log)}")

    def _started(
        self, job: Job | Load, on_progress: Callable[[Mapping[str, Any]], None]
    ) -> tuple[subprocess.Popen[str], Path]:
        if self._process is not None and self._folder is not None and self._process.poll() is None:
            return self._process, Path(self._folder.name)
        self._end()
        self._folder = tempfile.TemporaryDirectory(prefix="tidegate-spark-")
        scratch = Path(self._folder.name)
        on_progress({"done": 0, "total": None, "unit": "tasks", "note": "starting Spark"})
        java_home = find_java(scratch)
        if self._packages:
            self._jars = [str(jar) for jar in fetch_jars(java_home, scratch, self._packages)]
        with (scratch / "spark.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "connectors.spark.driver"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(
                    java_home,
                    scratch,
                    local=job.master.startswith("local"),
                    folders=job.python_path if isinstance(job, Job) else (),
                    python=job.conf.get("spark.pyspark.python", ""),
                ),
                cwd=scratch,
                start_new_session=True,
            )
        return self._process, scratch

    def _end(self) -> None:
        """End the driver, if there is one, and its JVM with it."""
        process, self._process = self._process, None
        if process is not None:
            _end_process(process)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _cancelling(self) -> contextlib.AbstractContextManager[None]:
        """While a job runs: SIGTERM to the driver when asked to stop, SIGKILL when that does not help in time."""

        def cancel(_: threading.Event) -> bool:
            process = self._process
            if process is None:
                return False
            process.terminate()
            try:
                process.wait(_CANCEL_GRACE_S)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)
            return True

        return cancelling(self._stopping, cancel)


def tell(context: JobTaskContext | SourceJobTaskContext, said: Mapping[str, Any]) -> None:
    """Report what a driver says of a job's progress."""
    more = {name: said[name] for name in ("parts", "seconds_left") if name in said}
    context.progress(said["done"], said["total"], unit=said["unit"], note=said["note"], **more)


def _write_line(process: subprocess.Popen[str], line: str) -> None:
    """Say something to a driver; one that is gone is told of by its missing answer."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(f"{line}\n")
        process.stdin.flush()


def _record_classes(process: subprocess.Popen[str], kill: Callable[[], None]) -> None:
    """Have the driver write the archive of classes, and wait until it has, or until it is killed for taking too long."""
    assert process.stdin is not None and process.stdout is not None
    killer = threading.Timer(_RECORDING_S, kill)
    killer.daemon = True
    killer.start()
    _write_line(process, RECORD_CLASSES)
    with contextlib.suppress(BrokenPipeError):
        for line in process.stdout:
            if _said(line).get("event") == "recorded":
                break
    killer.cancel()


def _hand_over(path: Path, on_left_out: Callable[[pa.RecordBatch], None]) -> None:
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
        for batch in stream:
            on_left_out(batch)
    path.unlink()


def _end_process(process: subprocess.Popen[str]) -> None:
    """Close its standard input, which ends it; kill it and its JVM when it has not ended in time."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(_CANCEL_GRACE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
    process.stdout.close()


def _ended_without_a_word(log: str) -> bool:
    """Whether the JVM ended before Python could talk to it, and did not say why, as when it is killed."""
    before, met, _ = log.partition("Traceback (most recent call last)")
    return bool(met) and "JAVA_GATEWAY_EXITED" in log and _WORDS_OF_JAVA.search(before) is None


def _last_words(log: str) -> str:
    """The first exception in the driver's log, from which the others follow, else its last lines."""
    return _EXCEPTION.findall(log)[0] if _EXCEPTION.search(log) else "\n".join(log.splitlines()[-5:]).strip()


def _said(line: str) -> Mapping[str, Any]:
    """The driver's message; empty if a library printed to standard output."""
    try:
        said = json.loads(line)
    except json.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}
