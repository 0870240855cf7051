"""SASL requests outside of authentication: from clients already authenticated, or on listeners without SASL."""

from __future__ import annotations

from broker.api.parts import Common
from broker.api.routes import Context, Routes
from broker.errors import IllegalSaslState
from broker.protocol.api import ApiKey
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

__all__ = ["routes"]

routes = Routes()


@routes.handles(ApiKey.SASL_HANDSHAKE, versions=range(2))
def sasl_handshake(_context: Context[Common], _request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Choose a SASL mechanism. Only valid on listeners with SASL, before all requests but ApiVersions.

    v1 the mechanism's messages follow as SaslAuthenticate requests (KIP-152), not bare
    """
    return SaslHandshakeResponse(error_code=IllegalSaslState.code)


@routes.handles(ApiKey.SASL_AUTHENTICATE, versions=range(3))
def sasl_authenticate(_context: Context[Common], _request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Carry a message of the SASL mechanism. Only valid after a SaslHandshake.

    v1 tells how long the session lasts (KIP-368) · v2 flexible
    """
    return SaslAuthenticateResponse(
        error_code=IllegalSaslState.code,
        error_message="SaslAuthenticate request received after successful authentication",
    )
