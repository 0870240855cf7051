"""The configuration of listeners: their security protocols, TLS, SASL and limits, each overridable per listener."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, Final

from tidegate.kit.config import KeyType, Password, at_least, config, family, key, keys_of, one_of, parse
from tidegate.kit.errors import ConfigError, Problem
from tidegate.kit.tls import TlsKeys

__all__ = [
    "MECHANISMS",
    "ListenerConfig",
    "SecurityConfig",
    "SecurityProtocol",
    "for_listener",
    "for_mechanism",
    "listener_problems",
]

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

_NO_LIMIT: Final = (1 << 31) - 1
_JAAS: Final = "sasl.jaas.config"
_PRINCIPAL_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


class SecurityProtocol(IntEnum):
    """Kafka's, with the numbers its metadata records have."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def encrypted(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def sasl(self) -> bool:
        return self >= SecurityProtocol.SASL_PLAINTEXT


@config
class ListenerConfig(TlsKeys):
    """Keys that apply to all listeners, or as ``listener.name.<name>.<key>`` to one.

    Keys of SASL can be set for one mechanism of a listener: ``listener.name.<name>.<mechanism>.<key>``.
    """

    max_connections: int = key(
        "max.connections",
        default=_NO_LIMIT,
        type=KeyType.INT,
        check=at_least(0),
        doc="Connections at one time, of the broker or of a listener; at the limit further ones wait to be accepted.",
    )
    max_connection_creation_rate: int = key(
        "max.connection.creation.rate",
        default=_NO_LIMIT,
        type=KeyType.INT,
        check=at_least(0),
        doc="Connections accepted a second, by the broker or by a listener; above that, accepting pauses.",
    )
    keystore_reload: bool = key(
        "ssl.keystore.reload",
        default=False,
        doc="A key of Tidegate's own: whether a key store that changes is read again; new connections get the new certificate.",
    )
    ssl_client_auth: str = key(
        "ssl.client.auth",
        default="none",
        check=one_of("none", "requested", "required", ignore_case=True),
        doc="Whether clients show a certificate. For SASL_SSL it counts only with a listener's prefix.",
    )
    ssl_principal_mapping_rules: str = key(
        "ssl.principal.mapping.rules",
        default="DEFAULT",
        doc="How the name in a client's certificate becomes its principal: RULE:pattern/replacement/[LU], or DEFAULT.",
    )
    sasl_enabled_mechanisms: list[str] = key(
        "sasl.enabled.mechanisms",
        default=["GSSAPI"],
        doc=f"The mechanisms offered, of {', '.join(MECHANISMS)}. Kafka's default, GSSAPI, is not served: name others.",
    )
    sasl_jaas_config: Password | None = key(
        "sasl.jaas.config",
        default=None,
        doc="The login module with its options, as Kafka writes it; always with the prefix of a listener and a mechanism.",
    )
    sasl_server_callback_handler_class: str | None = key(
        "sasl.server.callback.handler.class",
        default=None,
        type=KeyType.CLASS,
        doc="With OAUTHBEARER, a class ending in OAuthBearerValidatorCallbackHandler verifies signed tokens; without "
        "it, tokens are unsecured.",
    )
    sasl_server_max_receive_size: int = key(
        "sasl.server.max.receive.size",
        default=524_288,
        type=KeyType.INT,
        check=at_least(1),
        doc="The largest request that is read before a client is authenticated.",
    )
    connections_max_reauth_ms: int = key(
        "connections.max.reauth.ms",
        default=0,
        check=at_least(0),
        doc="How long a SASL session lasts before the client has to authenticate again; 0 as long as its credentials.",
    )
    oauth_jwks_url: str | None = key(
        "sasl.oauthbearer.jwks.endpoint.url",
        default=None,
        doc="Where the keys (JWKS) are that tokens are signed with: an http(s) or file URL.",
    )
    oauth_jwks_refresh_ms: int = key(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        default=3_600_000,
        check=at_least(1),
        doc="How often the keys are fetched anew.",
    )
    oauth_jwks_retry_ms: int = key(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        default=100,
        check=at_least(1),
        importance="low",
        doc="How long to wait after the keys could not be fetched; twice as long after each further failure.",
    )
    oauth_jwks_retry_max_ms: int = key(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        default=10_000,
        check=at_least(1),
        importance="low",
        doc="The longest such wait.",
    )
    oauth_expected_audience: list[str] = key(
        "sasl.oauthbearer.expected.audience", default=[], doc="Audiences of which a token has to name one."
    )
    oauth_expected_issuer: str | None = key(
        "sasl.oauthbearer.expected.issuer", default=None, doc="The issuer a token has to name."
    )
    oauth_clock_skew_seconds: int = key(
        "sasl.oauthbearer.clock.skew.seconds",
        default=30,
        type=KeyType.INT,
        check=at_least(0),
        doc="How far the issuer's clock may differ.",
    )
    oauth_scope_claim: str = key(
        "sasl.oauthbearer.scope.claim.name", default="scope", doc="The claim that holds the scope."
    )
    oauth_sub_claim: str = key(
        "sasl.oauthbearer.sub.claim.name", default="sub", doc="The claim that holds the name of the principal."
    )


