"""HTTPS with ``requests`` and a custom TLS context: key stores and versions that its ``verify`` can't express."""

from __future__ import annotations

import ssl
from typing import Any

import requests
from requests.adapters import HTTPAdapter

__all__ = ["TlsAdapter", "advice"]


class TlsAdapter(HTTPAdapter):
    """Mount it at ``https://``.

    ``options`` are those of HTTPAdapter. The context alone decides which certificates are trusted and whether they must
    name the host.
    """

    def __init__(self, context: ssl.SSLContext, **options: Any) -> None:
        self._context = context
        super().__init__(**options)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, ssl_context=self._context, assert_hostname=self._asserted(), **options)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return super().proxy_manager_for(proxy, ssl_context=self._context, **options)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Does nothing: the context has everything, and requests would replace its CAs."""

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {"ssl_context": self._context, "cert_reqs": self._context.verify_mode}

    def _asserted(self) -> bool | None:
        return None if self._context.check_hostname else False


def advice(url: str, error: requests.RequestException) -> str:
    """Advice for the message of a failed request: a TLS server closes plain HTTP connections, and a client needs an authority to trust."""
    if isinstance(error, requests.exceptions.SSLError):
        return "; name the authority to trust (commands: TIDEGATE_CA)" if "CERTIFICATE_VERIFY" in str(error) else ""
    if url.startswith("http:") and "RemoteDisconnected" in str(error):
        return "; it hung up on a request without TLS: try the address with https://"
    return ""
