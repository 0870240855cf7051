"""Bearer tokens of a client: a fixed one, or those of an issuer (OAuth 2.0 client credentials, RFC 6749 4.4)."""

from __future__ import annotations

import threading
import time
from typing import Final

import requests
from requests.auth import AuthBase

from registry.client.errors import Refused, Unavailable

__all__ = ["ClientCredentials", "StaticToken"]

_EARLY_S: Final = 30.0
"""A token is renewed this long before it expires, so that none expires in transit."""


class StaticToken(AuthBase):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class ClientCredentials(AuthBase):
    """Requests a token from the issuer with the first use and when one expires. Thread-safe."""

    def __init__(self, url: str, client_id: str, secret: str, scope: str | None, timeout_s: float) -> None:
        self._url, self._client, self._scope, self._timeout_s = url, (client_id, secret), scope, timeout_s
        self._token, self._ends_at = "", 0.0
        self._lock = threading.Lock()

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Raises Unavailable if the issuer does not answer, Refused if its answer is not a token."""
        with self._lock:
            if time.monotonic() >= self._ends_at:
                self._fetch()
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request

    def _fetch(self) -> None:
        form = {"grant_type": "client_credentials", **({"scope": self._scope} if self._scope else {})}
        try:
            answer = requests.post(self._url, data=form, auth=self._client, timeout=self._timeout_s)
        except requests.RequestException as error:
            raise Unavailable(f"The issuer of tokens at {self._url} cannot be reached: {error}") from error
        if answer.status_code >= 500:
            raise Unavailable(f"The issuer of tokens at {self._url} answered {answer.status_code} {answer.reason}")
        try:
            told = answer.json()
            self._token, lasts_s = str(told["access_token"]), float(told.get("expires_in", 300))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Refused(
                f"The issuer of tokens at {self._url} answered {answer.status_code} {answer.reason}, and no token"
            ) from None
        self._ends_at = time.monotonic() + max(lasts_s - _EARLY_S, lasts_s / 2)
