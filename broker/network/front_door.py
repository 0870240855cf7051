"""Admits clients to one listener: TLS and SASL, as its protocol requires, before the broker handles their requests."""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Callable, Coroutine
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from broker.api.connection import ConnectionRefusal
from broker.network.connection import Connection
from broker.security.config import ListenerConfig, SecurityConfig
from broker.security.principal import Principal
from broker.security.scram import ScramMechanism
from tidegate.kit.errors import ConfigError, Problem
from tidegate.kit.logs import get_logger
from tidegate.kit.scram import MIN_ITERATIONS, ScramCredential, make_credential
from tidegate.kit.tls import follow_identity

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.config import BrokerConfig
    from broker.network.sasl_authenticator import Requests, SaslListener
    from broker.security.certificate_names import MappingRules
    from broker.security.sasl.jwks import Jwks
    from broker.security.sasl.jwt import TokenValidator
    from broker.security.sasl.mechanism import Mechanism
    from broker.security.sasl.scram import Login

__all__ = ["FrontDoor"]

logger = get_logger(__name__)

_VALIDATOR = "OAuthBearerValidatorCallbackHandler"
_UNSECURED = "OAuthBearerUnsecuredValidatorCallbackHandler"


@lru_cache(1024)
def _delegated_credential(digest: str, password: str) -> ScramCredential:
    """Remembered, since it takes milliseconds and its salt must be the same for each try to log in."""
    return make_credential(digest, password)


