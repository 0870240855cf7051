"""The configuration keys of the events service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tidegate.kit.addresses import host_port, is_loopback, valid_address
from tidegate.kit.config import Password, at_least, between, config, family, key, one_of
from tidegate.kit.errors import Problem
from tidegate.kit.http_security import BrowserKeys

__all__ = ["ACCOUNTS_FILE", "DEFAULT_PASSWORD", "DEFAULT_USER", "EventsConfig"]

DEFAULT_USER = "developer@tidegate.local"
DEFAULT_PASSWORD = "tidegate-dev"
ACCOUNTS_FILE = "accounts.json"


def _address_or_nothing(value: str) -> str | None:
    return valid_address(value) if value else None


REGISTRY_PATIENCE: Final = {"http.connect.timeout.ms": "5000", "http.read.timeout.ms": "5000", "max.retries": "2"}
"""Timeout of the registry client, because callers wait for the answer."""


@config
class EventsConfig(BrowserKeys):
    """All keys of the events service. A port of 0 selects a free one."""

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
    tls_dir: str = key(
        "tls.dir",
        default="",
        doc="Where the certificate of the TLS faces and its authority are kept; made where they are not there. [data.dir]/tls by default.",
    )
    users_file: str | None = key(
        "users.file",
        default=None,
        doc="The file of the platform's users (`tidegate users`), who may log in with their rights on events. Read again when it changes.",
    )
    data_dir: str = key(
        "data.dir",
        default="data/events",
        doc="Where the development CA and the session key are kept.",
        importance="high",
    )
    http_listen: str = key(
        "http.listen", default="127.0.0.1:8090", check=valid_address, doc="REST, SOAP login, OAuth and CometD, plain."
    )
    http_tls: bool = key(
        "http.tls",
        default=False,
        doc="Whether http.listen takes TLS only, too: where others than this machine reach it.",
    )
    https_listen: str = key(
        "https.listen",
        default="127.0.0.1:8443",
        check=valid_address,
        doc="The same over TLS, for clients that insist on it.",
    )
    pubsub_listen: str = key(
        "pubsub.listen", default="127.0.0.1:7443", check=valid_address, doc="The Pub/Sub API (gRPC) over TLS."
    )
    pubsub_plain_listen: str = key(
        "pubsub.plain.listen",
        default="127.0.0.1:7080",
        check=_address_or_nothing,
        doc="The Pub/Sub API (gRPC), plain. Empty: nowhere, as `tidegate up` has it on a platform with users.",
    )
    user: str = key(
        "events.user",
        default=DEFAULT_USER,
        doc="The user who may do everything; empty: there is none but those of the accounts file.",
    )
    password: Password = key("events.password", default=DEFAULT_PASSWORD, doc="The password of that user.")
    security_token: Password = key(
        "events.security.token",
        default="",
        doc="The security token of that user: set, it has to follow the password, as with Salesforce.",
        importance="low",
    )
    client_id: str = key(
        "events.client.id",
        default="tidegate",
        doc="The connected app that acts as that user by its own credentials; empty: there is none but those of the accounts file.",
    )
    client_secret: Password = key(
        "events.client.secret", default=DEFAULT_PASSWORD, doc="The secret of that connected app."
    )
    client_certificate: str = key(
        "events.client.certificate",
        default="",
        doc="A PEM file with the certificate or the public key by which JWTs of that connected app are known.",
        importance="low",
    )
    callback_urls: list[str] = key(
        "events.client.callback.urls",
        default=("http://localhost:1717/OauthRedirect",),
        doc="Where that connected app may be sent an authorization code.",
        importance="low",
    )
    accounts_file: str = key(
        "events.accounts.file",
        default="",
        doc="More users and connected apps; empty: accounts.json in the data folder. It is read again when it changes.",
    )
    jwt_audiences: list[str] = key(
        "events.jwt.audiences",
        default=(),
        doc="For whom the JWT of a connected app may be meant, besides Salesforce's login addresses and this service's own.",
        importance="low",
    )
    org_id: str = key(
        "events.org.id",
        default="00DTG0000000001",
        check=lambda value: (
            None
            if len(value) in (15, 18) and value.isalnum() and value.isascii() and value.startswith("00D")
            else "must be an organization id: 00D and 12 more letters or digits"
        ),
        doc="The 15- or 18-character id of the organization that clients see.",
        importance="low",
    )
    session_timeout_ms: int = key(
        "events.session.timeout.ms",
        default=12 * 3600 * 1000,
        check=at_least(1000),
        doc="How long a login lasts.",
    )
    refresh_timeout_ms: int = key(
        "events.refresh.token.timeout.ms",
        default=-1,
        check=at_least(-1),
        doc="How long a refresh token lasts; -1: until it is revoked.",
        importance="low",
    )
    retention_ms: int = key(
        "events.retention.ms",
        default=72 * 3600 * 1000,
        check=at_least(-1),
        doc="How long a newly defined event's topic keeps events; -1 keeps them for good.",
    )
    publish_timeout_ms: int = key(
        "events.publish.timeout.ms",
        default=30_000,
        check=at_least(100),
        doc="How long a publisher waits for the log's acknowledgement before it is told that there was none.",
    )
    definition_refresh_ms: int = key(
        "events.definition.refresh.ms",
        default=2000,
        check=at_least(0),
        doc="For how long a definition read from the registry is taken as current.",
        importance="low",
    )
    tail_bytes: int = key(
        "events.tail.bytes",
        default=4 * 1024 * 1024,
        check=at_least(64 * 1024),
        doc="Recent events of one topic kept in memory for its subscribers; who is further behind reads from the log.",
        importance="low",
    )
    connect_timeout_ms: int = key(
        "cometd.connect.timeout.ms",
        default=110_000,
        check=between(100, 3_600_000),
        doc="How long a CometD connect waits for an event.",
    )
    max_interval_ms: int = key(
        "cometd.max.interval.ms",
        default=40_000,
        check=at_least(100),
        doc="How long a CometD session outlives its last connect.",
    )
    max_sessions: int = key(
        "cometd.max.sessions",
        default=2000,
        check=at_least(1),
        doc="CometD sessions at the same time.",
        importance="low",
    )
    max_user_sessions: int = key(
        "cometd.max.sessions.per.user",
        default=500,
        check=at_least(1),
        doc="CometD sessions of one user at the same time, so that no user takes them all.",
        importance="low",
    )
    max_streams: int = key(
        "pubsub.max.streams",
        default=-1,
        check=at_least(-1),
        doc="Streams of the Pub/Sub API at the same time, of publishers and subscribers; -1: no limit.",
        importance="low",
    )
    max_event_bytes: int = key(
        "events.limit.event.bytes",
        default=1024 * 1024,
        check=between(1, 1024 * 1024),
        doc="The size of one event's Avro body.",
        importance="low",
    )
    hourly_published: int = key(
        "events.limit.published.hourly",
        default=-1,
        check=at_least(-1),
        doc="Events published within an hour; -1: no limit.",
    )
    daily_delivered: int = key(
        "events.limit.delivered.daily",
        default=-1,
        check=at_least(-1),
        doc="Events delivered within 24 hours, counted for each subscriber; -1: no limit.",
    )
    daily_requests: int = key(
        "events.limit.requests.daily",
        default=-1,
        check=at_least(-1),
        doc="Requests of the REST and SOAP APIs within 24 hours; -1: no limit.",
    )
    stale_replay: str = key(
        "events.stale.replay",
        default="error",
        check=one_of("error", "earliest", "latest"),
        doc="Where a subscriber begins whose replay id is stale or corrupt: it is refused as Salesforce does, or gets all "
        "that is kept, or what is new. A subscriber may choose for itself.",
    )
    keepalive_ms: int = key(
        "pubsub.keepalive.ms",
        default=60_000,
        check=between(100, 270_000),
        doc="After how long without events a Pub/Sub subscriber gets an empty response with its latest replay id.",
    )

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        used = {self.password.reveal()} if self.user else set()
        used |= {self.client_secret.reveal()} if self.client_id else set()
        guessed = {DEFAULT_PASSWORD, ""} & used
        for name, value in (
            ("http.listen", self.http_listen),
            ("https.listen", self.https_listen),
            ("pubsub.listen", self.pubsub_listen),
            ("pubsub.plain.listen", self.pubsub_plain_listen),
        ):
            if guessed and value and not is_loopback(host_port(value)[0]):
                yield Problem(
                    name,
                    f"Invalid value {value} for configuration {name}: others can reach it, and events.password or "
                    "events.client.secret is empty or the published default; set both, or listen on 127.0.0.1",
                )

    @property
    def tls_path(self) -> Path:
        return Path(self.tls_dir) if self.tls_dir else self.data_path / "tls"

    @property
    def registry_settings(self) -> dict[str, str]:
        """Settings for a registry client with a short timeout."""
        return {**REGISTRY_PATIENCE, **self.registry, "schema.registry.url": self.registry_url}

    @property
    def data_path(self) -> Path:
        return Path(self.data_dir)

    @property
    def accounts_path(self) -> Path:
        return Path(self.accounts_file) if self.accounts_file else self.data_path / ACCOUNTS_FILE
