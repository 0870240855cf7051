"""Delegation tokens: credentials with which others can act as a client for a limited time (KIP-48, KIP-900)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from broker.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    InvalidPrincipalType,
)
from broker.protocol.metadata_record import MetadataRecord
from broker.security.config import SecurityConfig
from broker.security.credential_records import RemoveDelegationTokenRecord
from broker.security.principal import Principal
from broker.security.scram import ScramMechanism
from broker.security.token_image import DelegationToken, TokenImage
from tidegate.kit.scram import ScramCredential, make_credential

__all__ = ["DelegationTokens"]

_LONG_MAX: Final = (1 << 63) - 1


class DelegationTokens:
    """Creates, renews and expires tokens. ``commit`` makes records durable and replays them.

    A token's secret is the HMAC-SHA512 of its id with ``delegation.token.secret.key``, so it is not stored.
    """

    def __init__(
        self,
        config: SecurityConfig,
        image: TokenImage,
        commit: Callable[[list[MetadataRecord]], None],
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        key = config.token_secret_key
        self._key = key.reveal().encode() if key is not None else b""
        self._max_lifetime_ms = config.token_max_lifetime_ms
        self._renewal_ms = config.token_expiry_ms
        self._image = image
        self._commit = commit
        self._now_ms = now_ms
        self.credential = lru_cache(maxsize=1024)(self._credential)
        """The credential for logins with a token, by (token id, mechanism); None if there is no such token."""

    def check_enabled(self) -> None:
        """Raises DelegationTokenAuthDisabled if there is no secret key."""
        if not self._key:
            raise DelegationTokenAuthDisabled("Delegation tokens need delegation.token.secret.key.")

    def hmac(self, token_id: str) -> bytes:
        return hmac.digest(self._key, token_id.encode(), hashlib.sha512)

    def token(self, token_id: str) -> DelegationToken | None:
        """A token that is valid for logins; None if it is unknown or has expired."""
        delegation_token = self._image.get(token_id) if self._key else None
        return None if delegation_token is None or self._expired(delegation_token) else delegation_token

    def _credential(self, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
        # The cached credential of a removed token is never used: the caller looks up the token first.
        return make_credential(mechanism.digest, base64.b64encode(self.hmac(token_id)).decode())

    def create(
        self, owner: Principal, requester: Principal, renewers: Sequence[Principal], max_lifetime_ms: int
    ) -> DelegationToken:
        """Raises DelegationTokenAuthDisabled, InvalidPrincipalType."""
        self.check_enabled()
        wrong = next((renewer for renewer in renewers if renewer.type != "User"), None)
        if wrong is not None:
            raise InvalidPrincipalType(f"{wrong} cannot renew a token: the principal type has to be User.")
        now = self._now_ms()
        lifetime = min(self._max_lifetime_ms, max_lifetime_ms) if max_lifetime_ms > 0 else self._max_lifetime_ms
        max_at = min(_LONG_MAX, now + lifetime)
        expires_at = min(max_at, now + self._renewal_ms)
        made = DelegationToken(
            _new_id(), owner._replace(token_authenticated=False), requester, tuple(renewers), now, max_at, expires_at
        )
        self._commit([made.record()])
        return made

    def renew(self, principal: Principal, secret: bytes, period_ms: int) -> int:
        """Returns the new expiry time. Raises DelegationTokenNotFound, -Expired, -OwnerMismatch, -AuthDisabled."""
        token = self._find(secret)
        if self._expired(token):
            raise DelegationTokenExpired("The token has expired.")
        self._check_owner(token, principal)
        period = min(self._renewal_ms, period_ms) if period_ms > 0 else self._renewal_ms
        expires_at = min(token.max_at, self._now_ms() + period)
        self._commit([token._replace(expires_at=expires_at).record()])
        return expires_at

    def expire(self, principal: Principal, secret: bytes, period_ms: int) -> int:
        """Make a token expire after a period, or (negative) now.

        Returns the expiry time. Raises the errors of ``renew``.
        """
        token = self._find(secret)
        self._check_owner(token, principal)
        now = self._now_ms()
        if period_ms < 0:
            self._commit([RemoveDelegationTokenRecord(token_id=token.token_id)])
            return now
        if self._expired(token):
            raise DelegationTokenExpired("The token has expired.")
        expires_at = min(token.max_at, now + period_ms)
        self._commit([token._replace(expires_at=expires_at).record()])
        return expires_at

    def sweep(self) -> int:
        """Remove expired tokens. Returns how many."""
        gone: list[MetadataRecord] = [
            RemoveDelegationTokenRecord(token_id=token.token_id) for token in self._image if self._expired(token)
        ]
        if gone:
            self._commit(gone)
        return len(gone)

    def __iter__(self) -> Iterator[DelegationToken]:
        return iter(self._image)

    def _find(self, secret: bytes) -> DelegationToken:
        self.check_enabled()
        delegation_token = next(
            (token for token in self._image if hmac.compare_digest(self.hmac(token.token_id), secret)), None
        )
        if delegation_token is None:
            raise DelegationTokenNotFound("There is no token of this HMAC.")
        return delegation_token

    def _expired(self, token: DelegationToken) -> bool:
        now = self._now_ms()
        return token.max_at < now or token.expires_at < now

    def _check_owner(self, token: DelegationToken, principal: Principal) -> None:
        if not token.belongs_to(principal):
            raise DelegationTokenOwnerMismatch(f"{principal} neither owns the token nor may renew it.")


def _new_id() -> str:
    """An id in Kafka's format: 16 random bytes in URL-safe base 64."""
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not made.startswith("-"):
            return made
