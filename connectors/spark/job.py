"""What a worker tells the Spark driver to do: one job, as a file that both read."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from tidegate.kit.files import write_whole

__all__ = ["LEFT_OUT", "Input", "Job"]

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
    """Whether the topic is read whole in every job."""

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

    def save(self, path: Path) -> None:
        write_whole(path, json.dumps(asdict(self)), mode=0o600)  # the settings may hold a password

    @classmethod
    def load(cls, path: Path) -> Job:
        document = json.loads(path.read_text())
        document["inputs"] = [Input(**item) for item in document["inputs"]]
        return cls(**document)
