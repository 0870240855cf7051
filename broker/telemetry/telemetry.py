"""Clients that push their metrics: the requested metrics, the push interval, and the last values of each (KIP-714)."""

from __future__ import annotations

import re
import time
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from broker.errors import (
    BrokerError,
    InvalidRequest,
    TelemetryTooLarge,
    ThrottlingQuotaExceeded,
    UnknownSubscriptionId,
    UnsupportedCompressionType,
)
from broker.metrics.text import Family, Sample
from broker.protocol.compression import Codec
from broker.telemetry.otlp import MOST_POINTS, Point
from broker.telemetry.subscriptions import ALL, DEFAULT_INTERVAL_MS, Subscription

__all__ = ["Instance", "Telemetry"]

_MOST_INSTANCES: Final = 16_384
_KEPT_MS: Final = 60_000
"""An instance is dropped after three silent intervals, or after this time if that is longer."""
_MOST_KEPT: Final = 250_000
"""The most numbers kept for all clients together, about 300 bytes each.

Further ones are ignored until some are dropped.
"""
_NEVER: Final = -(1 << 60)
_PREFIX: Final = "org.apache.kafka."
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]")


class Instance:
    """One running client, by its assigned id."""

    __slots__ = (
        "asked_ms",
        "attributes",
        "id",
        "interval_ms",
        "last_error",
        "metrics",
        "pushed_ms",
        "seen_ms",
        "series",
        "subscription_id",
        "terminating",
        "version",
        "was_answered",
    )

    def __init__(self, instance_id: uuid.UUID, attributes: Mapping[str, str]) -> None:
        self.id = instance_id
        self.attributes = attributes
        self.version = -1
        self.subscription_id = 0
        self.metrics: list[str] = []
        self.interval_ms = DEFAULT_INTERVAL_MS
        self.asked_ms = self.pushed_ms = self.seen_ms = _NEVER
        self.terminating = self.was_answered = False
        self.last_error = 0
        self.series: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[float, bool]] = {}
        """(name, labels) to (value, whether it is a counter)."""


