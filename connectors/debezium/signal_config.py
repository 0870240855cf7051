"""Keys of signals and of the incremental snapshots that signals request."""

from __future__ import annotations

from connect.api import KeyType, at_least, config, family, key, one_of

__all__ = ["SignalConfig"]


def _one_table(value: str) -> str | None:
    return None if "," not in value else "Must be one table: a connector reads signals from one only"


@config
class SignalConfig:
    """Where signals come from, and how tables are read in chunks."""

    signal_collection: str | None = key(
        "signal.data.collection",
        default=None,
        check=_one_table,
        doc="Table of signals, schema.table, with the columns id, type and data, all texts. A row inserted there is a signal; "
        "incremental snapshots mark their chunks there.",
        group="Signals",
    )
    signal_channels: list[str] = key(
        "signal.enabled.channels",
        default=["source"],
        doc="Where signals come from: the table (source), a topic (kafka), a file (file).",
        group="Signals",
        check=one_of("source", "kafka", "file"),
    )
    signal_interval_ms: int = key(
        "signal.poll.interval.ms",
        default=5000,
        doc="How often the topic and the file are looked at.",
        group="Signals",
        importance="medium",
        check=at_least(1),
    )
    signal_file: str = key(
        "signal.file",
        default="file-signals.txt",
        doc='A file with a signal in each line, {"id": ..., "type": ..., "data": {...}}; it is emptied when it was read.',
        group="Signals",
        importance="low",
    )
    signal_topic: str | None = key(
        "signal.kafka.topic",
        default=None,
        doc="A topic of one partition whose records are signals, as a file's lines; their key is topic.prefix. By default "
        "topic.prefix followed by -signal.",
        group="Signals",
        importance="low",
    )
    signal_servers: str | None = key(
        "signal.kafka.bootstrap.servers",
        default=None,
        doc="The cluster of that topic; the worker's own by default.",
        group="Signals",
        importance="low",
    )
    signal_group: str = key(
        "signal.kafka.groupId",
        default="kafka-signal",
        doc="The group under which the position in that topic is kept.",
        group="Signals",
        importance="low",
    )
    signal_timeout_ms: int = key(
        "signal.kafka.poll.timeout.ms",
        default=100,
        doc="How long a look at the topic waits.",
        group="Signals",
        importance="low",
        check=at_least(0),
        type=KeyType.INT,
    )
    signal_consumer: dict[str, str] = family("signal.consumer.", doc="Client settings for reading that topic.")
    chunk_size: int = key(
        "incremental.snapshot.chunk.size",
        default=1024,
        doc="Rows of a chunk of an incremental snapshot.",
        group="Signals",
        check=at_least(1),
        type=KeyType.INT,
    )
    watermarking: str = key(
        "incremental.snapshot.watermarking.strategy",
        default="INSERT_INSERT",
        doc="How the end of a chunk is marked in the table of signals: by another row, or by deleting the row that marked its "
        "begin (INSERT_DELETE), so that the table does not grow.",
        group="Signals",
        importance="low",
        check=one_of("INSERT_INSERT", "INSERT_DELETE", ignore_case=True),
    )

    def is_signals(self, table: str) -> bool:
        """Whether this is the signal table, which is captured regardless of the lists and not included in snapshots."""
        return table.lower() == (self.signal_collection or "").lower()
