"""Keys of the Spark transform: those of the Spark sink, a function instead of a query, a topic as the target, and streams."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from connect.api import Problem, at_least, config, inherited, key, one_of
from connectors.spark.config import REGISTERED, SparkSinkConfig, key_problems

__all__ = ["SparkTransformConfig"]

_DELAY: Final = re.compile(
    r"(interval\s+)?\d+\s*(microsecond|millisecond|second|minute|hour|day|week|month|year)s?", re.IGNORECASE
)
"""An interval as Spark's ``withWatermark`` takes it."""
_OF_STREAMS: Final = (
    "spark.watermark.column",
    "spark.max.offsets.per.trigger",
    "spark.checkpoint.path",
)


@config
class SparkTransformConfig(SparkSinkConfig):
    """The topics to read, what makes the result of them, the target, how it runs, and the Spark to run on."""

    sql: str | None = inherited(
        doc="A query over the topics, each a view of its own name (characters other than letters and digits become _). It is parsed when "
        "the configuration is validated, where there is a Java.",
    )
    function: str | None = key(
        "spark.function",
        default=None,
        doc="A function of Python instead of spark.sql, as module:function. It gets the views, a dict of DataFrames by their names (and "
        "the SparkSession, if it takes two arguments), and returns a DataFrame. It is imported when the configuration is validated.",
        importance="high",
        group="Transform",
    )
    python_path: list[str] = key(
        "spark.python.path",
        default=[],
        doc="Folders with Python modules, for spark.function and what it imports.",
        group="Transform",
    )
    lookup_topics: list[str] = inherited(
        doc="Topics that are joined as tables: read whole in every job or micro-batch, the newest record of each key. Records without a "
        "key are all there.",
    )
    topic: str | None = key(
        "spark.output.topic",
        default=None,
        doc="The topic that gets the result, instead of spark.output.path and spark.output.table. It is created if it does not exist.",
        importance="high",
        group="Output",
    )
    topic_partitions: int = key(
        "spark.output.topic.partitions",
        default=0,
        check=at_least(0),
        doc="Number of partitions of spark.output.topic where it is created; 0 is the broker's default.",
        group="Output",
    )
    output_key: list[str] = key(
        "spark.output.key.columns",
        default=[],
        doc="For spark.output.topic: the columns of the result that make the records' keys. They stay in the values too.",
        group="Output",
    )
    output_value_format: str = key(
        "spark.output.value.format",
        default="avro",
        doc="For spark.output.topic: what the values are. Schemas of avro, protobuf and json-schema are derived from the result and "
        "registered.",
        check=one_of(*REGISTERED, "json", "string"),
        group="Output",
    )
    output_key_format: str | None = key(
        "spark.output.key.format",
        default=None,
        doc="For spark.output.topic: what the keys are, by default the same as the values. string takes one column.",
        check=one_of(*REGISTERED, "json", "string", "binary"),
        group="Output",
    )
    output_once: bool = key(
        "spark.output.exactly.once",
        default=False,
        doc="For spark.output.topic: each job or micro-batch is one transaction, written by one task, and is there once for readers with "
        "isolation.level=read_committed. Otherwise a repeated one is written again.",
        group="Output",
    )
    run_mode: str = key(
        "spark.mode",
        default="batch",
        doc="'batch': jobs over ranges of offsets, as of the Spark sink. 'available-now': jobs that are streams, which keep their state "
        "from one to the next. 'continuous': a stream that runs until it is stopped.",
        check=one_of("batch", "available-now", "continuous"),
        importance="high",
        group="Stream",
    )
    checkpoint: str | None = key(
        "spark.checkpoint.path",
        default=None,
        doc="For streams: the folder of the checkpoint, as Spark takes it, of this connector alone. It has the offsets and the state.",
        importance="high",
        group="Stream",
    )
    watermark_column: str = key(
        "spark.watermark.column",
        default="",
        doc="For streams: the column of type timestamp that tells when a row happened. Each topic that has it gets a watermark.",
        group="Stream",
    )
    watermark_delay: str = key(
        "spark.watermark.delay",
        default="0 seconds",
        doc="How much later than the newest row an older one may come, such as '10 minutes'. Windows and joins wait so long; later rows "
        "are left out of them.",
        group="Stream",
    )
    output_mode: str = key(
        "spark.stream.output.mode",
        default="append",
        doc="Spark's output mode of the stream: 'append' (rows that don't change any more), 'update' (rows that have changed), 'complete' "
        "(all rows of an aggregate each time).",
        check=one_of("append", "update", "complete"),
        group="Stream",
    )
    interval_ms: int = key(
        "spark.trigger.interval.ms",
        default=1000,
        check=at_least(0),
        doc="For spark.mode=continuous: milliseconds from the start of a micro-batch to that of the next one.",
        group="Stream",
    )
    max_offsets: int = key(
        "spark.max.offsets.per.trigger",
        default=0,
        check=at_least(0),
        doc="For streams: the most offsets of a micro-batch, of each topic; 0 takes everything there is.",
        group="Stream",
    )
    starting: str = key(
        "spark.starting.offsets",
        default="earliest",
        doc="For streams: where they begin without a checkpoint.",
        check=one_of("earliest", "latest"),
        group="Stream",
    )

    @property
    def has_one_result(self) -> bool:
        return True

    @property
    def streams(self) -> bool:
        return self.run_mode != "batch"

    @property
    def key_format_of_output(self) -> str:
        return self.output_key_format or self.output_value_format

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self.sql and self.function:
            yield Problem("spark.function", "spark.sql and spark.function are both set: give one of the two")
        elif not self.sql and not self.function:
            yield Problem("spark.sql", "spark.sql is missing: give a query, or spark.function a function of Python")
        if self.function and not re.fullmatch(r"\w+(\.\w+)*:\w+", self.function):
            yield Problem("spark.function", f"spark.function is {self.function!r}: it must be module:function")
        relative = [folder for folder in self.python_path if not folder.startswith("/")]
        if relative:
            yield Problem("spark.python.path", f"spark.python.path has {relative[0]!r}: give absolute paths of folders")
        yield from self._problems_of_stream()

    def _problems_of_target(self) -> Iterable[Problem]:
        if not self.topic:
            if not self.path and not self.table:
                yield Problem(
                    "spark.output.topic",
                    "there is no target: give spark.output.topic, or spark.output.path or spark.output.table as of the Spark sink",
                )
                return
            if self.output_once:
                yield Problem(
                    "spark.output.exactly.once",
                    "spark.output.exactly.once is for spark.output.topic: tables and files need no wish",
                )
            yield from super()._problems_of_target()
            return
        for name, given in {"spark.output.path": self.path, "spark.output.table": self.table}.items():
            if given:
                yield Problem(name, f"spark.output.topic and {name} are both set: give one of the two")
        if self.mode != "append":
            yield Problem(
                "spark.output.mode",
                f"spark.output.mode is {self.mode}: records can only be appended to spark.output.topic",
            )
        yield from key_problems(self.output_key, self.key_format_of_output)

    def _problems_of_stream(self) -> Iterable[Problem]:
        if not self.streams:
            for name, given in zip(
                _OF_STREAMS, (self.watermark_column, self.max_offsets, self.checkpoint), strict=True
            ):
                if given:
                    yield Problem(
                        name, f"{name} is for spark.mode available-now and continuous, and spark.mode is batch"
                    )
            return
        if not self.checkpoint:
            yield Problem(
                "spark.checkpoint.path",
                f"spark.mode is {self.run_mode}, which needs spark.checkpoint.path: a folder that is kept, of this connector alone",
            )
        elif not self.checkpoint.startswith("/") and ":" not in self.checkpoint.partition("/")[0]:
            yield Problem(
                "spark.checkpoint.path", f"spark.checkpoint.path is {self.checkpoint!r}: give an absolute path or a URI"
            )
        if self.watermark_column and not _DELAY.fullmatch(self.watermark_delay.strip()):
            yield Problem(
                "spark.watermark.delay",
                f"spark.watermark.delay is {self.watermark_delay!r}: it must be a number and a unit, such as '10 minutes'",
            )
        if self.output_mode == "complete" and self.mode != "overwrite":
            yield Problem(
                "spark.stream.output.mode",
                "spark.stream.output.mode is complete, which gives all rows each time: it needs spark.output.mode=overwrite",
            )
