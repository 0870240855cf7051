"""The process of a query (``connectors.spark.query``): a Spark that runs it and prints its result.

``python -m connectors.spark.query_process``: standard input is a ``Query`` as JSON. Standard output is an object as JSON:
``{"columns": ["id"], "rows": [[1]], "more": false, "notes": []}``, ``more`` where the result has more rows than were asked for, or
``{"error": "..."}``. Lines before it tell what is being done: ``{"progress": "1 of 4 tasks"}``. Spark's own words go to standard error.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.client import ClientConfig, TopicPartition
from broker.client.blocking import Admin
from connectors.spark import topics
from connectors.spark.class_archive import record_classes
from connectors.spark.failures import first_words
from connectors.spark.job import Input, Job
from connectors.spark.query import Query
from connectors.spark.query_guard import SETTINGS, require_parsed, require_query
from connectors.spark.query_names import topics_named
from connectors.spark.watching import watch
from registry.client import RegistryClient
from registry.client.errors import NotFound
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import TidegateError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FORMATS: Final = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json-schema"}
"""The format of a topic's values by the type of their schema."""
_CONFIGURATION: Final = {
    **SETTINGS,
    "spark.app.name": "tidegate sql",
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
}
_SAMPLE: Final = 1000
"""How many records of a topic without a schema are looked at for the columns of their JSON."""


def main() -> int:
    query = Query(**json.loads(sys.stdin.read()))
    servers, properties = query.kafka["bootstrap.servers"], dict(query.kafka)
    del properties["bootstrap.servers"]
    try:
        with Admin(ClientConfig(servers, properties)) as admin:
            names = _Names(admin.list_topics())
            names.require_any(query.sql)
            _tell("starting Java")
            _require_known(query.sql, names)
            _tell("starting Spark")
            spark = _session()
            require_query(spark, query.sql)
            _tell("planning the query")
            topics_ = _Topics(spark, query, admin, names)
            frame = topics_.queried()
        limited = frame.limit(query.rows + 1)
        with _watched(spark):
            table = limited.toArrow()
        notes = topics_.notes(limited)
    except Exception as error:  # noqa: BLE001 - whatever ended the query is told in a line; the rest is in the log
        print(error, file=sys.stderr)
        said: dict[str, Any] = {"error": str(error) if isinstance(error, TidegateError) else first_words(error)}
    else:
        columns = [column.to_pylist()[: query.rows] for column in table.columns]
        rows = [list(row) for row in zip(*columns, strict=True)]
        said = {"columns": table.column_names, "rows": rows, "more": len(table) > query.rows, "notes": notes}
    text = json.dumps(said, default=_as_json)
    if query.most_bytes is not None and len(text) > query.most_bytes:
        size = f"{len(text) / 1e6:.1f} MB, and {query.most_bytes / 1e6:g} MB are taken"
        text = json.dumps({"error": f"the result has {size}: ask for fewer rows or columns"})
    print(text, flush=True)
    if "error" not in said:
        with contextlib.suppress(Exception):  # the next query starts slowly, that is all
            record_classes(spark)
    return 0


def _tell(note: str) -> None:
    print(json.dumps({"progress": note}), flush=True)


