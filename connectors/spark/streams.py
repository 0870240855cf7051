"""A job as a query of Structured Streaming: micro-batches of the topics, each written once where the target can know it."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from connectors.spark import files, topic_output, topics
from connectors.spark.checkpoints import Checkpoint, Offsets
from connectors.spark.job import Input, Job, Stream
from connectors.spark.newest_schemas import NewestSchemas
from connectors.spark.tables import writing
from connectors.spark.tables.commits import Committed
from connectors.spark.views import result, views_of
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

__all__ = ["StreamRun"]

_LOOK_S: Final = 0.5
_FULL: Final = "No space left on device"
_REMEMBERED: Final = 200
"""More than Spark keeps of a query's progress."""


class _Leaving(Exception):
    """The query is to end: this micro-batch is not begun, and the next query begins with it."""


class _NewSchema(_Leaving):
    """A schema was registered since the query began, which doesn't know its fields. The next query does."""


class StreamRun:
    """A query from its start to its end. ``say`` tells of its progress, with the offsets up to which it is done (``ends``).

    ``leave_out`` gets the records of a micro-batch that can't be decoded, as frames with the columns ``LEFT_OUT``, and returns their
    number when the worker is done with them.
    """

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        say: Callable[..., None],
        leave_out: Callable[[Sequence[DataFrame]], int],
    ) -> None:
        assert job.stream is not None
        self._spark, self._job, self._stream, self._say, self._leave_out = spark, job, job.stream, say, leave_out
        self._checkpoint = Checkpoint(spark, job.stream.checkpoint)
        self._schemas = NewestSchemas(job)
        self._ending, self._known = threading.Event(), threading.Event()
        self._query: StreamingQuery | None = None
        self._error: Exception | None = None
        self._ends: dict[str, dict[str, int]] = {}
        self._seen: deque[tuple[Any, ...]] = deque(maxlen=_REMEMBERED)
        self._rows_in = self._rows_out = self._batches = self._left_out = 0
        self._keys: topics.Topic | None = None

    @property
    def ended_early(self) -> bool:
        return self._ending.is_set()

    def end_soon(self) -> None:
        """Have the query end after the micro-batch that it is in. From any thread, also from a signal's handler."""
        self._ending.set()

    def run(self) -> dict[str, Any]:
        """Returns when the query has read what there was when it began, where it ends by itself, or when it was told to end. Raises what
        failed it."""
        until = _log_offsets(self._job, latest=True) if self._stream.ends else {}
        with contextlib.closing(self._schemas), self._naming_the_checkpoint():
            while self._run_query(until):
                pass
        return {
            "rows": {input_.topic: 0 for input_ in self._job.inputs},
            "in": self._rows_in,
            "out": self._rows_out,
            "batches": self._batches,
            "ends": self._ends,
            "files": 0,
            "left_out": self._left_out,
            "records": None,
            "note": "",
        }

    @contextlib.contextmanager
    def _naming_the_checkpoint(self) -> Iterator[None]:
        """Spark does not say which disk is full. Outside of the writing of a micro-batch it is the log in the checkpoint that fails."""
        try:
            yield
        except Exception as error:
            if self._error is None and _FULL in str(error):
                raise UsageError(
                    f"no space is left for the checkpoint {self._stream.checkpoint}: make room there, and restart the task"
                ) from error
            raise

    def _run_query(self, until: Offsets) -> bool:
        """Whether another query is to go on, with schemas that are newer."""
        self._schemas.look()
        frame = self._frame(until)
        stream = self._stream
        writer = frame.writeStream.queryName(self._job.connector or self._job.name)
        writer = writer.outputMode(stream.output_mode).option("checkpointLocation", stream.checkpoint)
        writer = writer.trigger(processingTime=f"{0 if stream.ends else stream.interval_ms} milliseconds")
        self._error = None
        self._known.clear()
        query = self._query = writer.foreachBatch(self._write).start()
        self._known.set()
        drained = threading.Event()
        if stream.ends:
            threading.Thread(target=_drain, args=(query, drained), name="drain a stream", daemon=True).start()
        try:
            while not self._over(query) and not drained.is_set():
                self._tell(query)
                if self._ending.is_set() and not query.status["isTriggerActive"]:
                    break
        finally:
            query.stop()
            self._tell(query)
        return isinstance(self._error, _NewSchema)

    def _over(self, query: StreamingQuery) -> bool:
        """Whether the query has ended; waits a moment for that. Raises what failed it."""
        from pyspark.errors import StreamingQueryException

        try:
            return bool(query.awaitTermination(_LOOK_S))
        except StreamingQueryException:
            if isinstance(self._error, _Leaving):
                return True
            if self._error is not None:
                raise self._error from None
            raise

    def _frame(self, until: Offsets) -> DataFrame:
        """The result as a stream. The checkpoint is looked at, so that a bound of micro-batches counts from there.

        Spark knows no end that a source of Python could be told of (``Trigger.AvailableNow`` runs a single micro-batch of it, and none
        for what the watermark closes): the source itself reads no further.
        """
        newest = self._checkpoint.newest()
        if newest < 0:
            self._checkpoint.begin(_log_offsets(self._job, latest=self._stream.starting == "latest"))
        start = self._checkpoint.start() if newest < 1 else {}
        planned = self._checkpoint.ends(newest) if self._stream.max_offsets else {}
        inputs = [
            dataclasses.replace(
                i,
                starts=dict(start.get(i.topic, {})),
                planned=_of_topic(planned, i.topic),
                until=_of_topic(until, i.topic),
            )
            if not i.lookup
            else i
            for i in self._job.inputs
        ]
        read = {input_.topic: topics.read(self._spark, self._job, input_) for input_ in inputs}
        self._keys = next(read[input_.topic] for input_ in inputs if not input_.lookup)
        views = views_of(inputs, read)
        if self._stream.watermark_column:
            views = _watermarked(views, self._stream)
        made = result(self._spark, self._job, views)
        if not made.isStreaming:
            raise UsageError(
                "the result is no stream: spark.mode "
                f"{'available-now' if self._stream.ends else 'continuous'} needs one of {', '.join(views)} in it"
            )
        return made

    def _write(self, batch: DataFrame, number: int) -> None:
        """Write a micro-batch. Called by Spark, in a thread of its own."""
        try:
            if self._ending.is_set():
                raise _Leaving
            self._known.wait()
            if self._schemas.changed():
                raise _NewSchema
            written = self._deliver(batch, self._run_id(number))
            if self._job.tolerates_errors:
                self._hand_over(number, certain=written)
        except Exception as error:
            self._error = error
            raise

    def _hand_over(self, number: int, *, certain: bool) -> None:
        """Hand over the records of the micro-batch that can't be decoded, before Spark notes that it is done. They are read anew, unless
        it is certain that there are none: those of a micro-batch that is there already were not counted."""
        failed = [i for i in self._streamed() if not certain or self._failures(i) > 0]
        if not failed:
            return
        ends = self._checkpoint.ends(number)
        before = self._checkpoint.ends(number - 1) if number else {}
        starts = before or self._checkpoint.start()
        job = dataclasses.replace(self._job, stream=None)
        frames = []
        for input_ in failed:
            stops = ends.get(input_.topic, {})
            first = starts.get(input_.topic, {})
            of_batch = {n: min(first.get(n, 0), stop) for n, stop in stops.items()}
            read = topics.read(self._spark, job, dataclasses.replace(input_, starts=of_batch, stops=stops))
            assert read.bad is not None
            frames.append(read.bad)
        self._left_out += self._leave_out(frames)

    def _streamed(self) -> list[Input]:
        return [input_ for input_ in self._job.inputs if not input_.lookup]

    def _failures(self, input_: Input) -> int:
        """How many records of the topic the micro-batch could not decode."""
        assert self._query is not None
        observed = self._query._jsq.streamingQuery().lastExecution().observedMetrics()
        row = observed.get(topics.failures_of(input_))
        return int(row.get().getLong(0)) if row.isDefined() else 0

    def _run_id(self, number: int) -> str:
        """The same for a micro-batch that is repeated, and another for each other one. The query's id is in its checkpoint."""
        assert self._query is not None
        return hashlib.sha256(f"{self._query.id}/{number}".encode()).hexdigest()[:16]

    def _deliver(self, batch: DataFrame, run_id: str) -> bool:
        """Write the rows; False: the target has them already."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        maintenance = dataclasses.replace(self._job.maintenance, now=time.time())
        job = dataclasses.replace(self._job, run_id=run_id, maintenance=maintenance)
        spark, observed = batch.sparkSession, Observation()
        frame = batch.observe(observed, f.count(f.lit(1)).alias("rows"))
        if job.topic is not None:
            if not topic_output.write(job, frame, run_id):
                return False
        elif job.into_table:
            table = writing.table_of(spark, job, job.table or job.path)
            before = table.committed() if table.exists() else Committed()
            if before.run_id == run_id:
                return False
            assert self._keys is not None
            rows = (
                writing.Rows([frame], self._keys.keys, self._keys.unavailable) if job.merges else writing.Rows([frame])
            )
            writing.write(spark, job, table, rows, inputs=[], before=before)
        else:
            files.write(spark, job, [frame], job.path, wanted=lambda: _counted(spark, observed) > 0)
        self._rows_out += _counted(spark, observed)
        return True

    def _tell(self, query: StreamingQuery) -> None:
        """Say what has been done since the last time, if anything has."""
        rate = None
        for text in [progress.json for progress in query.recentProgress]:
            progress = json.loads(text)
            if "addBatch" not in progress["durationMs"] or (key := _key_of(progress)) in self._seen:
                continue
            self._seen.append(key)
            rows = progress["numInputRows"]
            self._rows_in, self._batches = self._rows_in + rows, self._batches + 1
            rate = rows / max(0.001, progress["durationMs"].get("triggerExecution", 0) / 1000)
            for source in progress["sources"]:
                for topic, offsets in (source["endOffset"] or {}).items():
                    self._ends[topic] = self._ends.get(topic, {}) | offsets
        if rate is not None:
            left_out = f", {self._left_out} left out" if self._left_out else ""
            note = f"{self._batches} micro-batches, {self._rows_out} rows written{left_out}, {rate:.0f} rows/s"
            self._say(event="progress", done=self._rows_in, total=None, unit="rows", note=note, ends=self._ends)


def _watermarked(views: Mapping[str, DataFrame], stream: Stream) -> dict[str, DataFrame]:
    """The streams that have the column, with a watermark on it. Raises UsageError where none has."""
    column = stream.watermark_column
    having = [name for name, frame in views.items() if frame.isStreaming and column in frame.columns]
    if not having:
        there = "; ".join(f"{name} ({', '.join(frame.columns)})" for name, frame in views.items())
        raise UsageError(f"spark.watermark.column is {column}, and no topic has that column: {there}")
    return {
        name: frame.withWatermark(column, stream.watermark_delay) if name in having else frame
        for name, frame in views.items()
    }


def _key_of(progress: Mapping[str, Any]) -> tuple[Any, ...]:
    return progress["runId"], progress["batchId"], progress["timestamp"]


def _counted(spark: SparkSession, observed: Any) -> int:
    """The rows that were written; 0 where Spark saw no need to compute any."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    row = observed._jo.getRowOrEmpty()
    return int(observed.get["rows"]) if not row.isEmpty() and row.get().length() else 0