def _pairs(items: list[str]) -> str | None:
    wrong = next((item for item in items if not all(item.rpartition(":")[::2])), None)
    return None if wrong is None else f"{wrong!r} is not of the form name:value"


def _protocols(items: list[str]) -> str | None:
    known = [protocol.name for protocol in SecurityProtocol]
    wrong = next((item for item in items if item.rpartition(":")[2].strip().upper() not in known), None)
    return _pairs(items) or (None if wrong is None else f"{wrong!r} does not name one of {', '.join(known)}")


def _counts(items: list[str]) -> str | None:
    wrong = next((item for item in items if not item.rpartition(":")[2].strip().isdecimal()), None)
    return _pairs(items) or (None if wrong is None else f"{wrong!r} does not end in a number of connections")


@config
class SecurityConfig(ListenerConfig):
    """Keys for connections that concern the broker as a whole."""

    listener_protocols: list[str] = key(
        "listener.security.protocol.map",
        default=[f"{protocol.name}:{protocol.name}" for protocol in SecurityProtocol],
        check=_protocols,
        doc="The security protocol of each listener, as name:protocol.",
    )
    inter_broker_listener: str | None = key(
        "inter.broker.listener.name",
        default=None,
        doc="A listener that the broker's limit of connections does not touch, where there are several.",
    )
    inter_broker_protocol: str | None = key(
        "security.inter.broker.protocol",
        default=None,
        check=one_of(*(protocol.name for protocol in SecurityProtocol), ignore_case=True),
        doc="The same, named by its protocol.",
    )
    controller_listeners: list[str] = key(
        "controller.listener.names",
        default=[],
        importance="high",
        doc="Listeners of Kafka's controllers. They are not opened: this broker is its own controller.",
    )
    principal_builder: str = key(
        "principal.builder.class",
        default=_PRINCIPAL_BUILDER,
        type=KeyType.CLASS,
        importance="low",
        check=one_of(_PRINCIPAL_BUILDER),
        doc="What makes a principal of a connection. Only Kafka's own; others are Java.",
    )
    failed_authentication_delay_ms: int = key(
        "connection.failed.authentication.delay.ms",
        default=100,
        type=KeyType.INT,
        check=at_least(0),
        doc="How long a client that failed to authenticate waits for the answer, and its connection for its end.",
    )
    authentication_timeout_ms: int = key(
        "connections.authentication.timeout.ms",
        default=30_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a client may take for TLS handshake and authentication. A key of Tidegate's own.",
    )
    max_connections_per_ip: int = key(
        "max.connections.per.ip",
        default=_NO_LIMIT,
        type=KeyType.INT,
        check=at_least(0),
        doc="Connections of one address at one time; more are closed as they come.",
    )
    max_connections_per_ip_overrides: list[str] = key(
        "max.connections.per.ip.overrides",
        default=[],
        check=_counts,
        doc="The same for single addresses or host names, as address:number.",
    )
    token_secret_key: Password | None = key(
        "delegation.token.secret.key",
        default=None,
        doc="What delegation tokens are made with; without it there are none.",
    )
    token_max_lifetime_ms: int = key(
        "delegation.token.max.lifetime.ms",
        default=604_800_000,
        check=at_least(1),
        doc="How long a delegation token can be renewed.",
    )
    token_expiry_ms: int = key(
        "delegation.token.expiry.time.ms",
        default=86_400_000,
        check=at_least(1),
        doc="How long a delegation token holds without being renewed.",
    )
    token_expiry_check_ms: int = key(
        "delegation.token.expiry.check.interval.ms",
        default=3_600_000,
        check=at_least(1),
        importance="low",
        doc="How often expired delegation tokens are removed.",
    )
    listener_settings: dict[str, str] = family(
        "listener.name.", doc="Keys of one listener, its name in lower case, before those of the broker."
    )

    def problems(self) -> Iterator[Problem]:
        if self.inter_broker_listener is not None and self.inter_broker_protocol is not None:
            yield Problem(
                "inter.broker.listener.name",
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
            )

    def protocol_of(self, listener: str) -> SecurityProtocol | None:
        """The security protocol of a listener (name in upper case); None if none is defined."""
        for item in self.listener_protocols:
            name, _, protocol = item.rpartition(":")
            if name.strip().upper() == listener:
                return SecurityProtocol[protocol.strip().upper()]
        return None

    def overrides(self, listener: str) -> dict[str, str]:
        """The keys set for a listener, prefix removed."""
        prefix = f"{listener.lower()}."
        return {
            name[len(prefix) :]: value
            for name, value in self.listener_settings.items()
            if name.lower().startswith(prefix)
        }

    def listener(self, name: str) -> ListenerConfig:
        """The configuration of a listener. Raises ConfigError that names keys with their prefix."""
        with _prefixed(f"listener.name.{name.lower()}."):
            return for_listener(self, self.overrides(name))

    def mechanism(self, listener: str, mechanism: str) -> ListenerConfig:
        """The configuration of one mechanism of a listener. Raises ConfigError that names keys with their prefix."""
        with _prefixed(f"listener.name.{listener.lower()}.{mechanism.lower()}."):
            return for_mechanism(self.listener(listener), mechanism, self.overrides(listener))

    def per_ip_overrides(self) -> dict[str, int]:
        """The connection limits by address or host name."""
        return {
            host.strip(): int(count)
            for host, _, count in (item.rpartition(":") for item in self.max_connections_per_ip_overrides)
        }