class FrontDoor:
    """Creates the connections of one listener. Raises ConfigError for unusable key stores and settings."""

    def __init__(self, name: str, config: BrokerConfig, broker: Broker, requests: Requests) -> None:
        self.name = name
        self.protocol = protocol = broker.protocols[name]
        self._broker = broker
        self._requests = requests
        self._config: SecurityConfig = config
        self._most_bytes = config.socket_request_max_bytes
        self._key_sets: list[Jwks] = []
        self.settings = self._config.listener(name)
        self._sasl = self._sasl_listener() if protocol.sasl else None
        self._context: ssl.SSLContext | None = None
        self._rules: MappingRules | None = None
        if protocol.encrypted:
            self._context = self._tls_context()
            self._rules = self._mapping_rules()

    async def prepare(self) -> list[Coroutine[Any, Any, None]]:
        """Fetch the keys for verifying tokens. Returns the coroutines that must run as long as the listener."""
        for keys in self._key_sets:
            try:
                await keys.load()
            except (OSError, ValueError) as error:
                logger.warning("keys of tokens cannot be fetched", listener=self.name, error=str(error))
                keys.want()
        running: list[Coroutine[Any, Any, None]] = [keys.run() for keys in self._key_sets]
        if self._context is not None and self.settings.keystore_reload and self.settings.ssl_keystore_location:
            running.append(follow_identity(self._context, self.settings))
        return running

    def receive(self, sock: socket.socket, closed: Callable[[Connection, str | None], None]) -> Connection:
        """Start serving an accepted client."""
        common: dict[str, Any] = {"closed": closed, "listener": self.name}
        if self._sasl is not None:
            from broker.network.sasl_authenticator import SaslAuthenticator

            common["handle"] = SaslAuthenticator(self._sasl)
            common["max_frame_bytes"] = self.settings.sasl_server_max_receive_size
        else:
            common["handle"] = self._requests
            common["max_frame_bytes"] = self._most_bytes
        if self._context is not None:
            from broker.network.tls import TlsConnection

            return TlsConnection(sock, context=self._context, established=self._established, **common)
        return Connection(sock, authenticated=self._sasl is None, **common)

    # TLS

    def _tls_context(self) -> ssl.SSLContext:
        from broker.security.tls import tls_context

        overridden = "ssl.client.auth" in self._config.overrides(self.name)
        return tls_context(self.settings, self.protocol, client_auth_is_own=overridden)

    def _mapping_rules(self) -> MappingRules:
        from broker.security.certificate_names import MappingRules

        try:
            return MappingRules(self.settings.ssl_principal_mapping_rules)
        except ValueError as error:
            raise ConfigError([Problem("ssl.principal.mapping.rules", str(error))]) from error

    def _established(self, connection: Connection, certificate: bytes | None) -> None:
        if self._sasl is not None:
            return  # SASL identifies the client
        if certificate is not None and self._rules is not None:
            from broker.security.certificate_names import subject_name

            try:
                name = subject_name(certificate)
            except (ValueError, IndexError) as error:
                raise ConnectionRefusal(f"the client's certificate cannot be read: {error}") from error
            mapped = self._rules.principal(name)
            if mapped is None:
                raise ConnectionRefusal(f"no rule of ssl.principal.mapping.rules applies to {name}")
            connection.principal = Principal("User", mapped)
        connection.serve(self._requests, self._most_bytes)

    # SASL

    def _sasl_listener(self) -> SaslListener:
        from broker.network.sasl_authenticator import SaslListener

        mechanisms: dict[str, Callable[[], Mechanism]] = {}
        sessions: dict[str, int] = {}
        for name in self.settings.sasl_enabled_mechanisms:
            listener = self._config.mechanism(self.name, name)
            mechanisms[name] = self._mechanism(name, listener)
            sessions[name] = listener.connections_max_reauth_ms
        return SaslListener(
            mechanisms, sessions, self._requests, self._most_bytes, self._config.failed_authentication_delay_ms / 1000
        )

    def _mechanism(self, name: str, listener: ListenerConfig) -> Callable[[], Mechanism]:
        from tidegate.kit.jaas import login_module

        module = login_module(listener.sasl_jaas_config.reveal()) if listener.sasl_jaas_config is not None else None
        if name == "PLAIN":
            from broker.security.sasl.plain import Plain, users_of

            return partial(Plain, users_of(module) if module is not None else {})
        if name == "OAUTHBEARER":
            from broker.security.sasl.jwt import UnsecuredTokens
            from broker.security.sasl.oauthbearer import OAuthBearer

            handler = (listener.sasl_server_callback_handler_class or _UNSECURED).rpartition(".")[2]
            if handler == _UNSECURED:
                logger.warning(
                    "takes OAUTHBEARER tokens that nobody signed: for development only",
                    listener=self.name,
                    give=_VALIDATOR,
                )
                try:
                    return partial(OAuthBearer, UnsecuredTokens(module))
                except ValueError as error:
                    raise ConfigError([Problem("sasl.jaas.config", str(error))]) from error
            return partial(OAuthBearer, self._signed_tokens(handler, listener))
        from broker.security.sasl.scram import Scram

        mechanism = next(scram_mechanism for scram_mechanism in ScramMechanism if scram_mechanism.title == name)
        return partial(Scram, mechanism, self._look_up)

    def _signed_tokens(self, handler: str, listener: ListenerConfig) -> TokenValidator:
        from broker.security.sasl.jwks import Jwks
        from broker.security.sasl.jwt import SignedTokens

        if handler != _VALIDATOR:
            raise ConfigError(
                [
                    Problem(
                        "sasl.server.callback.handler.class",
                        f"{handler} is Java: there are {_VALIDATOR} and {_UNSECURED} here",
                    )
                ]
            )
        if listener.oauth_jwks_url is None:
            problem = Problem(
                "sasl.oauthbearer.jwks.endpoint.url", f"{_VALIDATOR} needs the keys of the tokens' issuer"
            )
            raise ConfigError([problem])
        keys = Jwks(
            listener.oauth_jwks_url,
            listener.oauth_jwks_refresh_ms,
            listener.oauth_jwks_retry_ms,
            listener.oauth_jwks_retry_max_ms,
        )
        self._key_sets.append(keys)
        return SignedTokens(listener, keys)

    def _look_up(self, user: str, mechanism: ScramMechanism, token: bool) -> Login:
        from broker.security.sasl.mechanism import Identity
        from broker.security.sasl.scram import Login, nobody

        if token:
            delegation_token = self._broker.tokens.token(user) if self._broker.metadata.tokens else None
            if delegation_token is not None:
                identity = Identity(
                    delegation_token.owner._replace(token_authenticated=True), delegation_token.expires_at
                )
                return Login(self._broker.tokens.credential(user, mechanism), identity)
        elif (delegated := self._delegated(user, mechanism)) is not None:
            return delegated
        else:
            credential = self._credential(user, mechanism)
            if credential is not None and credential.iterations >= MIN_ITERATIONS:
                return Login(credential, Identity(Principal("User", user)))
        secret = hashlib.sha256(self._broker.metadata.properties.directory_id.bytes).digest()
        return nobody(secret, user, mechanism, self._broker.metadata.scram.of(mechanism))

    def _delegated(self, login: str, mechanism: ScramMechanism) -> Login | None:
        """The login of a connector's task, which is the connector's owner; None for every other name."""
        from broker.security.sasl.mechanism import Identity
        from broker.security.sasl.scram import Login

        users = self._broker.users.users if self._broker.users is not None else None
        owner = users.delegated(login) if users is not None else None
        if users is None or owner is None:
            return None
        credential = _delegated_credential(mechanism.digest, users.delegate_password(owner.name))
        # As with a delegation token: whoever logged in so cannot get tokens for more.
        return Login(credential, Identity(Principal("User", owner.name, token_authenticated=True)))

    def _credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """The credential from the platform's user file, otherwise from the metadata log."""
        users = self._broker.users
        if users is not None and (known := users.users.find(user)) is not None:
            return known.scram.get(mechanism.title) if known.active else None
        return self._broker.metadata.scram.get(user, mechanism)
