"""TLS contexts of listeners, including whether clients need certificates."""

from __future__ import annotations

import ssl

from broker.security.config import ListenerConfig, SecurityProtocol
from tidegate.kit.tls import server_context

__all__ = ["tls_context"]


def tls_context(settings: ListenerConfig, protocol: SecurityProtocol, *, client_auth_is_own: bool) -> ssl.SSLContext:
    """A listener's context. Raises ConfigError, naming the key.

    ``client_auth_is_own``: ssl.client.auth is set for this listener. The broker-wide key does not apply to SASL_SSL.
    """
    asks = protocol is SecurityProtocol.SSL or client_auth_is_own
    return server_context(settings, settings.ssl_client_auth if asks else "none")