class Telemetry:
    """``subscriptions`` returns the current ones, and a number that changes with them."""

    def __init__(
        self,
        subscriptions: Callable[[], tuple[int, Mapping[str, Subscription]]],
        max_bytes: int,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self._subscriptions = subscriptions
        self.max_bytes = max_bytes
        self._now_ms = now_ms or (lambda: time.monotonic_ns() // 1_000_000)
        self._instances: OrderedDict[uuid.UUID, Instance] = OrderedDict()

    def __len__(self) -> int:
        return len(self._instances)

    def ask(self, instance_id: uuid.UUID, attributes: Mapping[str, str]) -> Instance:
        """The metrics that a client has to push.

        A client without an id (id 0) gets one. Raises ThrottlingQuotaExceeded.
        """
        if instance_id.int == 0:
            instance_id = uuid.uuid4()
        instance = self._instance(instance_id, attributes)
        now = self._now_ms()
        early = now - max(instance.asked_ms, instance.pushed_ms) < instance.interval_ms
        # After these errors the client is expected to ask at once.
        if early and instance.last_error not in (UnknownSubscriptionId.code, UnsupportedCompressionType.code):
            raise self._too_early(instance)
        instance.asked_ms = now
        instance.was_answered = True
        instance.last_error = 0
        return instance

    def admit(
        self,
        instance_id: uuid.UUID,
        attributes: Mapping[str, str],
        *,
        subscription_id: int,
        terminating: bool,
        compression: int,
        metrics: bytes,
    ) -> Instance:
        """The client of a push, for ``take`` or ``refuse``. Raises Kafka's errors: a wrong id, too early, too large."""
        if instance_id.int in (0, 1):
            raise InvalidRequest(f"{instance_id} is not the id of a client: GetTelemetrySubscriptions gives one.")
        instance = self._instance(instance_id, attributes)
        try:
            self._check(instance, subscription_id, terminating, compression, metrics)
        except BrokerError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.terminating = terminating
        instance.last_error = 0
        return instance

    @property
    def most_unpacked_bytes(self) -> int:
        """The most bytes that metrics may decompress to."""
        return 4 * self.max_bytes

    @staticmethod
    def refuse(instance: Instance, error: BrokerError) -> None:
        """Record that a push could not be read."""
        instance.last_error = error.code

    def families(self) -> Iterator[Family]:
        """The last values of all clients, for /metrics. Names are Kafka's with ``_`` for ``.``"""
        self._forget()
        by_name: dict[str, tuple[bool, list[Sample]]] = {}
        for instance in self._instances.values():
            families = (
                ("client_instance_id", str(instance.id)),
                ("client_id", instance.attributes.get("client_id", "")),
            )
            for (name, labels), (value, counts) in instance.series.items():
                by_name.setdefault(name, (counts, []))[1].append(Sample(value, families + labels))
        for name, (counts, samples) in by_name.items():
            yield Family(name, "Pushed by clients (KIP-714).", "counter" if counts else "gauge", samples)

    def _check(
        self, instance: Instance, subscription_id: int, terminating: bool, compression: int, metrics: bytes
    ) -> None:
        if instance.terminating:
            raise InvalidRequest(f"Client {instance.id} has said that it ends: nothing more is taken from it.")
        now = self._now_ms()
        # The first push after a subscription may come at any time: clients spread it (0.5 to 1.5 intervals).
        if instance.was_answered or now - instance.pushed_ms >= instance.interval_ms:
            instance.pushed_ms = now
            instance.was_answered = False
        elif not terminating:
            raise self._too_early(instance)
        if subscription_id != instance.subscription_id:
            raise UnknownSubscriptionId(f"Subscription {subscription_id} is not, or no more, that of {instance.id}.")
        if compression not in list(Codec):
            raise UnsupportedCompressionType(f"Compression type {compression} is not known: 0 to 4 are.")
        if len(metrics) > self.max_bytes:
            raise TelemetryTooLarge(f"{len(metrics)} bytes of metrics were pushed; {self.max_bytes} are taken.")

    def _too_early(self, instance: Instance) -> BrokerError:
        return ThrottlingQuotaExceeded(f"Client {instance.id} may come once in {instance.interval_ms} ms.")

    def _instance(self, instance_id: uuid.UUID, attributes: Mapping[str, str]) -> Instance:
        instance = self._instances.get(instance_id)
        if instance is None:
            self._forget()
            if len(self._instances) >= _MOST_INSTANCES:
                self._instances.popitem(last=False)
            instance = self._instances[instance_id] = Instance(
                instance_id, {**attributes, "client_instance_id": str(instance_id)}
            )
        self._instances.move_to_end(instance_id)
        version, subscriptions = self._subscriptions()
        if instance.version != version:
            self._subscribe(instance, subscriptions)
            instance.version = version
        instance.seen_ms = self._now_ms()
        return instance

    def _subscribe(self, instance: Instance, subscriptions: Mapping[str, Subscription]) -> None:
        matching = [
            subscription for subscription in subscriptions.values() if subscription.matches(instance.attributes)
        ]
        names = frozenset[str]().union(*(subscription.metrics for subscription in matching))
        instance.metrics = [ALL] if ALL in names else sorted(names)
        instance.interval_ms = min((subscription.interval_ms for subscription in matching), default=DEFAULT_INTERVAL_MS)
        instance.asked_ms = instance.pushed_ms = _NEVER
        seed = f"{instance.metrics}{instance.interval_ms}{instance.id}"
        instance.subscription_id = zlib.crc32(seed.encode()) - (1 << 31)

    def _forget(self) -> None:
        now = self._now_ms()
        for instance in list(self._instances.values()):
            if now - instance.seen_ms > max(_KEPT_MS, 3 * instance.interval_ms):
                del self._instances[instance.id]

    def take(self, instance: Instance, said: Iterable[Point]) -> None:
        """Store the numbers that a client pushed."""
        kept = sum(len(item.series) for item in self._instances.values())
        for point in said:
            name = "kafka_client_" + _NOT_IN_NAMES.sub("_", point.name.removeprefix(_PREFIX))
            series = (name, tuple((_NOT_IN_NAMES.sub("_", label), value) for label, value in point.labels))
            before = instance.series.get(series)
            if before is None:
                if len(instance.series) >= MOST_POINTS or kept >= _MOST_KEPT:
                    continue
                kept += 1
            added = before[0] if before is not None and point.delta else 0.0
            instance.series[series] = (added + point.value, point.counts)
