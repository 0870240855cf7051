"""TLS contexts of listeners: which of them ask clients for certificates."""

from __future__ import annotations

import ssl

from broker.security.config import ListenerConfig, SecurityProtocol
from tidegate.kit.tls import server_context

__all__ = ["tls_context"]


def tls_context(settings: ListenerConfig, protocol: SecurityProtocol, *, client_auth_is_own: bool) -> ssl.SSLContext:
    """A listener's context. Raises ConfigError, naming the key.

    ``client_auth_is_own``: ssl.client.auth was given for this listener; the broker-wide one leaves SASL_SSL alone.
    """
    asks = protocol is SecurityProtocol.SSL or client_auth_is_own
    return server_context(settings, settings.ssl_client_auth if asks else "none")
