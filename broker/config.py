"""The broker's own configuration, under Apache Kafka's keys of ``server.properties``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from broker.groups.config.group_config import GroupConfig
from broker.log.config import BROKER_SYNONYMS, LogConfig, topic_defaults
from broker.metadata.config import MetadataLogConfig
from broker.metrics.config import MetricsConfig
from broker.quotas.config import QuotaConfig
from broker.security.access_config import AccessConfig
from broker.security.config import SecurityConfig, SecurityProtocol, listener_problems
from broker.share_coordinator.config import ShareCoordinatorConfig
from broker.telemetry.config import TelemetryConfig
from broker.transactions.config import TransactionConfig
from broker.unused_keys import REFUSED, UNUSED, refusal
from tidegate.kit.addresses import is_loopback
from tidegate.kit.config import KeyType, at_least, between, config, family, key, keys_of, one_of, parse
from tidegate.kit.errors import ConfigError, Problem

__all__ = ["BrokerConfig", "Listener"]

_LISTENER: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]*)://(\[[0-9A-Fa-f:.%]*\]|[^:/\[\]]*):(\d{1,5})")


class Listener(NamedTuple):
    """An address where the broker listens or can be reached."""

    name: str
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Listener:
        """Read ``NAME://host:port``; an empty host is every interface. Raises ValueError."""
        match = _LISTENER.fullmatch(text.strip())
        if match is None or int(match[3]) > 65535:
            raise ValueError(f"{text!r} is not of the form PLAINTEXT://host:port")
        return cls(match[1].upper(), match[2].strip("[]"), int(match[3]))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def _positive(value: float | None) -> str | None:
    return "Value must be above 0" if value is not None and value <= 0 else None


def _listeners(values: list[str]) -> str | None:
    for value in values:
        try:
            Listener.parse(value)
        except ValueError as error:
            return str(error)
    return None


