"""Keys of the file stream connectors: Kafka's own."""

from __future__ import annotations

from pathlib import Path

from connect.api import KeyType, Problem, config, key, non_empty

__all__ = ["FileStreamSinkConfig", "FileStreamSourceConfig", "file_problem"]


@config
class FileStreamSourceConfig:
    """Which file is read, and into which topic."""

    file: str | None = key(
        "file", default=None, doc="Source filename. If not specified, the standard input is used.", importance="high"
    )
    topic: str = key("topic", doc="The topic to publish data to.", importance="high", check=non_empty)
    batch_size: int = key(
        "batch.size",
        default=2000,
        type=KeyType.INT,
        doc="The maximum number of records the source task can read from the file each time it is polled; at least one is.",
        importance="low",
    )


@config
class FileStreamSinkConfig:
    """The file to which values are appended."""

    file: str | None = key(
        "file",
        default=None,
        doc="Destination filename. If not specified, the standard output is used.",
        importance="high",
    )


def file_problem(file: str | None) -> Problem | None:
    """Why a connector can't read or write its file, if it is a folder. A file that does not exist yet is fine, as in Kafka."""
    if file and Path(file).is_dir():
        return Problem("file", f"file is {file}, which is a folder: give the path of a file")
    return None
