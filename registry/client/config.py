"""A client's settings for a registry, under the names of Confluent's Java client."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

from registry.client.credentials import ClientCredentials, StaticToken
from tidegate.kit.config import Password, at_least, config, family, key, non_empty, one_of, parse
from tidegate.kit.errors import ConfigError, Problem
from tidegate.kit.tls import TlsKeys, client_context

__all__ = ["RegistryClientConfig"]

_SSL = "schema.registry.ssl."


@config
class RegistryClientConfig:
    """A client's settings for a registry, under the names of Confluent's serializers."""

    url: str = key(
        "schema.registry.url",
        check=non_empty,
        doc="Addresses of schema registries, separated by commas; the next is tried when one does not answer.",
        importance="high",
    )
    credentials_source: str = key(
        "basic.auth.credentials.source",
        default="URL",
        aliases=("schema.registry.basic.auth.credentials.source",),
        check=one_of("URL", "USER_INFO", "SASL_INHERIT"),
        doc="Where user and password are: in the addresses (http://user:password@host), in basic.auth.user.info, or in "
        "sasl.jaas.config. basic.auth.user.info counts in any case where it is given.",
    )
    user_info: Password | None = key(
        "basic.auth.user.info",
        default=None,
        aliases=("schema.registry.basic.auth.user.info",),
        doc="user:password for HTTP basic authentication.",
    )
    jaas_config: Password | None = key(
        "sasl.jaas.config", default=None, doc="The Kafka client's login module, for SASL_INHERIT."
    )
    bearer_source: str = key(
        "bearer.auth.credentials.source",
        default="STATIC_TOKEN",
        check=one_of("STATIC_TOKEN", "OAUTHBEARER"),
        doc="Where bearer tokens come from: bearer.auth.token, or an issuer that is asked for them.",
    )
    bearer_token: Password | None = key("bearer.auth.token", default=None, doc="A token for bearer authentication.")
    issuer_url: str | None = key(
        "bearer.auth.issuer.endpoint.url", default=None, doc="With OAUTHBEARER, where tokens are asked for."
    )
    client_id: str | None = key("bearer.auth.client.id", default=None, doc="With OAUTHBEARER, who asks.")
    client_secret: Password | None = key("bearer.auth.client.secret", default=None, doc="With OAUTHBEARER, its secret.")
    scope: str | None = key("bearer.auth.scope", default=None, doc="With OAUTHBEARER, the scope that is asked for.")
    logical_cluster: str | None = key(
        "bearer.auth.logical.cluster", default=None, importance="low", doc="The header target-sr-cluster of requests."
    )
    identity_pool: str | None = key(
        "bearer.auth.identity.pool.id",
        default=None,
        importance="low",
        doc="The header Confluent-Identity-Pool-Id of requests.",
    )
    ca_location: str | None = key(
        "schema.registry.ssl.ca.location",
        default=None,
        aliases=("ssl.ca.location",),
        doc="A PEM file of the authorities that may have signed the registry's certificate; the system's otherwise. The "
        "same as schema.registry.ssl.truststore.location with type PEM.",
    )
    tls: dict[str, str] = family(
        _SSL,
        doc="TLS keys as of a Kafka client: truststore.*, keystore.*, key.password, enabled.protocols, "
        "endpoint.identification.algorithm (empty: any name).",
    )
    headers: dict[str, str] = family("request.header.", doc="Headers that every request carries, by their names.")
    proxy_host: str | None = key("proxy.host", default=None, importance="low", doc="An HTTP proxy to go through.")
    proxy_port: int | None = key("proxy.port", default=None, importance="low", doc="Its port.")
    connect_timeout_ms: int = key(
        "http.connect.timeout.ms",
        default=10_000,
        check=at_least(1),
        doc="How long a registry may take to accept a connection.",
        importance="low",
    )
    timeout_ms: int = key(
        "http.read.timeout.ms", default=30_000, doc="How long one request may take.", importance="low"
    )
    max_retries: int = key(
        "max.retries", default=3, check=at_least(0), doc="How often a failed request is sent again.", importance="low"
    )
    retry_wait_ms: int = key(
        "retries.wait.ms",
        default=200,
        check=at_least(0),
        doc="The pause before the first repetition; it doubles with each.",
        importance="low",
    )
    retry_max_wait_ms: int = key(
        "retries.max.wait.ms", default=2000, check=at_least(0), doc="The longest pause.", importance="low"
    )

    def problems(self) -> Iterator[Problem]:
        if self.credentials_source == "SASL_INHERIT" and self.jaas_config is None and self.user_info is None:
            yield Problem("sasl.jaas.config", "basic.auth.credentials.source=SASL_INHERIT needs sasl.jaas.config")
        if self.credentials_source == "USER_INFO" and self.user_info is None:
            yield Problem("basic.auth.user.info", "basic.auth.credentials.source=USER_INFO needs basic.auth.user.info")
        if self.bearer_source == "OAUTHBEARER":
            missing = [
                name
                for name, value in (
                    ("bearer.auth.issuer.endpoint.url", self.issuer_url),
                    ("bearer.auth.client.id", self.client_id),
                    ("bearer.auth.client.secret", self.client_secret),
                )
                if value is None
            ]
            if missing:
                yield Problem(missing[0], f"bearer.auth.credentials.source=OAUTHBEARER needs {', '.join(missing)}")
        if self.proxy_host is not None and self.proxy_port is None:
            yield Problem("proxy.port", "proxy.host needs proxy.port")

    def basic_credentials(self) -> tuple[str, str] | None:
        """User and password; None if they are in the addresses or there are none. Raises ConfigError."""
        if self.user_info is not None:
            user, _, password = self.user_info.reveal().partition(":")
            return user, password
        if self.credentials_source != "SASL_INHERIT" or self.jaas_config is None:
            return None
        from tidegate.kit.jaas import login_module

        try:
            options = login_module(self.jaas_config.reveal()).options
        except ValueError as error:
            raise ConfigError([Problem("sasl.jaas.config", f"sasl.jaas.config: {error}")]) from error
        return options.get("username", ""), options.get("password", "")

    def bearer(self) -> StaticToken | ClientCredentials | None:
        """The source of bearer tokens for requests, if any."""
        if self.bearer_source == "OAUTHBEARER" and self.client_secret is not None:
            return ClientCredentials(
                self.issuer_url or "",
                self.client_id or "",
                self.client_secret.reveal(),
                self.scope,
                self.timeout_ms / 1000,
            )
        return StaticToken(self.bearer_token.reveal()) if self.bearer_token is not None else None

    def tls_context(self) -> ssl.SSLContext | None:
        """The TLS context for connections; None for the default.

        Raises ConfigError that names keys with their prefix.
        """
        ssl_keys = {f"ssl.{name}": value for name, value in self.tls.items() if name != "ca.location"}
        check_host = ssl_keys.pop("ssl.endpoint.identification.algorithm", "https") != ""
        if self.ca_location is not None:
            ssl_keys |= {"ssl.truststore.location": self.ca_location, "ssl.truststore.type": "PEM"}
        if not ssl_keys and check_host:
            return None
        try:
            return client_context(parse(TlsKeys, ssl_keys), check_host=check_host)
        except ConfigError as error:
            prefix = "schema.registry."
            raise ConfigError(
                [
                    Problem(prefix + problem.key, problem.message.replace(problem.key, prefix + problem.key))
                    for problem in error.problems
                ]
            ) from error

    def all_headers(self) -> dict[str, str]:
        """The headers of requests in addition to the usual ones."""
        by_header = {"target-sr-cluster": self.logical_cluster, "Confluent-Identity-Pool-Id": self.identity_pool}
        return {**{name: value for name, value in by_header.items() if value is not None}, **self.headers}

    def proxies(self) -> dict[str, str]:
        """The proxy by scheme, in the form ``requests`` expects."""
        if self.proxy_host is None:
            return {}
        return dict.fromkeys(("http", "https"), f"http://{self.proxy_host}:{self.proxy_port}")
