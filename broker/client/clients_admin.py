"""Quotas and SCRAM credentials: the part of Admin about the clients of a cluster."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.client.acls_admin import AclsAdmin
from broker.client.cluster import check
from broker.client.messages import MessageRequest
from broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from broker.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from tidegate.kit.scram import MIN_ITERATIONS

__all__ = ["SCRAM_MECHANISMS", "ClientQuotas", "ClientsAdmin"]

SCRAM_MECHANISMS: Final[Mapping[str, int]] = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The codes of ``ScramMechanism``."""
_SALT_BYTES: Final = 24


@dataclass(frozen=True, slots=True)
class ClientQuotas:
    """The quotas of an entity (KIP-546): a ``user``, a ``client-id``, both, or an ``ip``; a name of None is the default."""

    entity: Mapping[str, str | None]
    values: Mapping[str, float]


class ClientsAdmin(AclsAdmin):
    """Describes and changes quotas and SCRAM credentials."""

    async def describe_quotas(self) -> list[ClientQuotas]:
        """All quotas of the cluster."""
        request = MessageRequest(DescribeClientQuotasRequest(), DescribeClientQuotasResponse, highest=1)

        async def attempt() -> list[ClientQuotas]:
            about = "describing quotas"
            answer = await self.ask(request, about=about)
            check(answer.error_code, about, answer.error_message)
            return [
                ClientQuotas(
                    {part.entity_type: part.entity_name for part in entry.entity},
                    {value.key: value.value for value in entry.values},
                )
                for entry in answer.entries or ()
            ]

        return await self.retried(attempt)

    async def alter_quotas(self, entity: Mapping[str, str | None], changes: Mapping[str, float | None]) -> None:
        """Set quotas of an entity by Kafka's keys, such as ``producer_byte_rate``; None removes one.

        Raises InvalidRequest for an unknown key or an impossible entity.
        """
        operations = [
            OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in changes.items()
        ]
        parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
        body = AlterClientQuotasRequest(entries=[EntryData(entity=parts, ops=operations)])
        request = MessageRequest(body, AlterClientQuotasResponse, highest=1)
        about = "quotas of " + ", ".join(f"{kind} {name or '<default>'}" for kind, name in entity.items())

        async def attempt() -> None:
            answer = await self.ask(request, node=await self.controller(), about=about)
            for entry in answer.entries:
                check(entry.error_code, about, entry.error_message)

        await self.retried(attempt)

    async def describe_scram(self) -> dict[str, dict[str, int]]:
        """The users with SCRAM credentials: the iterations of each mechanism."""
        request = MessageRequest(
            DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse, highest=0
        )
        names = {code: name for name, code in SCRAM_MECHANISMS.items()}

        async def attempt() -> dict[str, dict[str, int]]:
            about = "describing SCRAM credentials"
            answer = await self.ask(request, node=await self.controller(), about=about)
            check(answer.error_code, about, answer.error_message)
            result = {}
            for user in answer.results:
                check(user.error_code, f"SCRAM credentials of {user.user}", user.error_message)
                infos = user.credential_infos
                result[user.user] = {names.get(info.mechanism, str(info.mechanism)): info.iterations for info in infos}
            return result

        return await self.retried(attempt)

    async def set_scram(
        self, user: str, password: str, mechanisms: Sequence[str], *, iterations: int = MIN_ITERATIONS
    ) -> None:
        """Give a user a password for these mechanisms, in place of an earlier one. Only its salted form is sent.

        One request for each mechanism: a request may alter a user once (KIP-554).
        """
        for mechanism in mechanisms:
            salt = secrets.token_bytes(_SALT_BYTES)
            digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
            made = ScramCredentialUpsertion(
                name=user,
                mechanism=SCRAM_MECHANISMS[mechanism],
                iterations=iterations,
                salt=salt,
                salted_password=hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations),
            )
            await self._alter_scram(user, AlterUserScramCredentialsRequest(upsertions=[made]))

    async def delete_scram(self, user: str, mechanisms: Sequence[str]) -> None:
        """Take a user's password for these mechanisms. Raises ResourceNotFound if there is none."""
        for mechanism in mechanisms:
            deletion = ScramCredentialDeletion(name=user, mechanism=SCRAM_MECHANISMS[mechanism])
            await self._alter_scram(user, AlterUserScramCredentialsRequest(deletions=[deletion]))

    async def _alter_scram(self, user: str, body: AlterUserScramCredentialsRequest) -> None:
        request = MessageRequest(body, AlterUserScramCredentialsResponse, highest=0)
        about = f"SCRAM credentials of {user}"

        async def attempt() -> None:
            answer = await self.ask(request, node=await self.controller(), about=about)
            for result in answer.results:
                check(result.error_code, about, result.error_message)

        await self.retried(attempt)
