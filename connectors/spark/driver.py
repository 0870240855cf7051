"""The Spark driver of bulk loads, run in a process of its own: reads jobs, prints progress, both as JSON lines.

``python -m connectors.spark.driver``: each line of standard input is the path of a ``Job``'s description; the first one's
master and configuration make the session, which the others share. Standard output carries one JSON object a line:
``{"event": "progress", "done": 3, "total": 8, "unit": "tasks", "note": "..."}``, and at a job's end
``{"event": "done", "rows": {"topic": n}, "files": n}`` or ``{"event": "failed", "message": "...", "passing": false}``,
``passing`` where the same job may succeed later; Spark's own words go to standard error. The driver ends with its standard
input; SIGTERM cancels the job first.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import sys
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tidegate.kit.files import write_whole

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Input", "Job", "main"]

MAX_POLL_RECORDS: Final = 20_000
"""Spark's Kafka reader takes 500 records a poll by default; this was half as fast again in reference measurements."""
_MOST_CAUSES: Final = 20
_PASSING: Final = frozenset(
    {
        "java.net.SocketException",
        "java.net.SocketTimeoutException",
        "java.net.UnknownHostException",
        "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
        "org.apache.hadoop.ipc.RetriableException",
        "org.apache.hadoop.ipc.StandbyException",
        "org.apache.hadoop.net.ConnectTimeoutException",
        "org.apache.kafka.common.errors.RetriableException",
    }
)
"""Exceptions of the JVM, and all below them, of a server that is away. ConnectException is a SocketException."""


@dataclass(frozen=True)
class Input:
    """A topic to read: offsets by partition, and the writers' schemas by registry id, newest last."""

    topic: str
    starts: dict[str, int]
    stops: dict[str, int]
    value_format: str
    value_schema: str | None = None
    writer_schemas: list[tuple[int, str]] = field(default_factory=list)

    @property
    def view(self) -> str:
        return re.sub(r"\W", "_", self.topic)


@dataclass(frozen=True)
class Job:
    """Everything the driver needs. A run that is repeated has the same ``run_id``: what the unfinished one left is replaced."""

    run_id: str
    name: str
    inputs: list[Input]
    sql: str | None
    path: str
    format: str
    partition_by: list[str]
    files: int
    metadata_columns: bool
    master: str
    jars: list[str]
    conf: dict[str, str]
    kafka: dict[str, str]

    def save(self, path: Path) -> None:
        write_whole(path, json.dumps(asdict(self)), mode=0o600)  # the Kafka settings may hold a password

    @classmethod
    def load(cls, path: Path) -> Job:
        document = json.loads(path.read_text())
        document["inputs"] = [Input(**item) for item in document["inputs"]]
        return cls(**document)


def main() -> int:
    """Run jobs until standard input ends."""
    spark: SparkSession | None = None
    for line in sys.stdin:
        job = Job.load(Path(line.strip()))
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
        rows, files = _run(spark, job)
    except Exception as error:  # noqa: BLE001 - whatever ended the job is told in one line, the rest is in the log
        print(error, file=sys.stderr)
        said: dict[str, Any] = {"event": "failed", "message": _first_words(error), "passing": _is_passing(error)}
    else:
        said = {"event": "done", "rows": rows, "files": files}
    ended.set()
    watcher.join()
    _say(**said)


