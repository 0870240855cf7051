"""Which metrics to request from which clients: resources of type CLIENT_METRICS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from broker.errors import BrokerError, InvalidConfiguration, InvalidRequest
from tidegate.kit.config import KeyType, config, key, keys_of, parse
from tidegate.kit.errors import ConfigError
from tidegate.kit.logs import get_logger

__all__ = [
    "ALL",
    "DEFAULT_INTERVAL_MS",
    "CurrentSubscriptions",
    "Subscription",
    "SubscriptionConfig",
    "check_subscription",
    "subscription",
]

logger = get_logger(__name__)

ALL: Final = "*"
"""In the list of metrics: all metrics."""
DEFAULT_INTERVAL_MS: Final = 300_000
_SHORTEST_MS, _LONGEST_MS = 100, 3_600_000

_ATTRIBUTES: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


@config
class SubscriptionConfig:
    """The keys of one subscription, as in Kafka (ClientMetricsConfigs)."""

    metrics: list[str] = key(
        "metrics",
        default=[],
        doc="The metrics wanted, by the beginnings of their names; `*` is all.",
    )
    interval_ms: int = key(
        "interval.ms",
        default=DEFAULT_INTERVAL_MS,
        type=KeyType.INT,
        doc="How often they are to be pushed, in milliseconds, from 100 to 3600000.",
    )
    match: list[str] = key(
        "match",
        default=[],
        doc="Of which clients: `attribute=regular expression`, all of which must match. Attributes: "
        + ", ".join(_ATTRIBUTES)
        + ".",
    )


class Subscription(NamedTuple):
    metrics: frozenset[str]
    interval_ms: int
    patterns: tuple[tuple[str, re.Pattern[str]], ...]

    def matches(self, attributes: Mapping[str, str]) -> bool:
        return all(pattern.fullmatch(attributes.get(name, "")) for name, pattern in self.patterns)


def subscription(configs: Mapping[str, str]) -> Subscription:
    """A subscription from its set keys. Raises InvalidRequest, InvalidConfiguration."""
    known = [config_key.name for config_key in keys_of(SubscriptionConfig)]
    for name in configs:
        if name not in known:
            raise InvalidRequest(f"Client metrics have no key {name}: {', '.join(known)} are there.")
    try:
        settings = parse(SubscriptionConfig, configs)
    except ConfigError as error:
        raise InvalidConfiguration(error.message) from error
    if not _SHORTEST_MS <= settings.interval_ms <= _LONGEST_MS:
        raise InvalidRequest(f"interval.ms is {settings.interval_ms}; {_SHORTEST_MS} to {_LONGEST_MS} are possible.")
    return Subscription(frozenset(settings.metrics), settings.interval_ms, tuple(_patterns(settings.match)))


class CurrentSubscriptions:
    """The configured subscriptions.

    ``configs`` returns a number that changes with any configuration, and the configurations.
    """

    def __init__(self, configs: Callable[[], tuple[int, Mapping[str, Mapping[str, str]]]]) -> None:
        self._configs = configs
        self._looked_at = -1
        self._assigned: Mapping[str, Mapping[str, str]] = {}
        self._version = 0
        self._subscriptions: dict[str, Subscription] = {}

    def __call__(self) -> tuple[int, Mapping[str, Subscription]]:
        """A number that changes with the subscriptions, and the subscriptions by name."""
        changes, provided = self._configs()
        if changes != self._looked_at:
            self._looked_at = changes
            if provided != self._assigned:
                self._assigned = provided
                self._version += 1
                self._subscriptions = dict(self._valid(provided))
        return self._version, self._subscriptions

    @staticmethod
    def _valid(provided: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, Subscription]]:
        for name, configs in provided.items():
            try:
                yield name, subscription(configs)
            except BrokerError as error:  # written by another broker with other rules
                logger.warning("a subscription of client metrics cannot be used", name=name, error=error.message)


def check_subscription(name: str, configs: Mapping[str, str]) -> None:
    """Raises InvalidRequest, InvalidConfiguration."""
    if not name:
        raise InvalidRequest("The name of the subscription is empty.")
    subscription(configs)


def _patterns(texts: Iterable[str]) -> Iterable[tuple[str, re.Pattern[str]]]:
    for text in texts:
        name, _, pattern = text.partition("=")
        if name.strip() not in _ATTRIBUTES or not pattern or "=" in pattern:
            raise InvalidConfiguration(
                f"{text!r} is not of the form attribute=pattern with one of {', '.join(_ATTRIBUTES)}."
            )
        try:
            yield name.strip(), re.compile(pattern.strip())
        except re.error as error:
            raise InvalidConfiguration(f"{pattern.strip()!r} is not a regular expression: {error}") from error