def _log_offsets(job: Job, *, latest: bool) -> dict[str, dict[str, int]]:
    """The ends of the streams' topics as they are now, or their first offsets."""
    from broker.client import ClientConfig, TopicPartition
    from broker.client.blocking import Admin

    names = [input_.topic for input_ in job.inputs if not input_.lookup]
    rest = {name: value for name, value in job.kafka.items() if name != "bootstrap.servers"}
    config = ClientConfig(job.kafka["bootstrap.servers"], rest)
    with Admin(config) as admin:
        described = admin.describe_topics(names)
        partitions = [TopicPartition(name, p.partition) for name in names for p in described[name].partitions]
        if latest:
            offsets = admin.end_offsets(partitions, committed=config.reads_committed)
        else:
            offsets = admin.beginning_offsets(partitions)
        ends: dict[str, dict[str, int]] = {}
        for partition, end in offsets.items():
            ends.setdefault(partition.topic, {})[str(partition.partition)] = end
    return ends


def _of_topic(offsets: Offsets, topic: str) -> dict[str, dict[str, int]]:
    return {topic: dict(offsets[topic])} if topic in offsets else {}


def _drain(query: StreamingQuery, drained: threading.Event) -> None:
    """Wait until the query has read everything and closed what is to be closed. It fails where the query does, which others tell of."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    with contextlib.suppress(Py4JError, PySparkException):
        query.processAllAvailable()
        drained.set()
