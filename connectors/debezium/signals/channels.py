"""The signal channels other than the table: a file and a topic."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from connect.api import DataError, get_logger
from connectors.debezium.signals.signal import Signal, signal_of_json

if TYPE_CHECKING:
    from broker.client import ClientConfig
    from connectors.debezium.config import CaptureConfig

__all__ = ["Channel", "FileChannel", "KafkaChannel", "channels_of"]

logger = get_logger(__name__)


class Channel(Protocol):
    """``read`` returns the signals that came since the last call; ``done`` confirms that they were carried out.

    Called from the task's thread.
    """

    def read(self) -> list[Signal]: ...

    def done(self) -> None: ...

    def close(self) -> None: ...


def _signals(texts: Iterable[str], where: str) -> list[Signal]:
    """The signals that are valid; invalid ones are logged."""
    signals = []
    for text in filter(None, (text.strip() for text in texts)):
        try:
            signals.append(signal_of_json(text))
        except DataError as error:
            logger.warning("a signal cannot be read", channel=where, problem=str(error))
    return signals


class FileChannel:
    """A file of JSON lines, which is emptied after it was read."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def read(self) -> list[Signal]:
        try:
            with self._path.open("r+", encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
                file.truncate(0)
        except FileNotFoundError:
            return []
        except OSError as error:
            logger.warning("the file of signals cannot be read", file=str(self._path), problem=str(error))
            return []
        return _signals(lines, str(self._path))

    def done(self) -> None: ...

    def close(self) -> None: ...


class KafkaChannel:
    """The records of a one-partition topic whose key is the connector's ``topic.prefix``.

    The position is a consumer group's offset, which is committed once signals were carried out.
    """

    def __init__(self, config: CaptureConfig, worker: ClientConfig) -> None:
        from broker.client import ClientConfig, TopicPartition
        from broker.client.blocking import BatchConsumer

        settings = {
            "group.id": config.signal_group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            **config.signal_consumer,
        }
        servers = config.signal_servers
        cluster = worker if servers is None else ClientConfig(servers)
        self._prefix = config.prefix
        self._partition = TopicPartition(config.signal_topic or f"{config.prefix}-signal", 0)
        self._wait_ms = config.signal_timeout_ms
        self._consumer = BatchConsumer(cluster.with_properties(settings))
        self._consumer.start()
        self._consumer.assign([self._partition])
        self._moved = False

    def read(self) -> list[Signal]:
        records = [record for fetched in self._consumer.fetch(self._wait_ms) for record in fetched.records()]
        self._moved = self._moved or bool(records)
        mine = [r for r in records if r.key is not None and r.key.decode(errors="replace") == self._prefix]
        return _signals((r.value.decode(errors="replace") for r in mine if r.value is not None), self._partition.topic)

    def done(self) -> None:
        if self._moved:
            self._consumer.commit()
            self._moved = False

    def close(self) -> None:
        with suppress(Exception):  # closing fails when the cluster is gone
            self._consumer.stop()


def channels_of(config: CaptureConfig, worker: ClientConfig) -> list[Channel]:
    """The configured channels other than the table. Raises the client's errors."""
    made: list[Channel] = []
    if "file" in config.signal_channels:
        made.append(FileChannel(config.signal_file))
    if "kafka" in config.signal_channels:
        made.append(KafkaChannel(config, worker))
    return made
