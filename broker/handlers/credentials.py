"""Lists and changes users' SCRAM credentials for administrators (KIP-554)."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from broker.api.parts import Common, WithMetadata
from broker.api.routes import Context, Routes
from broker.errors import BrokerError, DuplicateResource
from broker.protocol.api import ApiKey
from broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from broker.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from broker.security.access import Operation, ResourceType
from broker.security.scram import changes

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithMetadata, Protocol):
    """The parts of a broker that these handlers use."""


@routes.handles(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=range(1))
def describe_user_scram_credentials(
    context: Context[_Parts], request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """List the users that have SCRAM credentials, with their iterations."""
    try:
        context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    except BrokerError as refused:
        code, text = refused.code, refused.message
        return DescribeUserScramCredentialsResponse(
            error_code=code,
            error_message=text,
            results=[
                DescribeUserScramCredentialsResult(user=user.name, error_code=code, error_message=text)
                for user in request.users or ()
            ],
        )
    credentials = context.broker.metadata.scram
    asked = Counter([user.name for user in request.users] if request.users else credentials.users())
    results = []
    for name, times in asked.items():
        result = DescribeUserScramCredentialsResult(user=name, error_message=None)
        try:
            if times > 1:
                raise DuplicateResource(
                    f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
                )
            result.credential_infos = [
                CredentialInfo(mechanism=mechanism, iterations=iterations)
                for mechanism, iterations in credentials.iterations(name)
            ]
        except BrokerError as error:
            result.error_code, result.error_message = error.code, error.message
        results.append(result)
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


@routes.handles(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=range(1))
def alter_user_scram_credentials(
    context: Context[_Parts], request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Set and remove SCRAM credentials; the password itself is never sent."""
    try:
        context.require(Operation.ALTER, ResourceType.CLUSTER)
        records, outcome = changes(context.broker.metadata.scram, request.deletions, request.upsertions)
        context.broker.metadata.append(records)
    except BrokerError as error:
        names = [deletion.name for deletion in request.deletions] + [upsertion.name for upsertion in request.upsertions]
        outcome = dict.fromkeys(names, error)
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=name, error_code=error.code if error else 0, error_message=error.message if error else None
            )
            for name, error in outcome.items()
        ]
    )
