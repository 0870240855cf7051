"""Kafka Connect's keys for a worker in a group."""

from __future__ import annotations

import hashlib

from tidegate.kit.config import KeyType, at_least, config, key, one_of

__all__ = ["GroupConfig"]

_HMACS = {"HmacMD5", "HmacSHA1", "HmacSHA224", "HmacSHA256", "HmacSHA384", "HmacSHA512"}


def _hmac(value: str) -> str | None:
    known = value in _HMACS and value.removeprefix("Hmac").lower() in hashlib.algorithms_available
    return None if known else f"must be one of {', '.join(sorted(_HMACS))}"


def _hmacs(values: list[str]) -> str | None:
    if not values:
        return "must name at least one algorithm"
    return next((algorithm for value in values if (algorithm := _hmac(value))), None)


@config
class GroupConfig:
    """Keys for a worker's membership in its group."""

    session_timeout_ms: int = key(
        "session.timeout.ms",
        default=10_000,
        type=KeyType.INT,
        check=at_least(1),
        importance="high",
        doc="After this long without a heartbeat a worker counts as lost.",
    )
    rebalance_timeout_ms: int = key(
        "rebalance.timeout.ms",
        default=60_000,
        type=KeyType.INT,
        check=at_least(1),
        importance="high",
        doc="How long a rebalance waits for workers to stop what they must give up and join.",
    )
    heartbeat_interval_ms: int = key(
        "heartbeat.interval.ms",
        default=3_000,
        type=KeyType.INT,
        check=at_least(1),
        importance="high",
        doc="Time between heartbeats: how soon a worker hears of a rebalance.",
    )
    worker_sync_timeout_ms: int = key(
        "worker.sync.timeout.ms",
        default=3_000,
        type=KeyType.INT,
        doc="How long a worker that is behind may take to read the config topic to its end before it leaves the group.",
    )
    worker_unsync_backoff_ms: int = key(
        "worker.unsync.backoff.ms",
        default=300_000,
        type=KeyType.INT,
        doc="How long such a worker stays away before it tries again.",
    )
    connect_protocol: str = key(
        "connect.protocol",
        default="sessioned",
        check=one_of("eager", "compatible", "sessioned", ignore_case=True),
        importance="low",
        doc="The newest protocol that the worker offers its group: eager, compatible or sessioned; the group takes the newest "
        "that all offer.",
    )
    scheduled_rebalance_max_delay_ms: int = key(
        "scheduled.rebalance.max.delay.ms",
        default=300_000,
        type=KeyType.INT,
        check=at_least(0),
        importance="low",
        doc="How long what a lost worker ran is kept for it before the others take it over.",
    )
    key_ttl_ms: int = key(
        "inter.worker.key.ttl.ms",
        default=3_600_000,
        type=KeyType.INT,
        check=at_least(0),
        importance="low",
        doc="How long a session key is in use before the leader makes a new one; 0: for ever.",
    )
    key_algorithm: str = key(
        "inter.worker.key.generation.algorithm",
        default="HmacSHA256",
        check=_hmac,
        importance="low",
        doc="The algorithm that session keys are made for.",
    )
    key_size: int | None = key(
        "inter.worker.key.size",
        default=None,
        type=KeyType.INT,
        check=at_least(40),
        importance="low",
        doc="The size of session keys in bits; null: the algorithm's own.",
    )
    signature_algorithm: str = key(
        "inter.worker.signature.algorithm",
        default="HmacSHA256",
        check=_hmac,
        importance="low",
        doc="The algorithm that requests to other workers are signed with.",
    )
    verification_algorithms: list[str] = key(
        "inter.worker.verification.algorithms",
        default=["HmacSHA256"],
        check=_hmacs,
        importance="low",
        doc="The algorithms whose signatures are accepted.",
    )
    exactly_once_source: str = key(
        "exactly.once.source.support",
        default="disabled",
        check=one_of("DISABLED", "ENABLED", "PREPARING", ignore_case=True),
        importance="high",
        doc="Whether sources may deliver exactly once. To switch it on in a running group, restart all workers with preparing, "
        "then all with enabled.",
    )

    @property
    def leads_transactionally(self) -> bool:
        """Whether the leader writes the config topic in transactions, which fence earlier leaders."""
        return self.exactly_once_source.lower() != "disabled"
