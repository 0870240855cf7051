"""The description of one job, a file that the worker writes and the Spark driver reads."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from tidegate.kit.files import write_whole

__all__ = [
    "LEFT_OUT",
    "RECORD_CLASSES",
    "TABLES",
    "WARM",
    "Input",
    "Job",
    "Maintenance",
    "Merge",
    "Stream",
    "TopicOutput",
]

TABLES: Final = ("iceberg", "delta")
"""The formats of output that are tables, with commits."""
RECORD_CLASSES: Final = "record classes"
"""The worker writes it in place of a description's path, to have the driver write its archive of classes."""
WARM: Final = "warm "
"""The worker writes it before a description's path, to have the driver start Spark for the job and not run it."""
LEFT_OUT: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("key", pa.binary()),
        ("bytes", pa.binary()),
        ("headers", pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))),
        ("error", pa.string()),
    ]
)
"""Records that the driver left out, as they lie in the log, with the reason."""


@dataclass(frozen=True)
class Input:
    """A topic to read: offsets by partition, and what its values are. ``value_schema`` is a schema to read them as; for JSON it is
    a JSON Schema or columns in Spark's DDL. ``value_message`` is a message of a Protobuf schema."""

    topic: str
    starts: dict[str, int]
    stops: dict[str, int]
    value_format: str
    value_schema: str | None = None
    value_message: str | None = None
    lookup: bool = False
    """Whether the topic is a table: read whole in every job, the newest record of each key."""
    topic_id: str = ""
    """The id of the topic: one that was made anew has another."""
    key_format: str = "binary"
    key_schema: str | None = None
    """As ``value_schema``, for the keys."""
    key_message: str | None = None
    planned: dict[str, dict[str, int]] = field(default_factory=dict)
    """The end of the micro-batch that a stream planned last, by topic and partition; its checkpoint has it."""
    until: dict[str, dict[str, int]] = field(default_factory=dict)
    """Where a stream ends; empty: it does not."""

    @property
    def value_is_ddl(self) -> bool:
        return self.value_format == "json" and not (self.value_schema or "").lstrip().startswith("{")

    @property
    def key_is_ddl(self) -> bool:
        return self.key_format == "json" and not (self.key_schema or "").lstrip().startswith("{")

    @property
    def view(self) -> str:
        return re.sub(r"\W", "_", self.topic)


@dataclass(frozen=True)
class Merge:
    """How changes become rows. ``keys`` are columns; empty: the fields of the record's key."""

    keys: list[str] = field(default_factory=list)
    envelope: str = "auto"
    history: str = "none"
    unavailable: str = ""
    """The text in place of one that the source left out; empty: Debezium's, in envelopes."""


@dataclass(frozen=True)
class Maintenance:
    """When a table is maintained, as cron (empty: never), and how long what it no longer needs is kept."""

    schedule: str = ""
    keep_hours: int = 168
    now: float = 0.0
    """The time of the job by the worker's clock, in seconds since the epoch."""


@dataclass(frozen=True)
class TopicOutput:
    """A topic that gets the result. ``key_columns`` make the records' keys; empty: they have none, but for a column ``key`` beside a
    column ``value``."""

    topic: str
    key_columns: list[str]
    value_format: str
    key_format: str
    once: bool = False
    """Whether each run is one transaction, which says what run it is of."""
    group: str = ""
    """The consumer group that has the id of the last run, where each run is one transaction."""


@dataclass(frozen=True)
class Stream:
    """How a query of Structured Streaming runs instead of a job over ranges. The inputs have no stops then, but for lookups, and starts
    only where the stream begins."""

    checkpoint: str
    """The folder of this connector, as Spark takes it."""
    ends: bool
    """Whether the query ends with the records that are there when it begins. Otherwise it runs until it is stopped."""
    interval_ms: int
    max_offsets: int
    """The most offsets of a micro-batch; 0: no bound."""
    starting: str
    """Where it begins without a checkpoint: ``earliest`` or ``latest``."""
    output_mode: str
    watermark_column: str
    watermark_delay: str
    loses_data: bool
    """Whether it goes on where records are gone that it has not read."""


@dataclass(frozen=True)
class Job:
    """Everything the driver needs. A run that is repeated has the same ``run_id``: what the unfinished one left is replaced."""

    run_id: str
    name: str
    inputs: list[Input]
    sql: str | None
    path: str
    format: str
    mode: str
    options: dict[str, str]
    """Options of Spark's writer for the format."""
    partition_by: list[str]
    files: int
    file_bytes: int
    """The size that files should have; 0: none is asked for."""
    metadata_columns: bool
    master: str
    jars: list[str]
    tolerates_errors: bool
    """Whether records that can't be decoded are left out and told of. Otherwise the first ends the job."""
    conf: dict[str, str]
    kafka: dict[str, str] = field(repr=False)
    """The address of the cluster (``bootstrap.servers``) and the settings of its clients."""
    registry: dict[str, str] = field(repr=False)
    """The settings of a client of the schema registry; empty without one."""
    connector: str = ""
    """The name under which the offsets stand in a table's commits."""
    table: str = ""
    """The name of the table in a catalog of Spark; empty: the table is at ``path``."""
    properties: dict[str, str] = field(default_factory=dict)
    """Properties of a table that the job creates."""
    evolution: str = "widen"
    """The changes that the table's columns may get: ``none``, ``add``, ``widen`` (and add)."""
    merge: Merge = field(default_factory=Merge)
    maintenance: Maintenance = field(default_factory=Maintenance)
    function: str = ""
    """``module:function`` that makes the result of the views; empty: ``sql`` does, or there is none."""
    python_path: list[str] = field(default_factory=list)
    """Folders with Python modules, for the function."""
    topic: TopicOutput | None = None
    """The topic that gets the result; None: it goes to files or a table."""
    stream: Stream | None = None
    preview_rows: int = 0
    """Show so many rows of the result, and write nothing; 0: the job is done."""

    @property
    def merges(self) -> bool:
        return self.mode == "merge"

    @property
    def has_one_result(self) -> bool:
        """Whether a query or a function makes one result of the topics. Otherwise each is written as it is."""
        return bool(self.sql or self.function)

    @property
    def into_table(self) -> bool:
        return self.topic is None and self.format in TABLES

    def save(self, path: Path) -> None:
        write_whole(path, json.dumps(asdict(self)), mode=0o600)  # the settings may hold a password

    @classmethod
    def load(cls, path: Path) -> Job:
        document = json.loads(path.read_text())
        document["inputs"] = [Input(**item) for item in document["inputs"]]
        document["merge"] = Merge(**document["merge"])
        document["maintenance"] = Maintenance(**document["maintenance"])
        if document["topic"] is not None:
            document["topic"] = TopicOutput(**document["topic"])
        if document["stream"] is not None:
            document["stream"] = Stream(**document["stream"])
        return cls(**document)
