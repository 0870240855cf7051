"""The settings of a Kafka client under the Java client's names, and their translation for aiokafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from broker.client.windows import MOST_IN_FLIGHT
from tidegate.kit.config import (
    KeyType,
    Password,
    at_least,
    config,
    key,
    keys_of,
    non_empty,
    one_of,
    parse,
    unknown_keys,
)
from tidegate.kit.errors import ConfigError, Problem
from tidegate.kit.jaas import login_module
from tidegate.kit.logs import get_logger
from tidegate.kit.tls import TlsKeys, client_context

__all__ = ["ClientConfig", "ConnectionSettings", "ConsumerSettings", "ProducerSettings"]

logger = get_logger(__name__)

_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")


@config
class ConnectionSettings(TlsKeys):
    """The settings that every client needs to connect to a cluster."""

    client_id: str = key("client.id", default="tidegate", doc="The name the broker logs and limits this client by.")
    request_timeout_ms: int = key(
        "request.timeout.ms", default=40_000, type=KeyType.INT, check=at_least(1), doc="How long one answer may take."
    )
    metadata_max_age_ms: int = key(
        "metadata.max.age.ms", default=300_000, check=at_least(0), doc="Age at which metadata is asked for anew."
    )
    retry_backoff_ms: int = key(
        "retry.backoff.ms", default=100, check=at_least(0), doc="The pause before a failed request is sent again."
    )
    connections_max_idle_ms: int = key(
        "connections.max.idle.ms", default=540_000, doc="Idle time after which a connection is closed."
    )
    security_protocol: str = key(
        "security.protocol",
        default="PLAINTEXT",
        check=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", ignore_case=True),
        doc="Whether connections are encrypted and authenticated.",
    )
    sasl_mechanism: str = key(
        "sasl.mechanism", default="PLAIN", check=one_of(*_MECHANISMS), doc="How the client proves who it is."
    )
    sasl_jaas_config: Password | None = key(
        "sasl.jaas.config", default=None, doc="The login module with username and password, as Java clients write it."
    )
    sasl_username: str | None = key("sasl.username", default=None, doc="The user, where sasl.jaas.config is not given.")
    sasl_password: Password | None = key(
        "sasl.password", default=None, doc="The password that goes with sasl.username."
    )
    oauth_token_url: str | None = key(
        "sasl.oauthbearer.token.endpoint.url",
        default=None,
        doc="Where tokens come from with OAUTHBEARER: an http(s) URL that is asked with the clientId and clientSecret of "
        "sasl.jaas.config, or a file: URL of one token. Without it tokens are unsecured.",
    )
    ssl_truststore_location: str | None = key(
        "ssl.truststore.location",
        default=None,
        aliases=("ssl.ca.location",),
        doc="The file of certificate authorities to trust; the system's without it.",
    )
    ssl_truststore_type: str = key(
        "ssl.truststore.type",
        default="PEM",
        check=one_of("PEM", "PKCS12", "JKS", ignore_case=True),
        doc="The form of the trust store.",
    )
    ssl_keystore_type: str = key(
        "ssl.keystore.type",
        default="PEM",
        check=one_of("PEM", "PKCS12", "JKS", ignore_case=True),
        doc="The form of the key store.",
    )
    ssl_endpoint_identification_algorithm: str = key(
        "ssl.endpoint.identification.algorithm",
        default="https",
        check=one_of("https", "", ignore_case=True),
        doc="https checks that the certificate bears the broker's name; empty does not.",
    )


@config
class ProducerSettings(ConnectionSettings):
    """The settings of a producer, in addition to those of a connection."""

    acks: str = key(
        "acks", default="all", check=one_of("all", "-1", "0", "1"), doc="Who must have a batch before its ack."
    )
    enable_idempotence: bool | None = key(
        "enable.idempotence",
        default=None,
        doc="Whether retries are kept from writing twice; the default is yes with acks=all, else no.",
    )
    compression_type: str = key(
        "compression.type",
        default="none",
        check=one_of("none", "gzip", "snappy", "lz4", "zstd"),
        doc="How batches built from single records are compressed. Finished batches keep their own.",
    )
    linger_ms: int = key(
        "linger.ms", default=0, check=at_least(0), doc="How long a batch of single records waits for more of them."
    )
    batch_size: int = key(
        "batch.size",
        default=131_072,
        type=KeyType.INT,
        check=at_least(1),
        doc="Bytes in a batch built from single records. Larger than Java's: one batch a partition is on its way.",
    )
    max_request_size: int = key(
        "max.request.size", default=1_048_576, type=KeyType.INT, check=at_least(1), doc="Bytes in one record at most."
    )
    transactional_id: str | None = key(
        "transactional.id",
        default=None,
        check=non_empty,
        doc="Makes the producer transactional, and fences its forerunner.",
    )
    transaction_timeout_ms: int = key(
        "transaction.timeout.ms",
        default=60_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="Age at which the broker aborts a transaction.",
    )
    max_in_flight: int = key(
        "max.in.flight.requests.per.connection",
        default=MOST_IN_FLIGHT,
        type=KeyType.INT,
        check=at_least(1),
        doc="Produce requests on their way to a broker at once, 5 at most. Their order is kept: without idempotence there is one.",
    )
    delivery_timeout_ms: int = key(
        "delivery.timeout.ms",
        default=120_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a record may wait for its acknowledgement, all attempts included.",
    )

    @property
    def idempotent(self) -> bool:
        if self.enable_idempotence is None:
            return self.acks in ("all", "-1")
        return self.enable_idempotence

    def problems(self) -> list[Problem]:
        if self.idempotent and self.acks not in ("all", "-1"):
            return [Problem("acks", f"Invalid value {self.acks} for configuration acks: must be all with idempotence")]
        if self.transactional_id is not None and not self.idempotent:
            return [Problem("transactional.id", "transactional.id needs acks=all and idempotence")]
        if self.enable_idempotence and self.max_in_flight > MOST_IN_FLIGHT:
            name = "max.in.flight.requests.per.connection"
            return [Problem(name, f"Must set {name} to at most {MOST_IN_FLIGHT} to use the idempotent producer.")]
        return []


@config
class ConsumerSettings(ConnectionSettings):
    """The settings of a consumer, in addition to those of a connection."""

    group_id: str | None = key("group.id", default=None, doc="The group whose partitions and offsets are shared.")
    group_instance_id: str | None = key(
        "group.instance.id", default=None, check=non_empty, doc="Keeps a member's place over a restart (KIP-345)."
    )
    auto_offset_reset: str = key(
        "auto.offset.reset",
        default="latest",
        check=one_of("earliest", "latest", "none"),
        doc="Where to begin without a committed offset, or when it is gone; none makes that an error.",
    )
    isolation_level: str = key(
        "isolation.level",
        default="read_uncommitted",
        check=one_of("read_uncommitted", "read_committed"),
        doc="Whether records of open and aborted transactions are handed out.",
    )
    fetch_min_bytes: int = key(
        "fetch.min.bytes", default=1, type=KeyType.INT, check=at_least(0), doc="What a fetch waits for."
    )
    fetch_max_bytes: int = key(
        "fetch.max.bytes",
        default=52_428_800,
        type=KeyType.INT,
        check=at_least(1),
        doc="Bytes in one answer, all partitions.",
    )
    fetch_max_wait_ms: int = key(
        "fetch.max.wait.ms",
        default=500,
        type=KeyType.INT,
        check=at_least(0),
        doc="How long the broker waits for fetch.min.bytes.",
    )
    max_partition_fetch_bytes: int = key(
        "max.partition.fetch.bytes",
        default=1_048_576,
        type=KeyType.INT,
        check=at_least(1),
        doc="Bytes of one partition in one answer.",
    )
    check_crcs: bool = key("check.crcs", default=True, doc="Whether each batch is checked for damage.")
    enable_auto_commit: bool = key("enable.auto.commit", default=False, doc="Whether positions are committed by time.")
    auto_commit_interval_ms: int = key(
        "auto.commit.interval.ms", default=5_000, type=KeyType.INT, check=at_least(1), doc="How often, if they are."
    )
    session_timeout_ms: int = key(
        "session.timeout.ms",
        default=45_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="Silence after which a member is gone.",
    )
    heartbeat_interval_ms: int = key(
        "heartbeat.interval.ms",
        default=3_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often a member says it is alive.",
    )
    max_poll_interval_ms: int = key(
        "max.poll.interval.ms",
        default=300_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a member may not fetch.",
    )
    allow_auto_create_topics: bool = key(
        "allow.auto.create.topics",
        default=True,
        doc="Whether the broker may create a topic that is subscribed to and does not exist, if it creates topics on its own.",
    )
    client_rack: str | None = key("client.rack", default=None, doc="Fetch from a replica in this rack (KIP-392).")
    partition_assignment_strategy: list[str] = key(
        "partition.assignment.strategy",
        default=["range"],
        doc="range, roundrobin or sticky, or Java's class names of them.",
    )


S = TypeVar("S", bound=ConnectionSettings)


@dataclass(frozen=True)
class ClientConfig:
    """The address of a cluster and the client settings for it; ``properties`` have Java's names.

    Admin, producers and consumers can share a ClientConfig: each reads the keys it knows, and logs the keys that no
    client knows.
    """

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict)

    def with_properties(self, more: Mapping[str, str]) -> ClientConfig:
        """The same cluster with some settings replaced."""
        return ClientConfig(self.bootstrap_servers, {**self.properties, **more})

    def connection(self) -> ConnectionSettings:
        return self._parse(ConnectionSettings)

    def producer(self) -> ProducerSettings:
        return self._parse(ProducerSettings)

    def consumer(self) -> ConsumerSettings:
        return self._parse(ConsumerSettings)

    @property
    def reads_committed(self) -> bool:
        """Whether readers leave out records of open and aborted transactions (``isolation.level``)."""
        return self.consumer().isolation_level == "read_committed"

    def _parse(self, cls: type[S]) -> S:
        known = [*keys_of(ProducerSettings), *keys_of(ConsumerSettings)]
        ignored = [name for name in unknown_keys(self.properties, known) if name != "bootstrap.servers"]
        if ignored:
            logger.info("client settings that nothing here reads", keys=ignored)
        return parse(cls, self.properties)

    def library_arguments(self, settings: ConnectionSettings) -> dict[str, Any]:
        """The keyword arguments that every aiokafka class accepts."""
        protocol = settings.security_protocol.upper()
        arguments: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers,
            "client_id": settings.client_id,
            "request_timeout_ms": settings.request_timeout_ms,
            "metadata_max_age_ms": settings.metadata_max_age_ms,
            "retry_backoff_ms": settings.retry_backoff_ms,
            "connections_max_idle_ms": settings.connections_max_idle_ms,
            "security_protocol": protocol,
        }
        if protocol.endswith("SSL"):
            check_host = settings.ssl_endpoint_identification_algorithm != ""
            arguments["ssl_context"] = client_context(settings, check_host=check_host)
        if protocol.startswith("SASL"):
            arguments["sasl_mechanism"] = settings.sasl_mechanism
            if settings.sasl_mechanism == "OAUTHBEARER":
                from broker.client.oauth import token_provider

                arguments["sasl_oauth_token_provider"] = token_provider(settings.oauth_token_url, _options(settings))
            else:
                user, password = _credentials(settings)
                arguments |= {"sasl_plain_username": user, "sasl_plain_password": password}
        return arguments


def _options(settings: ConnectionSettings) -> dict[str, str]:
    """The options of the JAAS login module; empty without one."""
    if settings.sasl_jaas_config is None:
        return {}
    try:
        return login_module(settings.sasl_jaas_config.reveal()).options
    except ValueError as error:
        raise ConfigError([Problem("sasl.jaas.config", f"sasl.jaas.config: {error}")]) from error


def _credentials(settings: ConnectionSettings) -> tuple[str | None, str | None]:
    """User and password, from the JAAS line or from the separate keys; (None, None) for mechanisms without them."""
    if settings.sasl_jaas_config is not None:
        options = _options(settings)
        user, password = options.get("username"), options.get("password")
    else:
        user = settings.sasl_username
        password = settings.sasl_password.reveal() if settings.sasl_password is not None else None
    if settings.sasl_mechanism != "GSSAPI" and (user is None or password is None):
        raise ConfigError(
            [
                Problem(
                    "sasl.jaas.config",
                    f"sasl.mechanism={settings.sasl_mechanism} needs a user and a password: set sasl.jaas.config "
                    'to \'... required username="U" password="P";\', or sasl.username and sasl.password',
                )
            ]
        )
    return user, password
