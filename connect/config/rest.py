"""Keys for the worker's listeners and users, under Kafka Connect's names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tidegate.kit.addresses import open_urls
from tidegate.kit.config import config, key, one_of, parse
from tidegate.kit.errors import Problem
from tidegate.kit.http_security import BrowserKeys
from tidegate.kit.tls import TlsKeys

__all__ = ["BASIC_AUTH", "Listener", "RestConfig", "tls_keys"]

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-fA-F:]+\]|[^:/\[\]]*):(?P<port>\d{1,5})/?", re.IGNORECASE
)
_HTTPS_PREFIX: Final = "listeners.https."
_ADMIN_PREFIX: Final = "admin.listeners.https."
BASIC_AUTH: Final = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"


class Listener(NamedTuple):
    """One address; 0.0.0.0 means all interfaces."""

    scheme: str
    host: str
    port: int


@config
class RestConfig(BrowserKeys):
    """The REST API of a worker."""

    listener_urls: list[str] = key(
        "listeners",
        default=["http://127.0.0.1:8083"],
        importance="low",
        doc="Where the REST face listens: http:// or https:// with host and port, separated by commas; an empty host is every "
        "interface, port 0 takes a free one. TLS keys of https are those of the worker, or listeners.https.ssl.* instead.",
    )
    admin_urls: list[str] | None = key(
        "admin.listeners",
        default=None,
        importance="low",
        doc="Where /admin is answered instead: like listeners (TLS keys: admin.listeners.https.ssl.*). Without it on "
        "the ordinary listeners; empty switches it off.",
    )
    advertised_host: str | None = key(
        "rest.advertised.host.name", default=None, importance="low", doc="Host name by which others reach this worker."
    )
    advertised_port: int | None = key("rest.advertised.port", default=None, importance="low", doc="Port likewise.")
    advertised_scheme: str | None = key(
        "rest.advertised.listener",
        default=None,
        check=one_of("http", "https", ignore_case=True),
        importance="low",
        doc="By which kind of listener other workers reach this one; the first listener's by default.",
    )
    client_auth: str = key(
        "ssl.client.auth",
        default="none",
        check=one_of("none", "requested", "required", ignore_case=True),
        importance="low",
        doc="Whether clients of https listeners show a certificate that the trust store knows.",
    )
    keystore_reload: bool = key(
        "ssl.keystore.reload",
        default=False,
        importance="low",
        doc="A key of Tidegate's own: whether a key store that changes is read again; new connections get the new certificate.",
    )
    extensions: list[str] = key(
        "rest.extension.classes",
        default=[],
        importance="low",
        doc=f"{BASIC_AUTH} asks each client for a user and a password. Others are Java's own and refused.",
    )
    login_config: str | None = key(
        "java.security.auth.login.config",
        default=None,
        importance="low",
        doc="The JAAS file whose entry KafkaConnect has a PropertyFileLoginModule with the file of users. Kafka Connect takes "
        "it as a system property of Java.",
    )

    users_file: str | None = key(
        "users.file",
        default=None,
        importance="low",
        doc="A key of Tidegate's own: the file of the platform's users (`tidegate users`), who log in by BASIC; rights on connectors and "
        "on the platform decide. Read again when it changes.",
    )

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        for name, urls in (("listeners", self.listener_urls), ("admin.listeners", self.admin_urls or ())):
            for url in urls:
                if not _URL.fullmatch(url):
                    yield Problem(
                        name, f"Invalid value {url} for configuration {name}: use http://HOST:PORT or https://HOST:PORT"
                    )
        if not self.listener_urls:
            yield Problem("listeners", "Invalid value  for configuration listeners: give one at least")
        for extension in self.extensions:
            if extension != BASIC_AUTH:
                yield Problem(
                    "rest.extension.classes",
                    f"Invalid value {extension} for configuration rest.extension.classes: only {BASIC_AUTH} is there",
                )
        if self.asks_users and self.login_config is None:
            yield Problem(
                "java.security.auth.login.config",
                f"{BASIC_AUTH} needs a JAAS file with an entry KafkaConnect: set java.security.auth.login.config to its path",
            )

    @property
    def asks_users(self) -> bool:
        return BASIC_AUTH in self.extensions

    @property
    def listeners(self) -> list[Listener]:
        return [_listener(url) for url in self.listener_urls]

    @property
    def admin_listeners(self) -> list[Listener]:
        """The separate listeners for administration."""
        return [_listener(url) for url in self.admin_urls or ()]

    @property
    def open_listeners(self) -> list[str]:
        """Listeners that other machines can reach and that require neither a login nor a certificate."""
        if self.users_file is not None or self.asks_users:
            return []
        return open_urls([*self.listeners, *self.admin_listeners], client_auth=self.client_auth)

    @property
    def advertised(self) -> Listener:
        """The listener advertised to other workers."""
        scheme = (self.advertised_scheme or "").lower()
        return next(
            (listener for listener in self.listeners if not scheme or listener.scheme == scheme), self.listeners[0]
        )


def tls_keys(properties: Mapping[str, str], *, admin: bool = False) -> TlsKeys:
    """The TLS keys of https listeners: with their prefix, otherwise the worker's own. Raises ConfigError."""
    prefix = _ADMIN_PREFIX if admin else _HTTPS_PREFIX
    tls_settings = {name.removeprefix(prefix): value for name, value in properties.items() if name.startswith(prefix)}
    return parse(TlsKeys, tls_settings or properties)


def _listener(url: str) -> Listener:
    match = _URL.fullmatch(url)
    assert match is not None
    return Listener(match["scheme"].lower(), match["host"].strip("[]") or "0.0.0.0", int(match["port"]))