@contextlib.contextmanager
def _watched(spark: SparkSession) -> Iterator[None]:
    ended = threading.Event()

    def tell(**told: Any) -> None:
        _tell(f"{told['done']} of {told['total']} tasks")

    watcher = threading.Thread(target=watch, args=(spark, ended, tell), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()  # nothing of it comes after the answer


def _require_known(sql: str, names: _Names) -> None:
    """Refuse what is wrong whatever the topics hold, with Spark's own parser: its JVM is there seconds before Spark is.

    Raises what ``require_query`` raises, and UsageError for a name that is no topic. The session looks again: its settings are what
    counts. Placeholders, which they leave alone and a JVM without them replaces, are left to it.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.errors.exceptions.captured import install_exception_handler

    context: Any = SparkContext
    context._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(_CONFIGURATION.items())))
    install_exception_handler()
    if "${" not in sql:
        for name in require_parsed(context._jvm, sql):
            names.topic_of(name)


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return str(value)


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    warehouse = str(Path("warehouse").absolute())
    builder = SparkSession.builder.config(map=dict(_CONFIGURATION)).config("spark.sql.warehouse.dir", warehouse)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session


class _Names:
    """The names of topics, and of their views."""

    def __init__(self, names: Iterable[str]) -> None:
        known = list(names)
        self._by_view = {re.sub(r"\W", "_", name): name for name in known} | {name: name for name in known}

    def topic_of(self, view: str) -> str:
        """Raises UsageError for a name that is no topic."""
        topic = self._by_view.get(view)
        if topic is None:
            near = nearest_name(view, self._by_view)
            meant = f"; is {near} meant?" if near is not None else ""
            raise UsageError(f"there is no topic {view}{meant} (`tidegate topics list` lists them)")
        return topic

    def require_any(self, sql: str) -> None:
        """Raises UsageError for a query that names no topic that there is, so that its author need not wait for Spark."""
        named = topics_named(sql)
        if named and self._by_view.keys().isdisjoint(named):
            self.topic_of(named[0])


class _Topics:
    """The topics of a cluster, each a view once the query asks for it."""

    def __init__(self, spark: SparkSession, query: Query, admin: Admin, names: _Names) -> None:
        self._spark, self._query, self._admin, self._names = spark, query, admin, names
        self._frames: dict[str, DataFrame] = {}
        self._mixed: dict[str, str] = {}
        """Topics with too few JSON objects for columns, each with a sentence that says so."""

    def queried(self) -> DataFrame:
        """The result of the query. Raises UsageError for a name that is no topic."""
        from pyspark.errors import AnalysisException

        known: set[str] = set()
        while True:
            try:
                return self._spark.sql(self._query.sql)
            except AnalysisException as error:
                view = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
                if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND" or not view or view in known:
                    if self._mixed and str(error.getCondition()).startswith("UNRESOLVED_COLUMN"):
                        raise UsageError(" ".join([first_words(error), *self._mixed.values()])) from error
                    raise
                known.add(view)
                topic = self._names.topic_of(view)
                if topic not in self._frames:
                    self._frames[topic] = self._frame(topic)
                self._frames[topic].createOrReplaceTempView(f"`{view}`")

    def notes(self, result: DataFrame) -> list[str]:
        """Sentences about the rows for the author of the query, once they were computed. An ``Observation`` does not look into
        subqueries; the metrics of the plan do."""
        metrics: Any = result._jdf.queryExecution().observedMetrics()
        counted = ((topic, metrics.apply(topic)) for topic in self._frames if metrics.contains(topic))
        return [_note_of(topic, row) for topic, row in counted if row.getAs("bad")]

    def _frame(self, topic: str) -> DataFrame:
        partitions = [
            TopicPartition(topic, p.partition) for p in self._admin.describe_topics([topic])[topic].partitions
        ]
        starts, stops = self._admin.beginning_offsets(partitions), self._admin.end_offsets(partitions)
        format_, schema = self._schema_of(topic), None
        if format_ == "string":
            head = {p: min(stops[p], starts[p] + _SAMPLE) for p in partitions}
            schema = self._columns_of(topic, self._read(topic, starts, head, "string", None))
        return self._read(topic, starts, stops, "json" if schema else format_, schema)

    def _schema_of(self, topic: str) -> str:
        """The format of the topic's values; ``string`` without a schema."""
        if not self._query.registry:
            return "string"
        with RegistryClient.from_properties(dict(self._query.registry)) as client:
            try:
                return _FORMATS[client.version(f"{topic}-value").schema_type]
            except NotFound:
                return "string"

    def _columns_of(self, topic: str, frame: DataFrame) -> str | None:
        """The columns, as DDL, of values that are JSON objects, most of them at least; None of others."""
        texts = [row.value or "" for row in frame.select("value").limit(_SAMPLE).collect()]
        objects = [text for text in texts if _is_object(text)]
        if len(objects) * 2 <= len(texts):
            if objects:
                self._mixed[topic] = (
                    f"{topic} has the column value alone, for of its first {len(texts):,} records {len(objects):,} are JSON objects: "
                    "columns are made where more than half are."
                )
            return None
        columns = self._spark.read.json(self._spark.sparkContext.parallelize(objects)).schema
        return str(columns.toDDL()) or None

    def _read(
        self,
        topic: str,
        starts: Mapping[TopicPartition, int],
        stops: Mapping[TopicPartition, int],
        format_: str,
        schema: str | None,
    ) -> DataFrame:
        input_ = Input(
            topic=topic,
            starts={str(partition.partition): offset for partition, offset in starts.items()},
            stops={str(partition.partition): offset for partition, offset in stops.items()},
            value_format=format_,
            value_schema=schema,
        )
        tolerates = not self._query.fails_on_undecodable
        job = Job(
            run_id="sql", name="sql", inputs=[input_], sql=None, path="", format="", mode="", options={}, partition_by=[],
            files=0, file_bytes=0, metadata_columns=self._query.metadata_columns, master="", jars=[],
            tolerates_errors=tolerates,
            conf={}, kafka=dict(self._query.kafka), registry=dict(self._query.registry),
        )  # fmt: skip
        return topics.read(self._spark, job, input_, keeps_errors=tolerates).frame


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _note_of(topic: str, counted: Any) -> str:
    bad, first = counted.getAs("bad"), counted.getAs("first_bad")
    them, are = ("1 record", "it is a row") if bad == 1 else (f"{bad:,} records", "they are rows")
    where = f"in partition {first.getAs('partition')} at offset {first.getAs('offset')}: {first.getAs('error')}"
    return f"{them} of {topic} can't be decoded: {are} of nulls. The first is {where}."


if __name__ == "__main__":
    sys.exit(main())
