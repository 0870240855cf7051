"""A transform as a project of Spark Declarative Pipelines (``spark-pipelines``, Spark 4.1)."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from connectors.spark.query_names import with_streams
from connectors.spark.transform_config import SparkTransformConfig
from tidegate.kit.config import parse
from tidegate.kit.errors import UsageError

__all__ = ["project_of"]

_FIELDS: Final = ("avro", "protobuf", "json-schema", "json")
"""Formats whose values have fields."""
_CARRIED: Final = frozenset(
    {
        "connector.class",
        "name",
        "spark.checkpoint.path",
        "spark.idle.timeout.ms",
        "spark.lookup.topics",
        "spark.master",
        "spark.mode",
        "spark.output.key.columns",
        "spark.output.key.format",
        "spark.output.topic",
        "spark.output.value.format",
        "spark.sql",
        "spark.starting.offsets",
        "spark.trigger.interval.ms",
        "spark.value.format",
        "spark.value.message",
        "spark.value.schema",
        "spark.warm.start",
        "spark.watermark.column",
        "spark.watermark.delay",
        "tasks.max",
        "topics",
    }
)
"""Keys that are in the project, or that say when and where the connector's own jobs run; keys of Spark and of schedules beside them."""
_CLASSES: Final = ("SparkTransform", "tidegate.spark.SparkTransformConnector", "SparkTransformConnector")
_TABLE: Final = '''
def table_of(topic):
    """The newest record of each key; records without a key are all there."""
    records = spark.read.format("tidegate").options(**options, **read, subscribe=topic).load()
    keyed = records.where("key IS NOT NULL").groupBy("key").agg(f.max_by("value", "offset").alias("value"))
    return keyed.select("value").unionAll(records.where("key IS NULL").select("value"))
'''


def project_of(name: str, given: Mapping[str, str], kafka: Mapping[str, str], registry: str) -> dict[str, str]:
    """The texts of a project by the paths of their files: what ``spark-pipelines run`` does then is what a run of the connector with
    spark.mode=available-now does, but at least once, and with a checkpoint of its own.

    ``kafka`` and ``registry`` are where the topics and their schemas are. Raises UsageError for a connector that a project can't be.
    """
    class_ = given.get("connector.class", "")
    if class_ not in _CLASSES:
        raise UsageError(
            f"the connector {name} is a {class_ or 'connector without a class'}: a SparkTransform can become a project"
        )
    own = {key: value for key, value in given.items() if key.startswith("spark.")}
    config = parse(SparkTransformConfig, own)
    topics = [topic.strip() for topic in given.get("topics", "").split(",") if topic.strip()]
    _require(name, given, config, topics)
    assert config.sql is not None
    lookups = config.lookup_topics
    views = {topic: re.sub(r"\W", "_", topic) for topic in [*topics, *lookups]}
    query = with_streams(config.sql, [views[topic] for topic in topics])
    read = {
        "value.format": config.value_format,
        "value.schema": config.value_schema or "",
        "value.message": config.value_message or "",
    }
    options = {f"kafka.{key}": value for key, value in kafka.items()} | (
        {"schema.registry.url": registry} if registry else {}
    )
    sink = {
        "topic": config.topic or "",
        "value.format": config.output_value_format,
        "key.format": config.key_format_of_output if config.output_key else "binary",
        "key.fields": ",".join(config.output_key),
    }
    select = '.select("value.*")' if config.value_format in _FIELDS else '.select("value")'
    parts = [
        f'"""The connector {name} as a pipeline. It reads {", ".join(views)} and writes {config.topic}."""\n',
        "from pyspark import pipelines as dp\nfrom pyspark.sql import SparkSession\nfrom pyspark.sql import functions as f\n",
        f"spark = SparkSession.active()\noptions = {_dict(options)}\nread = {_dict(read)}\n",
        *([_TABLE] if lookups else []),
    ]  # fmt: skip
    for topic, view in views.items():
        records = (
            f"table_of({json.dumps(topic)})"
            if topic in lookups
            else f'spark.readStream.format("tidegate").options(**options, **read, subscribe={json.dumps(topic)}, '
            f'startingOffsets="{config.starting}", columns="value").load()'
        )
        late = f".withWatermark({json.dumps(config.watermark_column)}, {json.dumps(config.watermark_delay)})"
        watermark = late if config.watermark_column and topic not in lookups else ""
        parts.append(
            f"\n@dp.temporary_view(name={json.dumps(view)})\ndef view_of_{view}():\n"
            f'    records = {records}\n    return records.where("value IS NOT NULL"){select}{watermark}\n'
        )
    flow = re.sub(r"\W", "_", name)
    made = f"\n@dp.append_flow(target={json.dumps(flow)}, name={json.dumps(flow)})\ndef flow_of_{flow}():\n"
    parts += [
        f'\ndp.create_sink({json.dumps(flow)}, "tidegate", options | {_dict(sink)})\n',
        f"{made}    return spark.sql(\n        {json.dumps(query)}\n    )\n",
    ]
    return {"spark-pipeline.yml": _spec(name, config), f"transformations/{flow}.py": "\n".join(parts)}


def _require(name: str, given: Mapping[str, str], config: SparkTransformConfig, topics: Sequence[str]) -> None:
    """Raises UsageError for what a project has nothing like."""
    reasons = {
        "spark.mode": config.run_mode == "batch" and "is batch, and a flow of a project is a stream: set available-now",
        "topics": not topics and "is missing: a project has no pattern of topics",
        "spark.function": config.function and "is set: write its call into the flow by hand, a project runs Python itself",
        "spark.output.topic": not config.topic and "is missing: a project of this command writes a topic",
        "spark.output.exactly.once": config.output_once and "is true, and a project writes at least once",
        "spark.stream.output.mode": config.output_mode != "append" and f"is {config.output_mode}, and a flow only appends",
        "spark.metadata.columns": config.metadata_columns and "is true: a project has the fields of values alone",
        "spark.value.schema": config.value_format == "json"
        and not (config.value_schema or "").lstrip().startswith("{")
        and "is no JSON Schema, which a project needs for spark.value.format=json",
        "spark.watermark.column": config.watermark_column
        and len(topics) > 1
        and f"is set, and there are {len(topics)} topics: a project says for each view whether it has the column",
    }  # fmt: skip
    for key in given:
        if key not in _CARRIED and not key.startswith(("spark.conf.", "job.")):
            reasons.setdefault(key, "is set, and a project has nothing like it: leave it out")
    for key, reason in reasons.items():
        if reason:
            raise UsageError(f"the connector {name} can't become a project: {key} {reason}")


def _spec(name: str, config: SparkTransformConfig) -> str:
    checkpoint = config.checkpoint or ""
    storage = f"{f'file://{checkpoint}' if checkpoint.startswith('/') else checkpoint}-pipeline"
    lines = [
        f"name: {json.dumps(name)}",
        f"storage: {json.dumps(storage)}",
        "libraries:",
        "  - glob:",
        "      include: transformations/**",
    ]
    if config.conf:
        lines += [
            "configuration:",
            *(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in config.conf.items()),
        ]
    return "\n".join([*lines, ""])


def _dict(values: Mapping[str, str]) -> str:
    """Without those that are empty."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in values.items() if value]
    return "{\n" + textwrap.indent("\n".join(lines), "    ") + "\n}"
