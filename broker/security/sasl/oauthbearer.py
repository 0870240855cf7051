"""OAUTHBEARER (RFC 7628): the client sends a token from an issuer."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from broker.security.principal import Principal
from broker.security.sasl.jwt import InvalidToken, TokenValidator
from broker.security.sasl.mechanism import Identity, InvalidCredentials, Rejected
from tidegate.kit.logs import get_logger

__all__ = ["OAuthBearer", "client_response"]

logger = get_logger(__name__)

_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR: Final = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_RESPONSE: Final = re.compile(rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


class ClientResponse(NamedTuple):
    token: str
    authzid: str
    extensions: dict[str, str]


def client_response(message: bytes) -> ClientResponse:
    """Raises InvalidCredentials."""
    match = _RESPONSE.fullmatch(message.decode("latin-1"))
    if match is None:
        raise InvalidCredentials("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
    auth = _AUTH.fullmatch(pairs.pop("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise InvalidCredentials("Invalid OAUTHBEARER client first message: 'auth' is not a bearer token")
    return ClientResponse(auth["token"], match["authzid"] or "", pairs)


class OAuthBearer:
    """One exchange.

    A refusal is sent as JSON first; the client answers it, then authentication fails (RFC 7628, 3.2.3).
    """

    def __init__(
        self, validator: TokenValidator, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._validator = validator
        self._now_ms = now_ms
        self._refusal = ""
        self.identity: Identity | None = None

    def evaluate(self, response: bytes) -> bytes:
        if self._refusal and response == b"\x01":
            raise Rejected(self._refusal)
        self._refusal = ""
        told = client_response(response)
        try:
            token = self._validator.validate(told.token, self._now_ms())
        except InvalidToken as error:
            logger.info("token refused", reason=str(error))
            self._refusal = _refusal(error.scope)
            return self._refusal.encode()
        if told.authzid and told.authzid != token.principal_name:
            raise Rejected(
                f"Authentication failed: Client requested an authorization id ({told.authzid}) that is different from the "
                f"token's principal name ({token.principal_name})"
            )
        self.identity = Identity(Principal("User", token.principal_name), token.expires_at_ms)
        return b""


def _refusal(scope: str | None) -> str:
    if scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":{json.dumps(scope)}}}'
