"""The configuration keys of the process that runs triggers."""

from __future__ import annotations

from events.triggers.api import MAX_RETRIES
from tidegate.kit.config import at_least, between, config, family, key

__all__ = ["TriggersConfig"]


@config
class TriggersConfig:
    """All keys of that process."""

    folder: str = key(
        "triggers.dir",
        default="triggers",
        doc="The project folder: every .py file directly in it may hold triggers, every .toml file is a flow.",
        importance="high",
    )
    bootstrap_servers: str = key(
        "bootstrap.servers", default="127.0.0.1:9092", doc="The Kafka that keeps the events.", importance="high"
    )
    kafka: dict[str, str] = family("kafka.", doc="Client settings for that Kafka, as a Java client takes them.")
    registry_url: str = key(
        "schema.registry.url",
        default="http://127.0.0.1:8081",
        doc="The schema registry that keeps the event definitions.",
        importance="high",
    )
    registry: dict[str, str] = family(
        "registry.client.", doc="Client settings for that registry, as Confluent's Java client takes them."
    )
    events_url: str = key(
        "events.url", default="http://127.0.0.1:8090", doc="The events service, for flows that create records."
    )
    data_dir: str = key(
        "data.dir",
        default="data/triggers",
        doc="Where it is noted which call is running, so that a call that ends the process counts as failed.",
    )
    group_prefix: str = key(
        "triggers.group.prefix",
        default="trigger-",
        doc="What the names of the consumer groups begin with that keep the positions.",
        importance="low",
    )
    session_timeout_ms: int = key(
        "triggers.session.timeout.ms",
        default=10_000,
        check=at_least(1),
        doc="After how long without a heartbeat another process takes over the triggers of one that died.",
        importance="low",
    )
    retries: int = key(
        "triggers.retries",
        default=MAX_RETRIES,
        check=between(0, 1000),
        doc="How often a failed batch is tried again before the trigger goes into the Error state.",
    )
    retry_backoff_ms: int = key(
        "triggers.retry.backoff.ms",
        default=1000,
        check=at_least(0),
        doc="The pause before the first retry; each further one is twice as long.",
    )
    retry_backoff_max_ms: int = key(
        "triggers.retry.backoff.max.ms", default=300_000, check=at_least(0), doc="The longest pause before a retry."
    )
    stop_timeout_ms: int = key(
        "triggers.stop.timeout.ms",
        default=10_000,
        check=at_least(0),
        doc="How long a running call may go on when the process is to end; its batch comes again.",
    )
    reload_ms: int = key(
        "triggers.reload.ms",
        default=1000,
        check=at_least(0),
        doc="How often the project folder is looked at for changes; 0 never reloads.",
    )
