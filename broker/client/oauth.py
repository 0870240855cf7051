"""Tokens for OAUTHBEARER: fetched from an issuer, or unsigned ones made here."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from aiokafka.abc import AbstractTokenProvider

from broker.client.errors import NotReachable
from tidegate.kit.errors import ConfigError, Problem

__all__ = ["token_provider"]

_TIMEOUT_S: Final = 10
_MOST_BYTES: Final = 1 << 20
_FRESH_FOR: Final = 0.8
"""The fraction of its lifetime after which a token is renewed (Kafka's ``sasl.login.refresh.window.factor``)."""
_UNKNOWN_LIFETIME_S: Final = 60


def token_provider(url: str | None, options: Mapping[str, str]) -> AbstractTokenProvider:
    """A token provider for aiokafka; ``options`` are those of the JAAS login module. Raises ConfigError."""
    if url is None:
        return _Unsecured(options)
    if not url.startswith(("https://", "http://", "file:")):
        raise _wrong("sasl.oauthbearer.token.endpoint.url", f"{url!r} is not a URL of https, http or file")
    if not url.startswith("file:") and not (options.get("clientId") and options.get("clientSecret")):
        raise _wrong("sasl.jaas.config", 'the issuer wants \'... required clientId="ID" clientSecret="SECRET";\'')
    return _Issued(url, options)


def _wrong(key: str, text: str) -> ConfigError:
    return ConfigError([Problem(key, f"Invalid value for configuration {key}: {text}")])


class _WithExtensions(AbstractTokenProvider):  # type: ignore[misc]
    """Sends the options ``extension_NAME`` beside the token (KIP-342)."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._extensions = {
            name.removeprefix("extension_"): value for name, value in options.items() if name.startswith("extension_")
        }

    def extensions(self) -> dict[str, str]:
        return self._extensions


class _Unsecured(_WithExtensions):
    """Unsigned tokens, from the options of Java's ``OAuthBearerUnsecuredLoginCallbackHandler``."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._claims: dict[str, Any] = {}
        for name, value in options.items():
            kind, _, claim = name.removeprefix("unsecuredLogin").partition("Claim_")
            if claim and kind == "String":
                self._claims[claim] = value
            elif claim and kind == "Number":
                self._claims[claim] = float(value)
            elif claim and kind == "List":
                self._claims[claim] = [text for text in value[1:].split(value[:1]) if text]
        self._principal_claim = options.get("unsecuredLoginPrincipalClaimName", "sub")
        self._lifetime_s = float(options.get("unsecuredLoginLifetimeSeconds", "3600"))
        if not self._claims.get(self._principal_claim):
            option = f"unsecuredLoginStringClaim_{self._principal_claim}"
            raise _wrong("sasl.jaas.config", f"OAUTHBEARER needs '... required {option}=\"USER\";'")

    async def token(self) -> str:
        # whole milliseconds, rounded down: the token must not be issued in the broker's future
        now = time.time_ns() // 1_000_000 / 1000
        claims = {"iat": now, "exp": now + self._lifetime_s, **self._claims}
        parts = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in ({"alg": "none"}, claims))
        return ".".join(part.decode().rstrip("=") for part in parts) + "."


class _Issued(_WithExtensions):
    """Tokens from the client credentials grant (RFC 6749, 4.4) or from a file, renewed before they expire."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._url = url
        self._options = options
        self._token = ""
        self._until = 0.0

    async def token(self) -> str:
        if time.monotonic() >= self._until:
            try:
                self._token, lifetime_s = await asyncio.to_thread(self._ask)
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise NotReachable(f"no token from {self._url}: {error}") from error
            self._until = time.monotonic() + _FRESH_FOR * lifetime_s
        return self._token

    def _ask(self) -> tuple[str, float]:
        if self._url.startswith("file:"):
            with urllib.request.urlopen(self._url) as file:  # noqa: S310 - checked when it was configured
                return file.read(_MOST_BYTES).decode().strip(), 0
        form = {"grant_type": "client_credentials"}
        if self._options.get("scope"):
            form["scope"] = self._options["scope"]
        secret = f"{self._options['clientId']}:{self._options['clientSecret']}"
        request = urllib.request.Request(  # noqa: S310 - checked when it was configured
            self._url,
            urllib.parse.urlencode(form).encode(),
            {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}", "Accept": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            told = json.loads(answer.read(_MOST_BYTES))
        return str(told["access_token"]), float(told.get("expires_in", _UNKNOWN_LIFETIME_S))