def _cancel(spark: SparkSession, *_: object) -> None:
    """End the jobs, also on a cluster, and leave at once: nothing of them counts, and a slow goodbye helps nobody."""
    spark.sparkContext.cancelAllJobs()
    os._exit(143)


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def _first_words(error: Exception) -> str:
    description = getattr(error, "desc", None) or str(error)
    lines = [line.strip() for line in str(description).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return " | ".join([lines[0] if lines else type(error).__name__, *causes[-1:]])[:2000]


def _is_passing(error: Exception) -> bool:
    """Whether one of the JVM's exceptions behind it is of a kind that says: not now. A stage that failed has that of its last task."""
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


def _run(spark: SparkSession, job: Job) -> tuple[dict[str, int], int]:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    counts: dict[str, Observation] = {}
    frames: dict[str, DataFrame] = {}
    for input_ in job.inputs:
        counts[input_.topic] = Observation(input_.topic)
        frames[input_.topic] = _read(spark, job, input_).observe(counts[input_.topic], f.count(f.lit(1)).alias("rows"))
        frames[input_.topic].createOrReplaceTempView(input_.view)
    if job.sql:
        files = _write(spark, job, spark.sql(job.sql), job.path)
    else:
        files = sum(_write(spark, job, frame, job.path.replace("${topic}", topic)) for topic, frame in frames.items())
    return {topic: int(observation.get["rows"]) for topic, observation in counts.items()}, files


def _read(spark: SparkSession, job: Job, input_: Input) -> DataFrame:
    """The records of one topic as columns; tombstones are left out."""
    from pyspark.sql import functions as f

    reader = spark.read.format("kafka").option("kafka.max.poll.records", MAX_POLL_RECORDS)
    for name, value in job.kafka.items():
        reader = reader.option(f"kafka.{name}", value)
    records = (
        reader.option("assign", json.dumps({input_.topic: [int(p) for p in input_.starts]}))
        .option("startingOffsets", json.dumps({input_.topic: input_.starts}))
        .option("endingOffsets", json.dumps({input_.topic: input_.stops}))
        .option("failOnDataLoss", "true")
        .load()
        .where(f.col("value").isNotNull())
    )
    value = _value(input_)
    if input_.value_format == "string":
        columns: list[Column | str] = [value.alias("value")]
    else:
        records = records.withColumn("__value", value)
        columns = ["__value.*"]
    if job.metadata_columns:
        columns += [f.col(name).alias(f"__{name}") for name in ("topic", "partition", "offset", "timestamp")]
    return records.select(*columns)


def _value(input_: Input) -> Column:
    from pyspark.sql import functions as f

    if input_.value_format == "string":
        return f.col("value").cast("string")
    if input_.value_format == "json":
        return f.from_json(f.col("value").cast("string"), input_.value_schema or "", {"mode": "FAILFAST"})
    return _avro_value(input_)


def _avro_value(input_: Input) -> Column:
    """Decode by the writer's schema that each record names, into the newest one."""
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import from_avro

    reader = input_.writer_schemas[-1][1]
    body = f.expr("substring(value, 6)")
    schema_id = f.expr("CAST(conv(hex(substring(value, 2, 4)), 16, 10) AS INT)")
    unknown = f.raise_error(
        f.concat(
            f.lit("topic "), f.col("topic"), f.lit(" partition "), f.col("partition"), f.lit(" offset "), f.col("offset"),
            f.lit(": schema id "), schema_id, f.lit(" is not among the subject's versions"),
        )
    )  # fmt: skip
    decoded = unknown
    for id_, schema in reversed(input_.writer_schemas):
        value = from_avro(body, schema, {"avroSchema": reader, "mode": "FAILFAST"})
        decoded = f.when(schema_id == id_, value).otherwise(decoded)
    return decoded


def _write(spark: SparkSession, job: Job, frame: DataFrame, path: str) -> int:
    """Write to a folder aside, then move the files to their places under names that begin with the run's id.

    A run that was killed left files of the same id at most: they are deleted before the new ones move in.
    """
    staging = f"{path}/.staging-{job.run_id}"
    if job.files:
        frame = frame.repartition(job.files, *job.partition_by)
    elif job.partition_by:
        frame = frame.repartition(*job.partition_by)
    frame.write.mode("overwrite").format(job.format).partitionBy(*job.partition_by).save(staging)
    hadoop = spark._jvm.org.apache.hadoop.fs
    root = hadoop.Path(path)
    system = root.getFileSystem(spark._jsc.hadoopConfiguration())
    stem = f"part-{job.run_id}-"
    for old in _files(system, root):
        if old.getName().startswith(stem) and staging not in old.toString():
            system.delete(old, False)
    moved = 0
    base = hadoop.Path(staging)
    prefix = system.makeQualified(base).toString()
    for file in _files(system, base):
        if not file.getName().startswith("part-"):
            continue
        inner = file.getParent().toString().removeprefix(prefix).strip("/")
        target = hadoop.Path(root, inner) if inner else root
        system.mkdirs(target)
        ending = file.getName().partition(".")[2]
        if not system.rename(file, hadoop.Path(target, f"{stem}{moved:05d}.{ending}")):
            raise RuntimeError(f"could not move {file} to {target}: is there a file of that name?")
        moved += 1
    system.delete(base, True)
    return moved


def _files(system: Any, folder: Any) -> list[Any]:
    if not system.exists(folder):
        return []
    files, entries = [], system.listFiles(folder, True)
    while entries.hasNext():
        files.append(entries.next().getPath())
    return files


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.exit(main())
