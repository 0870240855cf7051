"""The worker's configuration: Kafka Connect's distributed worker keys, under their names."""

from __future__ import annotations

from collections.abc import Mapping

from connect.config.group import GroupConfig
from connect.config.hosts import HostConfig
from connect.config.rest import RestConfig
from tidegate.kit.config import KeyType, at_least, config, family, key, one_of

__all__ = ["WorkerConfig", "client_properties"]


@config
class WorkerConfig(GroupConfig, HostConfig, RestConfig):
    """The keys of a worker.

    Keys of the Kafka client (``security.protocol``, ``sasl.*``, ``ssl.*`` ...) may be added, also with the prefixes
    ``producer.``, ``consumer.`` and ``admin.`` for one kind of client.
    """

    bootstrap_servers: list[str] = key("bootstrap.servers", importance="high", doc="Brokers to start from, host:port.")
    group_id: str = key(
        "group.id",
        default="tidegate-connect",
        importance="high",
        doc="Name of the Connect cluster that this worker belongs to.",
    )
    config_topic: str = key(
        "config.storage.topic", default="connect-configs", importance="high", doc="Topic that holds connectors."
    )
    config_replication: int = key(
        "config.storage.replication.factor", default=3, type=KeyType.SHORT, importance="low", doc="Its replicas."
    )
    offset_topic: str = key(
        "offset.storage.topic", default="connect-offsets", importance="high", doc="Topic that holds source offsets."
    )
    offset_replication: int = key(
        "offset.storage.replication.factor", default=3, type=KeyType.SHORT, importance="low", doc="Its replicas."
    )
    offset_partitions: int = key(
        "offset.storage.partitions", default=25, type=KeyType.INT, importance="low", doc="Its partitions."
    )
    offset_file: str | None = key(
        "offset.storage.file.filename",
        default=None,
        importance="high",
        doc="File that holds source offsets; it makes the worker a standalone one, which has none of the three topics.",
    )
    status_topic: str = key(
        "status.storage.topic", default="connect-status", importance="high", doc="Topic that holds states."
    )
    status_replication: int = key(
        "status.storage.replication.factor", default=3, type=KeyType.SHORT, importance="low", doc="Its replicas."
    )
    status_partitions: int = key(
        "status.storage.partitions", default=5, type=KeyType.INT, importance="low", doc="Its partitions."
    )
    replication_fit: bool = key(
        "replication.factor.fit",
        default=False,
        importance="low",
        doc="Lower a replication factor above the number of brokers to that number, with a warning, where the worker "
        "creates a topic; otherwise the broker's error stands.",
    )
    key_converter: str = key(
        "key.converter",
        default="io.confluent.connect.avro.AvroConverter",
        type=KeyType.CLASS,
        importance="high",
        doc="Converter of record keys, for connectors that name none.",
    )
    value_converter: str = key(
        "value.converter",
        default="io.confluent.connect.avro.AvroConverter",
        type=KeyType.CLASS,
        importance="high",
        doc="Converter of record values, for connectors that name none.",
    )
    schema_registry_url: str | None = key(
        "schema.registry.url",
        default=None,
        aliases=["value.converter.schema.registry.url"],
        doc="The schema registry for tasks and for converters whose own keys name none.",
    )
    task_stop_timeout_ms: int = key(
        "task.shutdown.graceful.timeout.ms",
        default=5000,
        check=at_least(0),
        importance="low",
        doc="How long a task may take to stop before its host process is replaced.",
    )
    offset_flush_interval_ms: int = key(
        "offset.flush.interval.ms", default=60_000, check=at_least(1), importance="low", doc="Time between commits."
    )
    offset_flush_timeout_ms: int = key(
        "offset.flush.timeout.ms",
        default=5000,
        check=at_least(0),
        importance="low",
        doc="How long a stopping task waits for the log to acknowledge what it sent.",
    )
    topic_creation: bool = key(
        "topic.creation.enable", default=True, importance="low", doc="Whether source connectors may create topics."
    )
    topic_tracking: bool = key(
        "topic.tracking.enable", default=True, importance="low", doc="Whether the topics a connector uses are recorded."
    )
    override_policy: str = key(
        "connector.client.config.override.policy",
        default="All",
        check=one_of("All", "None", "Principal"),
        doc="Which client settings a connector may override: All, None, or Principal (security settings only).",
    )
    connector_rights: str = key(
        "connector.rights",
        default="worker",
        check=one_of("worker", "owner"),
        importance="medium",
        doc="With whose rights connectors and tasks use the log, the registry and files. worker: the worker's, as in Kafka Connect. "
        "owner: those of the user who changed the configuration last, by users.file, of which the broker and the registry must read "
        "the same.",
    )
    max_in_flight_bytes: int = key(
        "task.max.in.flight.bytes",
        default=32 * 1024 * 1024,
        check=at_least(1),
        importance="low",
        doc="Bytes that one source task may have sent without acknowledgement before it waits.",
    )
    plugin_path: list[str] = key(
        "plugin.path",
        default=[],
        importance="low",
        doc="Folders with Python modules of connectors; their classes go by module:Class. What else lies there, or is not "
        "there, does no harm.",
    )
    plugin_reload: bool = key(
        "plugin.reload",
        default=False,
        importance="low",
        doc="For development: connectors from plugin.path are started again, with their new code, when a file there changes.",
    )
    producer: dict[str, str] = family("producer.", doc="Client settings of producers only.")
    consumer: dict[str, str] = family("consumer.", doc="Client settings of consumers only.")
    admin: dict[str, str] = family("admin.", doc="Client settings of admin clients only.")


_ADMIN_LISTENERS = "admin.listeners"
"""Keys of the worker that look like settings of an admin client."""
_OWN_PREFIXES = (
    "producer.",
    "consumer.",
    "admin.",
    "key.converter",
    "value.converter",
    "header.converter",
    "offset.",
    "config.",
    "status.",
    "task.",
    "topic.",
    "rest.",
    "listeners.",
    "access.control.",
    "response.http.headers.",
    "java.security.",
    "plugin.",
    "connector.client.",
    "inter.worker.",
    "scheduled.rebalance.",
    "worker.",
)
_OWN_NAMES = frozenset(
    {
        "bootstrap.servers",
        "connect.protocol",
        "connector.rights",
        "exactly.once.source.support",
        "group.id",
        "heartbeat.interval.ms",
        "http.allowed.hosts",
        "listeners",
        "rebalance.timeout.ms",
        "replication.factor.fit",
        "schema.registry.url",
        "session.timeout.ms",
        "ssl.client.auth",
        "ssl.keystore.reload",
        "users.file",
    }
)


def client_properties(
    worker: Mapping[str, str], kind: str, overrides: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Settings of one kind of Kafka client (``producer``, ``consumer``, ``admin``): the worker's plain ones, then those
    under the kind's prefix, then a connector's overrides.
    """
    plain = {
        name: value for name, value in worker.items() if name not in _OWN_NAMES and not name.startswith(_OWN_PREFIXES)
    }
    prefix = f"{kind}."
    prefixed = {
        name.removeprefix(prefix): value
        for name, value in worker.items()
        if name.startswith(prefix) and not name.startswith(_ADMIN_LISTENERS)
    }
    return plain | prefixed | dict(overrides or {})
