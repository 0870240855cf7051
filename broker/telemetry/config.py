"""The configuration keys of client telemetry."""

from __future__ import annotations

from typing import Final

from tidegate.kit.config import KeyType, at_least, config, key

__all__ = ["CLIENT_METRICS", "TelemetryConfig"]

CLIENT_METRICS: Final = 16
"""``ConfigResource.Type``."""


@config
class TelemetryConfig:
    """Keys for requesting clients' metrics."""

    client_telemetry_enable: bool = key(
        "client.telemetry.enable",
        default=False,
        doc="Tell clients that they can push metrics (KIP-714); what subscriptions ask for (`kafka-client-metrics`) is shown at "
        "/metrics. Apache Kafka needs a plugin for that, and without one does not tell clients either. A key of Tidegate's own.",
    )
    telemetry_max_bytes: int = key(
        "telemetry.max.bytes",
        default=1_048_576,
        type=KeyType.INT,
        check=at_least(1),
        doc="The largest push of metrics taken, as it is sent.",
    )
