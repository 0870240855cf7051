"""The Spark driver of bulk loads, run in a process of its own: reads jobs, prints progress, both as JSON lines.

``python -m connectors.spark.driver``: each line of standard input is the path of a ``Job``'s description; the first one's
master and configuration make the session, which the others share. Standard output carries one JSON object a line:
``{"event": "progress", "done": 3, "total": 8, "unit": "tasks", "note": "..."}``, and at a job's end
``{"event": "done", "rows": {"topic": n}, "files": n, "left_out": n, "records": null}`` or ``{"event": "failed", "message": "...", "passing": false}``,
``passing`` where the same job may succeed later, ``records`` a file with records that can't be decoded, as an Arrow stream; Spark's own words go to standard error. The driver ends with its standard
input; SIGTERM cancels the job first.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from connectors.spark import files, topics
from connectors.spark.failures import first_words, is_passing
from connectors.spark.job import LEFT_OUT, Job
from tidegate.kit.files import write_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["main"]

_ROWS_AT_ONCE: Final = 1000


def main() -> int:
    """Run jobs until standard input ends."""
    spark: SparkSession | None = None
    for line in sys.stdin:
        description = Path(line.strip())
        job = Job.load(description)
        description.unlink()  # it may hold a password
        if spark is None:
            spark = _session(job)
            signal.signal(signal.SIGTERM, functools.partial(_cancel, spark))
        _run_and_say(spark, job)
    if spark is not None:
        spark.stop()
    return 0


def _run_and_say(spark: SparkSession, job: Job) -> None:
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, ended), daemon=True)
    watcher.start()
    try:
        done = _run(spark, job)
    except Exception as error:  # noqa: BLE001 - whatever ended the job is told in one line, the rest is in the log
        print(error, file=sys.stderr)
        said: dict[str, Any] = {"event": "failed", "message": first_words(error), "passing": is_passing(error)}
    else:
        said = {"event": "done", **done}
    ended.set()
    watcher.join()
    _say(**said)


def _cancel(spark: SparkSession, *_: object) -> None:
    """End the jobs, also on a cluster, and leave at once: nothing of them counts, and a slow goodbye helps nobody."""
    spark.sparkContext.cancelAllJobs()
    os._exit(143)


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def _session(job: Job) -> SparkSession:
    from pyspark.sql import SparkSession

    defaults = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.host": "127.0.0.1" if job.master.startswith("local") else None,
        "spark.driver.bindAddress": "127.0.0.1" if job.master.startswith("local") else None,
        "spark.jars": ",".join(job.jars),
    }
    _write_defaults(Path("conf"), job.conf)
    builder = SparkSession.builder.appName(job.name).master(job.master)
    for name, value in defaults.items():
        if value is not None and name not in job.conf:
            builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session


def _write_defaults(folder: Path, conf: dict[str, str]) -> None:
    """Have Spark read what the connector sets from a file: what a session is built with stands in the command line of its JVM,
    where everybody on the machine reads it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    lines = []
    if conf_folder := os.environ.get("SPARK_CONF_DIR"):
        for file in Path(conf_folder).iterdir():
            if file.name == "spark-defaults.conf":
                lines.append(f"{file.read_text()}\n")
            elif not (folder / file.name).exists():
                (folder / file.name).symlink_to(file.resolve())
    lines += [f"{_escaped(name, _IN_NAMES)}={_escaped(value, _IN_VALUES)}\n" for name, value in conf.items()]
    write_whole(folder / "spark-defaults.conf", "".join(lines), mode=0o600)
    os.environ["SPARK_CONF_DIR"] = str(folder.resolve())


_IN_NAMES: Final = re.compile(r"[\\\s:=#!]")
_IN_VALUES: Final = re.compile(r"\\|\A\s|[\n\r\t\f]")
_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def _escaped(text: str, special: re.Pattern[str]) -> str:
    """As ``java.util.Properties`` reads it."""
    return special.sub(lambda match: _NAMED.get(match[0], f"\\{match[0]}"), text)


def _watch(spark: SparkSession, ended: threading.Event) -> None:
    """Tell twice a second how many of the active stages' tasks are done."""
    tracker = spark.sparkContext.statusTracker()
    said = None
    while not ended.wait(0.5):
        stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
        if not stages:
            continue
        done, total = sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)
        note = ", ".join(s.name.split(" at ")[0] for s in stages)
        if said != (done, total, note):
            said = (done, total, note)
            _say(event="progress", done=done, total=total, unit="tasks", note=note)


def _run(spark: SparkSession, job: Job) -> dict[str, Any]:
    read = {input_.topic: topics.read(spark, job, input_) for input_ in job.inputs}
    for input_ in job.inputs:
        read[input_.topic].frame.createOrReplaceTempView(input_.view)
    if job.sql:
        written = files.write(spark, job, [spark.sql(job.sql)], job.path)
    else:
        frames: dict[str, list[DataFrame]] = {}
        for name, topic in read.items():
            frames.setdefault(job.path.replace("${topic}", name), []).append(topic.frame)
        written = sum(files.write(spark, job, of_path, path) for path, of_path in frames.items())
    observed = {name: topic.observed.get for name, topic in read.items()}
    failed = [
        topic.bad
        for input_ in job.inputs
        if (topic := read[input_.topic]).bad is not None and observed[input_.topic]["bad"] and not input_.lookup
    ]
    return {
        "rows": {name: int(counts["rows"]) for name, counts in observed.items()},
        "files": written,
        "left_out": sum(int(counts["bad"]) for counts in observed.values()),
        "records": str(_saved(failed)) if failed else None,
    }


def _saved(frames: list[DataFrame]) -> Path:
    """The rows in a file of this machine, as an Arrow stream. They are read anew: usually there are none."""
    path = Path("left-out.arrow").absolute()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, LEFT_OUT) as stream:
        for frame in frames:
            rows = (row.asDict(recursive=True) for row in frame.toLocalIterator())
            while batch := list(itertools.islice(rows, _ROWS_AT_ONCE)):
                stream.write_batch(pa.RecordBatch.from_pylist(batch, LEFT_OUT))
    return path


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.exit(main())