@config
class BrokerConfig(
    AccessConfig,
    QuotaConfig,
    MetricsConfig,
    TelemetryConfig,
    GroupConfig,
    SecurityConfig,
    TransactionConfig,
    MetadataLogConfig,
    ShareCoordinatorConfig,
):
    """The properties that a broker is started with.

    Topic defaults (``log.*`` and others) are checked like the topic keys they set.
    """

    node_id: int = key(
        "node.id",
        default=1,
        type=KeyType.INT,
        importance="high",
        aliases=("broker.id",),
        check=at_least(0),
        doc="The broker's number; it is kept in the data directory and must not change.",
    )
    listeners: list[str] = key(
        "listeners",
        default=["PLAINTEXT://127.0.0.1:9092"],
        importance="high",
        check=_listeners,
        doc="Where to listen, as NAME://host:port; port 0 takes a free one. `listener.security.protocol.map` says what "
        "protocol a name stands for.",
    )
    advertised_listeners: list[str] = key(
        "advertised.listeners",
        default=[],
        importance="high",
        check=_listeners,
        doc="What clients are told to connect to, where that differs from `listeners`.",
    )
    log_dirs: list[str] = key(
        "log.dirs",
        importance="high",
        aliases=("log.dir",),
        doc="The directories the records are kept in, one for each disk; a new partition goes to the one with the fewest. The "
        "first one has the metadata, too, unless `metadata.log.dir` says where.",
    )
    metadata_log_dir: str | None = key(
        "metadata.log.dir",
        default=None,
        doc="The directory the metadata is kept in, be it among `log.dirs` or not; without it the first of those.",
    )
    cordoned_log_dirs: list[str] = key(
        "cordoned.log.dirs",
        default=[],
        doc="Directories of `log.dirs` that no new partitions are put into; `*` is all of them (KIP-1066).",
    )
    broker_rack: str | None = key("broker.rack", default=None, doc="The rack the broker reports.")
    num_partitions: int = key(
        "num.partitions",
        default=1,
        type=KeyType.INT,
        check=at_least(1),
        doc="Partitions of a topic that is created without a number of them.",
    )
    default_replication_factor: int = key(
        "default.replication.factor",
        default=1,
        type=KeyType.INT,
        check=between(1, 1),
        doc="Replicas of a topic that is created without a number of them: 1, there is one broker.",
    )
    auto_create_topics_enable: bool = key(
        "auto.create.topics.enable",
        default=True,
        importance="high",
        doc="Create a topic when a client asks for its metadata and allows it.",
    )
    delete_topic_enable: bool = key(
        "delete.topic.enable", default=True, importance="high", doc="Let clients delete topics."
    )
    socket_request_max_bytes: int = key(
        "socket.request.max.bytes",
        default=104_857_600,
        type=KeyType.INT,
        check=at_least(1),
        doc="The largest request read; a larger one ends its connection before it is received.",
    )
    socket_listen_backlog: int = key(
        "socket.listen.backlog.size",
        default=1024,
        type=KeyType.INT,
        check=at_least(1),
        doc="How many connections may wait to be accepted, as far as the operating system allows. Kafka's default is 50; here "
        "one loop accepts and does everything else.",
    )
    socket_send_buffer: int = key(
        "socket.send.buffer.bytes",
        default=-1,
        type=KeyType.INT,
        check=at_least(-1),
        doc="SO_SNDBUF of clients' sockets; -1 leaves it to the operating system, which lets it grow with the connection. "
        "Kafka's default is 102400.",
    )
    socket_receive_buffer: int = key(
        "socket.receive.buffer.bytes",
        default=-1,
        type=KeyType.INT,
        check=at_least(-1),
        doc="SO_RCVBUF of clients' sockets; -1 leaves it to the operating system. Kafka's default is 102400.",
    )
    max_request_partitions: int = key(
        "max.request.partition.size.limit",
        default=2000,
        type=KeyType.INT,
        check=at_least(1),
        doc="Partitions in one answer to DescribeTopicPartitions at most.",
    )
    connections_max_idle_ms: int = key(
        "connections.max.idle.ms",
        default=600_000,
        check=at_least(-1),
        doc="Idle connections are closed after this; -1 never.",
    )
    fetch_max_bytes: int = key(
        "fetch.max.bytes",
        default=57_671_680,
        type=KeyType.INT,
        check=at_least(1024),
        doc="The most bytes a fetch is answered with, whatever it asks for.",
    )
    fetch_session_slots: int = key(
        "max.incremental.fetch.session.cache.slots",
        default=1000,
        type=KeyType.INT,
        check=at_least(0),
        doc="How many fetch sessions are kept; consumers without one name all their partitions with each fetch.",
    )
    retention_check_ms: int = key(
        "log.retention.check.interval.ms",
        default=300_000,
        check=at_least(1),
        doc="How often old segments are looked for, in milliseconds.",
    )
    cleaner_enable: bool = key(
        "log.cleaner.enable", default=True, doc="Compact the logs of topics with cleanup.policy=compact."
    )
    cleaner_backoff_ms: int = key(
        "log.cleaner.backoff.ms",
        default=15_000,
        check=at_least(0),
        doc="How often logs that need compaction are looked for, in milliseconds.",
    )
    cleaner_threads: int = key(
        "log.cleaner.threads",
        default=1,
        type=KeyType.INT,
        check=at_least(0),
        doc="How many logs are compacted at one time, each in a process of its own. 0 is 1.",
    )
    cleaner_buffer_bytes: int = key(
        "log.cleaner.dedupe.buffer.size",
        default=134_217_728,
        check=at_least(1024 * 1024),
        doc="Memory for the keys of one round of compaction, all processes together; a key takes about 256 bytes. A log with "
        "more keys takes several rounds.",
    )
    cleaner_bytes_per_s: float | None = key(
        "log.cleaner.io.max.bytes.per.second",
        default=None,
        check=_positive,
        doc="Bytes that compaction reads and writes in a second at most, all processes together.",
    )
    start_checkpoint_interval_ms: int = key(
        "log.flush.start.offset.checkpoint.interval.ms",
        default=60_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often it is written down where logs begin; what DeleteRecords changes is so at once.",
    )
    checkpoint_interval_ms: int = key(
        "log.flush.offset.checkpoint.interval.ms",
        default=60_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often the point is written down from which a recovery has to read.",
    )
    background_flush_ms: int = key(
        "log.background.flush.interval.ms",
        default=100,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long records that nobody waits for (acks 0 and 1) may stay in the page cache before a flush to disk is "
        "begun. A key of Tidegate's own: the disk is the only replica.",
    )
    max_message_bytes: str | None = key(
        "message.max.bytes", default=None, doc="Default of the topic key max.message.bytes."
    )
    min_insync_replicas: str | None = key(
        "min.insync.replicas", default=None, doc="Default of the topic key min.insync.replicas."
    )
    acks_all_durability: str | None = key(
        "acks.all.durability",
        default=None,
        check=one_of("disk", "page-cache"),
        importance="high",
        doc="What an answer to acks=all means: `disk` (the default), the records survive a power failure; `page-cache`, they "
        "survive the end of the broker's process. A key of Tidegate's own, also of topics.",
    )
    log_settings: dict[str, str] = family(
        "log.", doc="Defaults of topic keys, under the names Kafka gives them for brokers."
    )
    compression_settings: dict[str, str] = family("compression.", doc="Defaults of the topic keys compression.*.")

    properties: dict[str, str] = family(
        "", doc="Other keys that Kafka has are kept and shown (DescribeConfigs), and change nothing."
    )

    @classmethod
    def known_names(cls) -> set[str]:
        """All keys of a broker, Kafka's and its own, for whoever looks for misspelt ones. Keys of a listener are not among them."""
        from broker.kafka_keys import KAFKA_KEYS

        declared = {name for known in keys_of(cls) for name in (known.name, *known.aliases)}
        return declared | set(KAFKA_KEYS) | set(UNUSED) | set(REFUSED)

    def problems(self) -> Iterator[Problem]:
        yield from GroupConfig.problems(self)
        if not self.listeners:
            yield Problem(
                "listeners", "Missing value for configuration listeners: name one, PLAINTEXT://127.0.0.1:9092"
            )
        if not self.log_dirs or len(set(self.log_dirs)) < len(self.log_dirs):
            yield Problem(
                "log.dirs",
                f"Invalid value {','.join(self.log_dirs)} for configuration log.dirs: give directories, each once",
            )
        yield from self._directory_problems()
        for name, value in self.properties.items():
            reason = refusal(name, value)
            if reason is not None:
                yield Problem(name, reason)
        yield from SecurityConfig.problems(self)
        yield from self._listener_problems()
        try:
            parse(LogConfig, topic_defaults(self.topic_settings))
        except ConfigError as error:
            yield from error.problems
        except ValueError as error:
            yield Problem("log.*", f"A number was expected: {error}")

    def _directory_problems(self) -> Iterator[Problem]:
        known = {Path(path).absolute() for path in self.log_dirs}
        for path in self.cordoned_log_dirs:
            if path != "*" and Path(path).absolute() not in known:
                yield Problem(
                    "cordoned.log.dirs",
                    f"Invalid value {path} for configuration cordoned.log.dirs: log.dirs has {', '.join(self.log_dirs)}",
                )

    def _listener_problems(self) -> Iterator[Problem]:
        for key_name, listeners in (
            ("listeners", [Listener.parse(text) for text in self.listeners]),
            ("advertised.listeners", [Listener.parse(text) for text in self.advertised_listeners]),
        ):
            names = [listener.name for listener in listeners]
            if len(set(names)) != len(names):
                yield Problem(key_name, "Each listener must have a different name")
            for name in names:
                if name not in self._unopened and self.protocol_of(name) is None:
                    yield Problem(
                        key_name,
                        f"No security protocol defined for listener {name}: add {name}:PLAINTEXT or the like to "
                        "listener.security.protocol.map",
                    )
        if self.listeners and not self.opened_listeners:
            yield Problem("listeners", "Every listener is one of controller.listener.names: name one for clients")
        for listener in self.opened_listeners:
            protocol = self.protocol_of(listener.name)
            if protocol is not None:
                yield from listener_problems(self, listener.name, protocol)

    @property
    def _unopened(self) -> set[str]:
        return {name.upper() for name in self.controller_listeners}

    @property
    def opened_listeners(self) -> list[Listener]:
        """The listeners for clients, in configured order."""
        parsed = map(Listener.parse, self.listeners)
        return [listener for listener in parsed if listener.name not in self._unopened]

    @property
    def open_listeners(self) -> list[str]:
        """Listeners that other machines can reach and where any client may do everything."""
        if self.authorizer_class_name or self.users_file is not None:
            return []
        return [
            str(listener)
            for listener in self.opened_listeners
            if not is_loopback(listener.host) and not self._asks_clients(listener.name)
        ]

    def _asks_clients(self, name: str) -> bool:
        match self.protocol_of(name):
            case SecurityProtocol.PLAINTEXT:
                return False
            case SecurityProtocol.SSL:
                return self.listener(name).ssl_client_auth.lower() == "required"
            case _:
                return True

    @property
    def topic_settings(self) -> dict[str, str]:
        """The broker keys that set topic defaults, as configured."""
        configs = {f"log.{name}": value for name, value in self.log_settings.items()}
        configs |= {f"compression.{name}": value for name, value in self.compression_settings.items()}
        for name, value in (
            ("message.max.bytes", self.max_message_bytes),
            ("min.insync.replicas", self.min_insync_replicas),
            ("acks.all.durability", self.acks_all_durability),
        ):
            if value is not None:
                configs[name] = value
        known = {name for synonyms in BROKER_SYNONYMS.values() for name, _ in synonyms}
        return {name: value for name, value in configs.items() if name in known}

    @property
    def log_defaults(self) -> LogConfig:
        """The configuration of a topic that sets no keys."""
        return parse(LogConfig, topic_defaults(self.topic_settings))
