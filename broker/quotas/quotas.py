"""Counts clients' usage against their quotas, and computes throttle times.

Kafka's eight levels decide which quota applies to a client, and which clients share it (``_LEVELS``, KIP-55).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from broker.errors import ThrottlingQuotaExceeded
from broker.quotas.config import QuotaConfig
from broker.quotas.rates import Rate, TokenBucket
from broker.quotas.settings import CLIENT_ID, IP, USER, Entity, QuotaSettings, entity_of
from broker.security.principal import Principal

__all__ = ["ClientQuota", "Mutations", "Quotas"]

_FORGET_AFTER_S: Final = 3600
"""Clients that were not seen for this long are dropped, as Kafka's sensors expire."""
_FORGET_ABOVE: Final = 1000
"""The most clients remembered before any is dropped."""

_NO_LIMIT: Final = (1 << 31) - 1

_NAMED, _DEFAULT, _ABSENT = 0, 1, 2
_LEVELS: Final = (
    (_NAMED, _NAMED),
    (_NAMED, _DEFAULT),
    (_NAMED, _ABSENT),
    (_DEFAULT, _NAMED),
    (_DEFAULT, _DEFAULT),
    (_DEFAULT, _ABSENT),
    (_ABSENT, _NAMED),
    (_ABSENT, _DEFAULT),
)
"""(user, client id), highest precedence first.

A quota without one part is shared by all clients that differ only in it.
"""


class ClientQuota:
    """The limits of one client. Its meters may be shared with others. None means no limit."""

    __slots__ = ("consumer", "mutations", "producer", "request", "used_at")

    def __init__(
        self, producer: Rate | None, consumer: Rate | None, request: Rate | None, mutations: TokenBucket | None
    ) -> None:
        self.producer = producer
        self.consumer = consumer
        self.request = request
        self.mutations = mutations
        self.used_at = 0.0

    @property
    def most_fetched(self) -> int:
        """The most bytes that one answer to a fetch may have."""
        burst = None if self.consumer is None else self.consumer.burst
        return _NO_LIMIT if burst is None else int(burst)


class Mutations:
    """The topic changes of one request (KIP-599)."""

    __slots__ = ("_bucket", "_clock", "_strict", "throttle_time_ms")

    def __init__(self, bucket: TokenBucket | None, strict: bool, clock: Callable[[], float]) -> None:
        self._bucket = bucket
        self._strict = strict
        self._clock = clock
        self.throttle_time_ms = 0
        """How long the client has to wait."""

    def take(self, partitions: int) -> None:
        """Call it before creating or deleting this many partitions.

        Raises ThrottlingQuotaExceeded if the version of the request supports it; older clients only have to wait.
        """
        if self._bucket is None:
            return
        now = self._clock()
        waiting = round(self._bucket.wait(now) * 1000)
        if self._strict and waiting > 0:
            self.throttle_time_ms = waiting
            raise ThrottlingQuotaExceeded("The quota of changes of topics (controller_mutation_rate) is used up.")
        self._bucket.take(partitions, now)
        if not self._strict:
            self.throttle_time_ms = round(self._bucket.wait(now) * 1000)


_FREE: Final = ClientQuota(None, None, None, None)


