"""The Spark driver of bulk loads, run in a process of its own: reads jobs, prints progress, both as JSON lines.

``python -m connectors.spark.driver``: each line of standard input is the path of a ``Job``'s description; the first one's
master and configuration make the session, which the others share. Standard output carries one JSON object a line:
``{"event": "progress", "done": 3, "total": 8, "unit": "tasks", "note": "..."}``, and at a job's end
``{"event": "done", "rows": {"topic": n}, "files": n, "left_out": n, "records": null, "note": "", "lost": ""}`` or ``{"event": "failed", "message": "...", "passing": false}``,
``passing`` where the same job may succeed later, ``records`` a file with records that can't be decoded, as an Arrow stream; Spark's own words go to standard error.
A stream says ``{"event": "left out", "records": "..."}`` of a micro-batch, and goes on when it has read a line: the worker has them. The driver ends with its standard
input; that and SIGTERM cancel a job that runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import os
import queue
import shlex
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from connectors.spark import files, loading, topic_output, topics
from connectors.spark.class_archive import record_classes
from connectors.spark.executors import lost_executors, note_of
from connectors.spark.failures import first_words, is_passing
from connectors.spark.job import LEFT_OUT, RECORD_CLASSES, WARM, Input, Job
from connectors.spark.load import Load, described
from connectors.spark.properties_file import write_properties
from connectors.spark.streams import StreamRun
from connectors.spark.tables import writing
from connectors.spark.tables.commits import Committed
from connectors.spark.views import result, views_of
from connectors.spark.warming import warm
from connectors.spark.watching import watch
from pyspark_tidegate import DefaultSource
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["main"]

_ROWS_AT_ONCE: Final = 1000
_EXTENSIONS: Final = "spark.sql.extensions"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""Where ``transformWithState`` can have its state. A checkpoint that began with another one keeps it."""


def main() -> int:
    """Run jobs until standard input ends."""
    descriptions = _Descriptions()
    threading.Thread(target=descriptions.read, daemon=True).start()
    spark: SparkSession | None = None
    while (line := descriptions.next()) is not None:
        if line == RECORD_CLASSES:
            _record_classes(spark)
            continue
        description = Path(line.removeprefix(WARM))
        job = described(description)
        description.unlink()  # it may hold a password
        if spark is None:
            try:
                spark = _session(job)
            except Exception as error:
                if not is_passing(error):
                    raise  # the worker reads in the log what Java said
                _say(**_failed(error))
                return 1
            signal.signal(signal.SIGTERM, functools.partial(_end, spark))
        with descriptions.running(spark):
            if line.startswith(WARM):
                _warm_and_say(spark, job)
            else:
                _run_and_say(spark, job, descriptions)
    if spark is not None:
        spark.stop()
    return 0


class _Descriptions:
    """The lines of standard input. Where it ends in the middle of a job, the worker is gone, and the job is cancelled: the next
    worker repeats it."""

    def __init__(self) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._lock = threading.Lock()
        self._ended = False
        self._spark: SparkSession | None = None

    def read(self) -> None:
        for line in sys.stdin:
            self._lines.put(line.strip())
        with self._lock:
            self._ended = True
            if self._spark is not None:
                _cancel(self._spark)
        self._lines.put(None)

    def next(self) -> str | None:
        return self._lines.get()

    @contextlib.contextmanager
    def running(self, spark: SparkSession) -> Iterator[None]:
        with self._lock:
            if self._ended:
                _cancel(spark)
            self._spark = spark
        yield
        with self._lock:
            self._spark = None


def _run_and_say(spark: SparkSession, job: Job | Load, answers: _Descriptions) -> None:
    ended = threading.Event()
    watcher = threading.Thread(
        target=watch, args=(spark, ended, functools.partial(_say, event="progress")), daemon=True
    )
    if isinstance(job, Load) or job.stream is None:  # a stream tells of its micro-batches
        watcher.start()
    try:
        lost_before = lost_executors(spark)
        done = loading.run(spark, job) if isinstance(job, Load) else _run(spark, job, answers)
        lost = {id_: told for id_, told in lost_executors(spark).items() if id_ not in lost_before}
    except Exception as error:  # noqa: BLE001 - whatever ended the job is told in one line, the rest is in the log
        print(error, file=sys.stderr)
        said = _failed(error)
    else:
        said = {"event": "done", **done, "lost": note_of(lost)}
    ended.set()
    if watcher.is_alive():
        watcher.join()
    _say(**said)
    if said.get("ended_early"):
        os._exit(143)  # as asked


def _failed(error: Exception) -> dict[str, Any]:
    return {"event": "failed", "message": first_words(error), "passing": is_passing(error)}


