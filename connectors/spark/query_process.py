"""The process of a query (``connectors.spark.query``): a Spark that runs it and prints its result.

``python -m connectors.spark.query_process``: standard input is a ``Query`` as JSON. Standard output is an object as JSON:
``{"columns": ["id"], "rows": [[1]], "more": false}``, ``more`` where the result has more rows than were asked for, or
``{"error": "..."}``. Spark's own words go to standard error.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.client import ClientConfig, TopicPartition
from broker.client.blocking import Admin
from connectors.spark import topics
from connectors.spark.class_archive import record_classes
from connectors.spark.failures import first_words
from connectors.spark.job import Input, Job
from connectors.spark.query import Query
from connectors.spark.query_guard import SETTINGS, require_query
from registry.client import RegistryClient
from registry.client.errors import NotFound
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import TidegateError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FORMATS: Final = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json-schema"}
"""The format of a topic's values by the type of their schema."""
_SAMPLE: Final = 1000
"""How many records of a topic without a schema are looked at for the columns of their JSON."""


def main() -> int:
    query = Query(**json.loads(sys.stdin.read()))
    try:
        spark = _session()
        servers = query.kafka["bootstrap.servers"]
        require_query(spark, query.sql)
        with Admin(ClientConfig(servers, {k: v for k, v in query.kafka.items() if k != "bootstrap.servers"})) as admin:
            frame = _Topics(spark, query, admin).queried()
        table = frame.limit(query.rows + 1).toArrow()
    except Exception as error:  # noqa: BLE001 - whatever ended the query is told in a line; the rest is in the log
        print(error, file=sys.stderr)
        said: dict[str, Any] = {"error": str(error) if isinstance(error, TidegateError) else first_words(error)}
    else:
        columns = [column.to_pylist()[: query.rows] for column in table.columns]
        rows = [list(row) for row in zip(*columns, strict=True)]
        said = {"columns": table.column_names, "rows": rows, "more": len(table) > query.rows}
    text = json.dumps(said, default=_as_json)
    if query.most_bytes is not None and len(text) > query.most_bytes:
        size = f"{len(text) / 1e6:.1f} MB, and {query.most_bytes / 1e6:g} MB are taken"
        text = json.dumps({"error": f"the result has {size}: ask for fewer rows or columns"})
    print(text, flush=True)
    if "error" not in said:
        with contextlib.suppress(Exception):  # the next query starts slowly, that is all
            record_classes(spark)
    return 0


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return str(value)


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.appName("tidegate sql")
        .config(map=dict(SETTINGS))
        .master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(Path("warehouse").absolute()))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("WARN")
    return session


class _Topics:
    """The topics of a cluster, each a view once the query asks for it."""

    def __init__(self, spark: SparkSession, query: Query, admin: Admin) -> None:
        self._spark, self._query, self._admin = spark, query, admin
        names = admin.list_topics()
        self._by_view = {re.sub(r"\W", "_", name): name for name in names} | {name: name for name in names}

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
                    raise
                known.add(view)
                self._frame(view).createOrReplaceTempView(f"`{view}`")

    def _frame(self, view: str) -> DataFrame:
        topic = self._by_view.get(view)
        if topic is None:
            near = nearest_name(view, self._by_view)
            meant = f"; is {near} meant?" if near is not None else ""
            raise UsageError(f"there is no topic {view}{meant} (`tidegate topics list` lists them)")
        partitions = [
            TopicPartition(topic, p.partition) for p in self._admin.describe_topics([topic])[topic].partitions
        ]
        starts, stops = self._admin.beginning_offsets(partitions), self._admin.end_offsets(partitions)
        format_, schema = self._schema_of(topic), None
        if format_ == "string":
            head = {p: min(stops[p], starts[p] + _SAMPLE) for p in partitions}
            schema = self._columns_of(self._read(topic, starts, head, "string", None))
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

    def _columns_of(self, frame: DataFrame) -> str | None:
        """The columns, as DDL, of values that are JSON objects; None of others."""
        texts = [row.value for row in frame.select("value").limit(_SAMPLE).collect()]
        try:
            objects = bool(texts) and all(isinstance(json.loads(text), dict) for text in texts)
        except ValueError:
            return None
        if not objects:
            return None
        columns = self._spark.read.json(self._spark.sparkContext.parallelize(texts)).schema
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
        job = Job(
            run_id="sql", name="sql", inputs=[input_], sql=None, path="", format="", mode="", options={}, partition_by=[],
            files=0, file_bytes=0, metadata_columns=self._query.metadata_columns, master="", jars=[], tolerates_errors=False,
            conf={}, kafka=dict(self._query.kafka), registry=dict(self._query.registry),
        )  # fmt: skip
        return topics.read(self._spark, job, input_).frame


if __name__ == "__main__":
    sys.exit(main())
