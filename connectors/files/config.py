"""Keys of the file stream connectors: Kafka's own."""

from __future__ import annotations

from connect.api import KeyType, config, key, non_empty

__all__ = ["FileStreamSinkConfig", "FileStreamSourceConfig"]


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