def _warm_and_say(spark: SparkSession, job: Job | Load) -> None:
    try:
        warm(spark, job)
    except Exception as error:  # noqa: BLE001 - the first job takes longer, that is all
        print(error, file=sys.stderr)
    _say(event="done", records=None)


_streams: list[StreamRun] = []
"""The stream that runs, if one does."""


def _end(spark: SparkSession, *_: object) -> None:
    """End what runs: a stream after the micro-batch that it is in, a job at once."""
    for stream in _streams:
        stream.end_soon()
    if not _streams:
        _cancel(spark)


def _record_classes(spark: SparkSession | None) -> None:
    try:
        if spark is not None and spark.sparkContext.master.startswith("local"):
            record_classes(spark)
    except Exception as error:  # noqa: BLE001 - the next driver starts slowly, that is all
        print(error, file=sys.stderr)
    _say(event="recorded")


def _cancel(spark: SparkSession, *_: object) -> None:
    """End the jobs, also on a cluster, and leave at once: nothing of them counts, and a slow goodbye helps nobody."""
    spark.sparkContext.cancelAllJobs()
    os._exit(143)


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def _session(job: Job | Load) -> SparkSession:
    from pyspark.sql import SparkSession

    defaults = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.host": "127.0.0.1" if job.master.startswith("local") else None,
        "spark.driver.bindAddress": "127.0.0.1" if job.master.startswith("local") else None,
        "spark.jars": ",".join(job.jars),
    }
    if isinstance(job, Job) and job.stream is not None and job.function:
        defaults["spark.sql.streaming.stateStore.providerClass"] = _ROCKSDB
    defaults |= writing.session_settings(job)
    # From a file: the settings of a session's builder stand in the command line of its JVM, where everybody on the machine reads them.
    file = write_properties(Path("spark.conf"), job.conf)
    given = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {shlex.quote(str(file))} {given}"
    builder = SparkSession.builder.appName(job.name).master(job.master)
    for name, value in defaults.items():
        if value is not None and (name not in job.conf or name == _EXTENSIONS):
            builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    # Spark would find it by itself, and run it in other processes than sources that are registered (``warming``).
    session.dataSource.register(DefaultSource)
    return session


def _run(spark: SparkSession, job: Job, answers: _Descriptions) -> dict[str, Any]:
    if job.preview_rows:
        return {"records": None, "preview": _previewed(spark, job)}
    if job.stream is not None:
        return _run_stream(spark, job, answers)
    if job.into_table:
        return _run_into_tables(spark, job)
    read = {input_.topic: topics.read(spark, job, input_) for input_ in job.inputs}
    if job.topic is not None:
        return _run_into_topic(spark, job, read)
    written = sum(files.write(spark, job, frames, path) for path, (frames, _) in _targets(spark, job, read).items())
    return _done(job, read, files=written)


def _run_stream(spark: SparkSession, job: Job, answers: _Descriptions) -> dict[str, Any]:
    def leave_out(frames: Sequence[DataFrame]) -> int:
        path, count = _saved(frames)
        if count:
            _say(event="left out", records=str(path))
            if answers.next() is None:
                raise UsageError("the worker is gone")
        return count

    stream = StreamRun(spark, job, _say, leave_out)
    _streams.append(stream)
    try:
        return {**stream.run(), "ended_early": stream.ended_early}
    finally:
        _streams.remove(stream)


def _run_into_topic(spark: SparkSession, job: Job, read: Mapping[str, topics.Topic]) -> dict[str, Any]:
    """Where each run is one transaction, a run that is repeated may be there already."""
    written = topic_output.write(job, result(spark, job, views_of(job.inputs, read)), job.run_id)
    there = set[str]() if written else {input_.topic for input_ in job.inputs}
    return _done(job, read, there=there) | ({} if written else {"note": "the topic has the run already"})


def _run_into_tables(spark: SparkSession, job: Job) -> dict[str, Any]:
    """Each table gets what it lacks of the run: a run that is repeated may be in all of them already, or in some."""
    tables = {target: writing.table_of(spark, job, target) for target in _target_names(job)}
    before = {target: table.committed() if table.exists() else Committed() for target, table in tables.items()}
    if job.merges:
        inputs = [i if i.lookup else before[_target_of(job, i)].without_older(i) for i in job.inputs]
        job = dataclasses.replace(job, inputs=inputs)
    read = {input_.topic: topics.read(spark, job, input_) for input_ in job.inputs}
    notes, there = [], set[str]()
    for target, (frames, names) in _targets(spark, job, read).items():
        of_target = [i for i in job.inputs if not i.lookup and i.topic in names]
        if before[target].run_id == job.run_id:
            there |= names
            notes.append(f"{target} has the run already")
            continue
        rows = _rows(job, {name: read[name] for name in names}, frames)
        notes.append(writing.write(spark, job, tables[target], rows, inputs=of_target, before=before[target]))
        _say(event="progress", done=1, total=1, unit="commits", note=f"committed to {target}")
    return _done(job, read, there=there) | {"note": "; ".join(note for note in notes if note)}