def listener_problems(security: SecurityConfig, name: str, protocol: SecurityProtocol) -> Iterator[Problem]:
    """The problems in the settings of one listener that can be found without opening files."""
    try:
        settings = security.listener(name)
        mechanisms = settings.sasl_enabled_mechanisms if protocol.sasl else []
        for mechanism in mechanisms:
            if mechanism not in MECHANISMS:
                yield Problem(
                    "sasl.enabled.mechanisms",
                    f"Listener {name} offers {mechanism}, which is not served here: {', '.join(MECHANISMS)} are",
                )
                continue
            listener = security.mechanism(name, mechanism)
            if mechanism == "PLAIN" and listener.sasl_jaas_config is None:
                yield Problem(
                    f"listener.name.{name.lower()}.plain.{_JAAS}",
                    'PLAIN needs its users: org.apache.kafka.common.security.plain.PlainLoginModule required user_NAME="PASSWORD";',
                )
            if listener.sasl_jaas_config is not None:
                from tidegate.kit.jaas import login_module

                try:
                    login_module(listener.sasl_jaas_config.reveal())
                except ValueError as error:
                    yield Problem(f"listener.name.{name.lower()}.{mechanism.lower()}.{_JAAS}", str(error))
        if protocol.sasl and not mechanisms:
            yield Problem("sasl.enabled.mechanisms", f"Listener {name} needs a mechanism: {', '.join(MECHANISMS)}")
        if protocol.encrypted and settings.ssl_keystore_location is None and settings.ssl_keystore_key is None:
            yield Problem(
                "ssl.keystore.location",
                f"Listener {name} needs a key store: ssl.keystore.location, or ssl.keystore.key and "
                "ssl.keystore.certificate.chain",
            )
    except ConfigError as error:
        yield from error.problems


@contextmanager
def _prefixed(prefix: str) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        problems = [
            Problem(
                prefix + problem.key,
                problem.message.replace(f"configuration {problem.key}", f"configuration {prefix}{problem.key}"),
            )
            for problem in error.problems
        ]
        raise ConfigError(problems) from error


def for_listener(broker: ListenerConfig, overrides: Mapping[str, str]) -> ListenerConfig:
    """The effective configuration of one listener: its own keys (prefix removed), then the broker's.

    Raises ConfigError.
    """
    values: dict[str, Any] = {
        config_key.name: getattr(broker, config_key.attribute) for config_key in keys_of(ListenerConfig)
    }
    return parse(ListenerConfig, {**values, **overrides})


def for_mechanism(listener: ListenerConfig, mechanism: str, overrides: Mapping[str, str]) -> ListenerConfig:
    """The effective configuration of one mechanism of a listener: ``<mechanism>.<key>``, then the listener's. Raises
    ConfigError.

    A ``sasl.jaas.config`` without the mechanism's prefix is ignored, as in Kafka.
    """
    prefix = f"{mechanism.lower()}."
    values: dict[str, Any] = {
        config_key.name: getattr(listener, config_key.attribute) for config_key in keys_of(ListenerConfig)
    }
    values[_JAAS] = None
    listener_keys = {name.removeprefix(prefix): value for name, value in overrides.items() if name.startswith(prefix)}
    return parse(ListenerConfig, {**values, **listener_keys})