class Quotas:
    """Used on one broker's event loop. Without any quota it only costs a check of ``active``."""

    def __init__(
        self, settings: QuotaSettings, config: QuotaConfig, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._config = config
        self._clock = clock
        self._seen = -1
        self._clients: dict[tuple[str, str], ClientQuota] = {}
        self._rates: dict[tuple[str, Entity], Rate] = {}
        self._buckets: dict[Entity, TokenBucket] = {}

    @property
    def active(self) -> bool:
        return self._settings.active

    def of(self, principal: Principal, client_id: str) -> ClientQuota:
        """The current limits of a client."""
        if not self._settings.active:
            return _FREE
        if self._seen != self._settings.changes:
            self._clients.clear()
            self._seen = self._settings.changes
        client_quota = self._clients.get((principal.name, client_id))
        if client_quota is None:
            client_quota = self._clients[principal.name, client_id] = self._make(principal.name, client_id)
        client_quota.used_at = self._clock()
        return client_quota

    def produced(self, quota: ClientQuota, size: int) -> int:
        """Count the bytes of a Produce request. Returns the milliseconds to wait."""
        return 0 if quota.producer is None else _ms(quota.producer.use(size, self._clock()))

    def fetched(self, quota: ClientQuota, size: int) -> int:
        """Count the bytes of a fetch before it is answered.

        If the client has to wait, the answer is sent without them.
        """
        if quota.consumer is None:
            return 0
        now = self._clock()
        waiting = _ms(quota.consumer.use(size, now))
        if waiting:
            quota.consumer.take_back(size, now)
        return waiting

    def worked(self, quota: ClientQuota, seconds: float) -> int:
        """Count the time that a request kept the broker busy. Returns the milliseconds to wait, at most one window."""
        if quota.request is None:
            return 0
        waiting = quota.request.use(seconds * 100, self._clock())
        return _ms(min(waiting, float(self._config.quota_window_size_seconds)))

    def mutations(self, principal: Principal, client_id: str, *, strict: bool) -> Mutations:
        return Mutations(self.of(principal, client_id).mutations, strict, self._clock)

    def connected(self, address: str) -> int:
        """Count a new connection from an address. Returns the milliseconds to wait before it is closed; 0 keeps it."""
        if not self._settings.active:
            return 0
        limit, entity = self._limit_of_ip(address)
        if limit is None:
            return 0
        now = self._clock()
        rate = self._rate("connection_creation_rate", entity, limit)
        waiting = _ms(rate.use(1, now))
        if waiting:
            rate.take_back(1, now)
        return waiting

    def rates(self) -> Iterator[tuple[str, Entity, float]]:
        """The recent usage of each byte rate and of time: (quota key, entity, per second)."""
        now = self._clock()
        for (key, shared_by), rate in self._rates.items():
            yield key, shared_by, rate.measure(now)

    def _limit_of_ip(self, address: str) -> tuple[float | None, Entity]:
        entity: Entity = ((IP, address),)
        limit = self._settings.get(entity, "connection_creation_rate")
        if limit is None:
            limit = self._settings.get(((IP, None),), "connection_creation_rate")
        return limit, entity

    def _make(self, user: str, client_id: str) -> ClientQuota:
        if len(self._clients) >= _FORGET_ABOVE:
            self._forget()
        limit, shared_by = self._limit("controller_mutation_rate", user, client_id)
        return ClientQuota(
            self._client_rate("producer_byte_rate", user, client_id),
            self._client_rate("consumer_byte_rate", user, client_id),
            self._client_rate("request_percentage", user, client_id),
            None if limit is None else self._bucket(shared_by, limit),
        )

    def _client_rate(self, key: str, user: str, client_id: str) -> Rate | None:
        limit, shared_by = self._limit(key, user, client_id)
        return None if limit is None else self._rate(key, shared_by, limit)

    def _limit(self, key: str, user: str, client_id: str) -> tuple[float | None, Entity]:
        """The limit that takes precedence, and its entity: the client's, the user's, or the client id's."""
        for for_user, for_client in _LEVELS:
            asked: list[tuple[str, str | None]] = []
            shared: list[tuple[str, str | None]] = []
            for kind, name, level in ((USER, user, for_user), (CLIENT_ID, client_id, for_client)):
                if level != _ABSENT:
                    asked.append((kind, name if level == _NAMED else None))
                    shared.append((kind, name))
            limit = self._settings.get(entity_of(asked), key)
            if limit is not None:
                return limit, entity_of(shared)
        return None, ()

    def _rate(self, key: str, shared_by: Entity, limit: float) -> Rate:
        config = self._config
        rate = self._rates.get((key, shared_by))
        if rate is None:
            made = Rate(config.quota_window_num, config.quota_window_size_seconds)
            rate = self._rates[key, shared_by] = made
            rate.used_at = self._clock()
        rate.limit = limit
        return rate

    def _bucket(self, shared_by: Entity, limit: float) -> TokenBucket:
        config = self._config
        bucket = self._buckets.get(shared_by)
        if bucket is None:
            made = TokenBucket(config.controller_quota_window_num, config.controller_quota_window_size_seconds)
            bucket = self._buckets[shared_by] = made
            bucket.used_at = self._clock()
        bucket.limit = limit
        return bucket

    def _forget(self) -> None:
        oldest = self._clock() - _FORGET_AFTER_S
        self._clients = {who: client for who, client in self._clients.items() if client.used_at > oldest}
        self._rates = {who: rate for who, rate in self._rates.items() if rate.used_at > oldest}
        self._buckets = {who: bucket for who, bucket in self._buckets.items() if bucket.used_at > oldest}


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