def _previewed(spark: SparkSession, job: Job) -> list[str]:
    """For each target its columns, its first rows, Spark's plan, and what would be done with a table. Nothing is written."""
    read = {input_.topic: topics.read(spark, job, input_) for input_ in job.inputs}
    shown = []
    for target, (frames, names) in _targets(spark, job, read).items():
        if job.into_table:
            rows = _rows(job, {name: read[name] for name in names}, frames)
            frame, statements = writing.preview(job, writing.table_of(spark, job, target), rows)
        else:
            frame, statements = functools.reduce(lambda left, right: left.unionByName(right, True), frames), []
        explained = spark._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "simple")
        parts = {
            "before": statements,
            "columns": [f"{name} {type_.upper()}" for name, type_ in frame.dtypes],
            "rows": frame.toJSON().take(job.preview_rows),
            "plan": [line for line in explained.splitlines() if line.strip()],
        }
        told = [f"{part}:\n" + "\n".join(f"  {line}" for line in lines) for part, lines in parts.items() if lines]
        shown.append("\n".join([target, *told]))
    return shown


def _target_of(job: Job, input_: Input) -> str:
    if job.topic is not None:
        return job.topic.topic
    return job.table.replace("${topic}", input_.view) or job.path.replace("${topic}", input_.topic)


def _target_names(job: Job) -> list[str]:
    return list(dict.fromkeys(_target_of(job, input_) for input_ in job.inputs if not input_.lookup))


def _targets(
    spark: SparkSession, job: Job, read: Mapping[str, topics.Topic]
) -> dict[str, tuple[list[DataFrame], set[str]]]:
    """The frames of each target, and the topics they are made of."""
    of_run = [input_ for input_ in job.inputs if not input_.lookup]
    if job.has_one_result:
        frames = [result(spark, job, views_of(job.inputs, read))]
        return {_target_of(job, of_run[0]): (frames, {input_.topic for input_ in of_run})}
    targets: dict[str, tuple[list[DataFrame], set[str]]] = {}
    for input_ in of_run:
        frames, names = targets.setdefault(_target_of(job, input_), ([], set()))
        frames.append(read[input_.topic].frame)
        names.add(input_.topic)
    return targets


def _rows(job: Job, of_topics: Mapping[str, topics.Topic], frames: Sequence[DataFrame]) -> writing.Rows:
    """The rows of a table, with the columns that tell them apart. Raises UsageError where these differ between topics."""
    if not job.merges:
        return writing.Rows(frames)
    first, *others = sorted(of_topics)
    keys = list(of_topics[first].keys)
    different = next((name for name in others if list(of_topics[name].keys) != keys), None)
    if different is not None:
        raise UsageError(
            f"the records of {first} have the key ({', '.join(keys)}) and those of {different} "
            f"({', '.join(of_topics[different].keys)}): set spark.merge.keys, or give each topic a table"
        )
    return writing.Rows(frames, keys, max(topic.unavailable for topic in of_topics.values()))


def _done(job: Job, read: Mapping[str, topics.Topic], *, files: int = 0, there: Collection[str] = ()) -> dict[str, Any]:
    """The members of the message at the job's end. Topics that are ``there``, in their table, and topics that Spark has not counted are read once more for
    what can't be decoded alone."""
    counts = {name: None if name in there else topic.counts() for name, topic in read.items()}
    frames = {
        input_.topic: topic.bad
        for input_ in job.inputs
        if (topic := read[input_.topic]).bad is not None and counts[input_.topic] != (0, 0) and not input_.lookup
    }
    failed = [bad for name, bad in frames.items() if (counted := counts[name]) is None or counted[1]]
    path, saved = _saved(failed) if failed else (None, 0)
    counted_bad = {name: counted[1] for name, counted in counts.items() if counted is not None}
    return {
        "rows": {name: 0 if counted is None else counted[0] for name, counted in counts.items()},
        "files": files,
        "left_out": saved + sum(bad for name, bad in counted_bad.items() if name not in frames),
        "records": None if path is None else str(path),
        "note": "",
    }


def _saved(frames: Sequence[DataFrame]) -> tuple[Path, int]:
    """The rows in a file of this machine, as an Arrow stream, and their number. They are read anew: usually there are none."""
    path, count = Path("left-out.arrow").absolute(), 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, LEFT_OUT) as stream:
        for frame in frames:
            rows = (row.asDict(recursive=True) for row in frame.toLocalIterator())
            while batch := list(itertools.islice(rows, _ROWS_AT_ONCE)):
                stream.write_batch(pa.RecordBatch.from_pylist(batch, LEFT_OUT))
                count += len(batch)
    return path, count


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.exit(main())
