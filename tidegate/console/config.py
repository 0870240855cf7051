"""The console's configuration keys."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from events.config import DEFAULT_PASSWORD, DEFAULT_USER
from tidegate.kit.addresses import valid_address
from tidegate.kit.config import KeyType, Password, at_least, config, family, key, one_of
from tidegate.kit.errors import Problem
from tidegate.kit.http_security import BrowserKeys
from tidegate.kit.tls import TlsKeys

__all__ = ["ConsoleConfig"]


def _url_or_nothing(value: str) -> str | None:
    parts = urlsplit(value)
    if not value or (parts.scheme in ("http", "https") and parts.netloc):
        return None
    return f"{value!r} is no address: give http://HOST:PORT, https://HOST:PORT or nothing"


@config
class ConsoleConfig(TlsKeys, BrowserKeys):
    """All keys of the console."""

    listen: str = key(
        "http.listen",
        default="127.0.0.1:8080",
        check=valid_address,
        doc="Where browsers reach the console; port 0 takes a free one. With a key store it speaks TLS.",
        importance="high",
    )
    keystore_reload: bool = key(
        "ssl.keystore.reload",
        default=False,
        importance="low",
        doc="Whether a key store that changes is read again; new connections get the new certificate.",
    )
    bootstrap_servers: str = key(
        "bootstrap.servers",
        default="127.0.0.1:9092",
        doc="The Kafka whose topics and groups it shows, as host:port, separated by commas; nothing leaves those pages out.",
        importance="high",
    )
    kafka: dict[str, str] = family("kafka.", doc="Client settings for that Kafka, as a Java client takes them.")
    kafka_login: str = key(
        "kafka.client.login",
        default="user",
        check=one_of("user", "configured"),
        doc="Who the console is at a Kafka that asks for a login: the user of the page, with the password of the login page, or the one "
        "of the settings after kafka., which only users with the right admin may use if users.file names the users.",
    )
    connect_url: str = key(
        "connect.url",
        default="http://127.0.0.1:8083",
        check=_url_or_nothing,
        doc="The Connect worker whose connectors it shows; nothing leaves those pages out.",
        importance="high",
    )
    registry_url: str = key(
        "schema.registry.url",
        default="http://127.0.0.1:8081",
        check=_url_or_nothing,
        doc="The schema registry by which records are decoded, and whose subjects it shows; nothing leaves them out.",
        importance="high",
    )
    events_url: str = key(
        "events.url",
        default="http://127.0.0.1:8090",
        check=_url_or_nothing,
        doc="The events service whose definitions it shows; nothing leaves those pages out.",
        importance="high",
    )
    broker_metrics_url: str = key(
        "broker.metrics.url",
        default="",
        check=_url_or_nothing,
        doc="The metrics of the broker, for the rate of records; nothing leaves it out.",
    )
    data_dir: str = key(
        "data.dir",
        default="",
        doc="The folder of a platform on this machine, whose components, memory and disk it shows; nothing leaves them out.",
    )
    users_file: str | None = key(
        "users.file",
        default=None,
        doc="The file of the platform's users (`tidegate users`), who log in on a page. Read again when it changes.",
    )
    authentication_method: str = key(
        "authentication.method",
        default="NONE",
        check=one_of("NONE", "BASIC"),
        doc="BASIC asks for a user and a password, which the Connect worker at connect.url checks. users.file asks without it.",
    )
    session_minutes: int = key(
        "session.idle.minutes",
        default=60,
        type=KeyType.INT,
        check=at_least(1),
        doc="After how many minutes without a request a login ends. Pages that refresh themselves count as requests.",
    )
    events_user: str = key(
        "events.user",
        default=DEFAULT_USER,
        doc="Who the console is at the events service for everybody; nothing makes each user log in there as themselves.",
    )
    events_password: Password = key(
        "events.password", default=Password(DEFAULT_PASSWORD), doc="The password of events.user."
    )
    monitor_user: str = key(
        "monitor.user",
        default="",
        doc="Who the console is at the Connect worker when it counts rows and lag for the lines of the last hour. Without it, "
        "where users log in, there are no such lines.",
    )
    monitor_password: Password | None = key("monitor.password", default=None, doc="The password of monitor.user.")

    @property
    def asks_login(self) -> bool:
        """Whether users log in."""
        return self.users_file is not None or self.authentication_method == "BASIC"

    @property
    def open_listeners(self) -> list[str]:
        """The addresses that other machines reach without a login."""
        from tidegate.kit.addresses import host_port, is_loopback

        return [] if self.asks_login or is_loopback(host_port(self.listen)[0]) else [self.listen]

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.authentication_method == "BASIC" and self.users_file is None and not self.connect_url:
            yield Problem(
                "authentication.method",
                "Invalid value BASIC for configuration authentication.method: connect.url must name the worker that checks logins",
            )
        if self.ssl_truststore_location and self.ssl_truststore_type.upper() != "PEM":
            yield Problem(
                "ssl.truststore.type",
                f"Invalid value {self.ssl_truststore_type} for configuration ssl.truststore.type: the console takes PEM",
            )
