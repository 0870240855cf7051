"""The Spark pipeline: a project of Spark Declarative Pipelines, run by ``spark-pipelines`` when its topics have new records."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final

from connect.api import (
    ConnectError,
    JobTask,
    OffsetRange,
    Problem,
    RecordBatch,
    RetriableConnectError,
    SinkConnector,
    get_logger,
)
from connectors.spark.cancelling import cancelling
from connectors.spark.java import environment, find_java
from connectors.spark.pipeline_config import SparkPipelineConfig
from connectors.spark.properties_file import write_properties

__all__ = ["SparkPipelineConnector", "SparkPipelineTask"]

logger = get_logger(__name__)

_NEEDED: Final = ("grpc", "grpc_status", "google.rpc", "pandas", "yaml", "zstandard")
"""The packages that ``pyspark[pipelines]`` brings."""
_TOLD: Final = re.compile(r"^\d{4}-\d\d-\d\d \S+: (.+)$")
"""A line of ``spark-pipelines`` about the run."""
_FAILED: Final = re.compile(r"^(?:(?:[\w.]+\.)?\w*(?:Exception|Error): |[a-z]\w*(?:\.\w+)*\.[A-Z]\w+: |.*\bFAILED\b)")
"""A line with the class of an error, also one without such an ending (``broker.errors.UnknownTopicOrPartition``), or a flow's end."""
_GOES_ON: Final = ("Traceback (most recent call last):", "terminated with:")
"""Ends of lines whose error is told in those that follow."""
_PORT_TAKEN: Final = "java.net.BindException"
_MOST_WORDS: Final = 2000
_GRACE_S: Final = 5
_DRY_RUN_S: Final = 60.0
"""Less than a worker gives a preview: it then ends the process that runs it, and the JVM would be left."""


class SparkPipelineTask(JobTask[SparkPipelineConfig]):
    """Runs the project and waits for its end.

    The project reads its topics by itself, from its own checkpoint. A run that is repeated reads what the last one did not finish, so the
    offsets that the runtime commits after a run only say when there is something to do.
    """

    _process: subprocess.Popen[str] | None = None

    def run(self, ranges: Sequence[OffsetRange], run_id: str) -> None:
        records, told = sum(range_.stop - range_.start for range_ in ranges), "the project ran"
        for told in self._told("run"):
            logger.info("pipeline", connector=self.context.connector, told=told)
            self.context.progress(0, records, unit="records", note=told)
        self.context.progress(records, records, unit="records", note=told)

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        """The lines of ``spark-pipelines dry-run``: Spark loads the project and resolves its tables and flows, and runs none."""
        del batches  # a run reads what its checkpoint says
        yield f"the project {self.config.spec} by Spark on {self.config.remote}; a dry run says:"
        limit = threading.Timer(_DRY_RUN_S, self.context.stopping.set)
        limit.daemon = True
        limit.start()
        try:
            yield from self._told("dry-run")
        finally:
            limit.cancel()

    def cancel(self) -> None:
        if (process := self._process) is not None:
            _kill(process, signal.SIGKILL)

    def _told(self, command: str) -> Iterator[str]:
        """Run ``spark-pipelines`` with this command; its lines about the run. Raises ConnectError with the words of what failed."""
        with tempfile.TemporaryDirectory(prefix="tidegate-spark-") as folder:
            yield from self._lines(command, Path(folder))

    def _lines(self, command: str, scratch: Path) -> Iterator[str]:
        config = self.config
        write_properties(scratch / "spark.conf", {"spark.ui.enabled": "false"} | config.conf)
        spec = importlib.util.find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        home = Path(spec.origin).parent
        program = [str(home / "bin" / "spark-pipelines"), command, "--spec", config.spec, "--remote", config.remote]
        variables = environment(find_java(scratch), scratch, local=config.remote.startswith("local"))
        process = subprocess.Popen(
            [*program, "--properties-file", str(scratch / "spark.conf")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=variables | {"SPARK_HOME": str(home)},
            cwd=scratch,
            start_new_session=True,
        )
        self._process = process
        assert process.stdout is not None

        def end(ended: threading.Event) -> bool:
            _kill(process, signal.SIGTERM)
            if not ended.wait(_GRACE_S):
                _kill(process, signal.SIGKILL)
            return True

        lines: deque[str] = deque(maxlen=201)
        try:
            with cancelling(self.context.stopping, end):
                for line in process.stdout:
                    lines.append(line.rstrip())
                    if (found := _TOLD.match(line)) is not None:
                        yield found[1].strip()
                status = process.wait()
        finally:
            self._process = None
            _kill(process, signal.SIGKILL)
            process.wait()
            process.stdout.close()
        if self.context.stopping.is_set():
            raise ConnectError("the run of the pipeline was cancelled")
        if status < 0 or status == 128 + signal.SIGKILL:
            raise RetriableConnectError("spark-pipelines was killed")
        if status and any(_PORT_TAKEN in line for line in lines):
            raise RetriableConnectError(
                "another Spark Connect server has the port, 15002 by default: its run has to end first"
            )
        if status:
            raise ConnectError(f"the pipeline failed: {_words(lines)}")


class SparkPipelineConnector(SinkConnector[SparkPipelineConfig]):
    """Runs a project of Spark Declarative Pipelines in jobs that the worker starts, watches and can cancel."""

    config_class: ClassVar[type[SparkPipelineConfig]] = SparkPipelineConfig
    task_class: ClassVar[type[SparkPipelineTask]] = SparkPipelineTask

    @classmethod
    def check(cls, config: SparkPipelineConfig) -> Iterable[Problem]:
        if not Path(config.spec).is_file():
            yield Problem("spark.pipeline.spec", f"spark.pipeline.spec is {config.spec}: there is no such file here")
        missing = [name for name in _NEEDED if not _has(name)]
        if missing or not _has("pyspark.pipelines"):
            reason = f"{missing[0]} is missing" if missing else "this pyspark has no pipelines"
            yield Problem(
                "connector.class", f"spark-pipelines can't run: {reason} (pip install 'pyspark[pipelines]==4.1.1')"
            )


def _has(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _kill(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """With all that it has started: the shell, Python and the JVM are a group of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _words(lines: Collection[str]) -> str:
    """The words about the failure: the last of the lines that name an error, else the last line."""
    errors = [line.strip() for line in lines if _FAILED.match(line.strip()) and not line.rstrip().endswith(_GOES_ON)]
    if told := [found[1] for line in errors if (found := _TOLD.match(line))]:
        errors = [*told, *errors[-1:]]
    said = [line.strip() for line in lines if line.strip()]
    return " | ".join(dict.fromkeys(errors[-3:] or said[-1:] or ["it left no words"]))[:_MOST_WORDS]
