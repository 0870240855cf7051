"""The description of one load, from something that Spark reads to a topic: a file that the worker writes and the driver reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from connectors.spark.job import Job
from tidegate.kit.files import write_whole

__all__ = ["Load", "described"]

_KIND: Final = "load"


@dataclass(frozen=True)
class Load:
    """Everything the driver needs. Fields that a ``Job`` has too mean the same."""

    name: str
    connector: str
    format: str
    path: str
    table: str
    schema: str
    """The columns of files, in Spark's DDL; empty: those that Spark finds."""
    options: dict[str, str] = field(repr=False)
    """Options of Spark's reader for the format; they may hold a password."""
    mode: str
    changes: str
    most_files: int
    late_ms: int
    watermark: str
    sql: str
    topic: str
    key_columns: list[str]
    write_options: dict[str, str]
    """Options of the data source's write, but for the topic, the cluster and the registry."""
    tasks: int
    """The most tasks that write, each in a transaction of its own."""
    master: str
    jars: list[str]
    conf: dict[str, str]
    kafka: dict[str, str] = field(repr=False)
    registry: dict[str, str] = field(repr=False)
    position: dict[str, Any] | None = None
    """Where the last load ended; None: there was none."""
    preview_rows: int = 0
    """Show so many rows, and write nothing; 0: the load is done."""

    @property
    def transactional_ids(self) -> list[str]:
        """Those that the tasks may have, as ``pyspark_tidegate.loading`` makes them of the connector's name."""
        prefix = self.write_options.get("kafka.transactional.id", "tidegate-spark")
        return [f"{prefix}-{self.connector}-{task}" for task in ("job", *range(self.tasks))]

    def save(self, path: Path) -> None:
        write_whole(path, json.dumps({_KIND: asdict(self)}), mode=0o600)


def described(path: Path) -> Job | Load:
    """The job or load that a file describes."""
    document = json.loads(path.read_text())
    return Load(**document[_KIND]) if _KIND in document else Job.load(path)
