"""Keys that say how the log is read: batch sizes, pauses, and retries when the database does not answer."""

from __future__ import annotations

from connect.api import KeyType, at_least, config, key
from connectors.debezium.accepted import without_effect

__all__ = ["ReadingConfig"]


@config
class ReadingConfig:
    """Batch sizes, pauses and retries."""

    poll_interval_ms: int = key(
        "poll.interval.ms", default=500, doc="How long to wait for changes at most.", group="Reading", check=at_least(1)
    )
    max_batch_size: int = key(
        "max.batch.size",
        default=2048,
        doc="Changes in a batch at least before it is handed on while more are at hand; batches are bounded in bytes as well.",
        group="Reading",
        check=at_least(1),
        type=KeyType.INT,
    )
    max_queue_size: int = key(
        "max.queue.size",
        default=8192,
        doc="Changes in a batch at most.",
        group="Reading",
        check=at_least(1),
        type=KeyType.INT,
    )
    streaming_delay_ms: int = key(
        "streaming.delay.ms",
        default=0,
        doc="Pause between the end of a snapshot and the changes after it.",
        group="Reading",
        importance="low",
        check=at_least(0),
    )
    max_retries: int = key(
        "errors.max.retries",
        default=-1,
        doc="How often in a row the database may fail to answer before the task fails; -1: any number, 0: never.",
        group="Reading",
        importance="low",
        check=at_least(-1),
        type=KeyType.INT,
    )
    retry_wait_ms: int | None = key(
        "retriable.restart.connector.wait.ms",
        default=None,
        doc="Pause before it is asked again; without it a second.",
        group="Reading",
        importance="low",
        check=at_least(1),
    )
    stop_timeout_ms: int = without_effect(
        "executor.shutdown.timeout.ms",
        10_000,
        "a task that is stopped has the time that the worker's task.shutdown.graceful.timeout.ms gives.",
        check=at_least(1),
        importance="medium",
    )
