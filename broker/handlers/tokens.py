"""Delegation tokens (KIP-48, KIP-373), for clients that authenticated by other means than a token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from broker.api.parts import Common, WithProtocols, WithTokens
from broker.api.routes import Context, Routes
from broker.errors import (
    BrokerError,
    DelegationTokenAuthorizationFailed,
    DelegationTokenRequestNotAllowed,
    InvalidPrincipalType,
)
from broker.handlers.rooms import SERVED
from broker.protocol.api import ApiKey
from broker.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from broker.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from broker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from broker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from broker.security.access import Operation, ResourceType
from broker.security.config import SecurityProtocol
from broker.security.principal import ANONYMOUS, Principal
from broker.security.token_image import DelegationToken

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithProtocols, WithTokens, Protocol):
    """The parts of a broker that these handlers use."""


_NEVER = -1


def _check_allowed(context: Context[_Parts]) -> None:
    """Raises DelegationTokenRequestNotAllowed for clients that authenticated with a token or not at all."""
    protocol = context.broker.protocols[context.listener]
    anonymous = protocol is SecurityProtocol.SSL and context.principal == ANONYMOUS
    if context.principal.token_authenticated or protocol is SecurityProtocol.PLAINTEXT or anonymous:
        raise DelegationTokenRequestNotAllowed(
            "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token "
            "authenticated channels."
        )


@routes.handles(ApiKey.CREATE_DELEGATION_TOKEN, versions=SERVED[ApiKey.CREATE_DELEGATION_TOKEN])
def create_delegation_token(
    context: Context[_Parts], request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Create a token for the client itself, or for another user.

    v2 flexible · v3 owner and requester (KIP-373)
    """
    requester = context.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    answer = CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=_NEVER,
        expiry_timestamp_ms=_NEVER,
        max_timestamp_ms=_NEVER,
    )
    try:
        _check_allowed(context)
        if owner[:2] != requester[:2] and not context.allows(Operation.CREATE_TOKENS, ResourceType.USER, str(owner)):
            raise DelegationTokenAuthorizationFailed(f"{requester} may not create tokens for {owner}.")
        renewers = [Principal(renewer.principal_type, renewer.principal_name) for renewer in request.renewers]
        if any(renewer.type != ANONYMOUS.type for renewer in renewers):
            raise InvalidPrincipalType("The principal type of a renewer has to be User.")
        tokens = context.broker.tokens
        token = tokens.create(owner, requester, renewers, request.max_lifetime_ms)
    except BrokerError as error:
        answer.error_code = error.code
        return answer
    answer.issue_timestamp_ms, answer.expiry_timestamp_ms = token.issued_at, token.expires_at
    answer.max_timestamp_ms = token.max_at
    answer.token_id, answer.hmac = token.token_id, tokens.hmac(token.token_id)
    return answer


@routes.handles(ApiKey.RENEW_DELEGATION_TOKEN, versions=SERVED[ApiKey.RENEW_DELEGATION_TOKEN])
def renew_delegation_token(
    context: Context[_Parts], request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Extend the life of a token. Allowed for its owner and its renewers.

    v2 flexible
    """
    try:
        _check_allowed(context)
        until = context.broker.tokens.renew(context.principal, bytes(request.hmac), request.renew_period_ms)
    except DelegationTokenRequestNotAllowed as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=_NEVER)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=until)


@routes.handles(ApiKey.EXPIRE_DELEGATION_TOKEN, versions=SERVED[ApiKey.EXPIRE_DELEGATION_TOKEN])
def expire_delegation_token(
    context: Context[_Parts], request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Make a token expire sooner, or at once. Allowed for its owner and its renewers.

    v2 flexible
    """
    try:
        _check_allowed(context)
        until = context.broker.tokens.expire(context.principal, bytes(request.hmac), request.expiry_time_period_ms)
    except DelegationTokenRequestNotAllowed as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=_NEVER)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=until)


@routes.handles(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions=SERVED[ApiKey.DESCRIBE_DELEGATION_TOKEN])
def describe_delegation_token(
    context: Context[_Parts], request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """List tokens: the client's own, and others that it may describe.

    v2 flexible · v3 requester (KIP-373)
    """
    _check_allowed(context)
    tokens = context.broker.tokens
    tokens.check_enabled()
    owners = None
    if request.owners is not None:
        owners = [Principal(owner.principal_type, owner.principal_name) for owner in request.owners]
    return DescribeDelegationTokenResponse(
        tokens=[_described(token, tokens.hmac(token.token_id)) for token in _visible(context, tokens, owners)]
    )


def _visible(
    context: Context[_Parts], tokens: Iterable[DelegationToken], owners: list[Principal] | None
) -> list[DelegationToken]:
    return [
        token
        for token in tokens
        if (owners is None or any(map(token.belongs_to, owners)))
        and (
            token.belongs_to(context.principal)
            or context.allows(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
            or context.allows(Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
        )
    ]


def _described(token: DelegationToken, secret: bytes) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_at,
        expiry_timestamp=token.expires_at,
        max_timestamp=token.max_at,
        token_id=token.token_id,
        hmac=secret,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=renewer.type, principal_name=renewer.name)
            for renewer in token.renewers
        ],
    )
