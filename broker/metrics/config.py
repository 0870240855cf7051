"""The configuration keys of metrics and of the log of slow requests."""

from __future__ import annotations

from tidegate.kit.config import KeyType, at_least, config, key

__all__ = ["MetricsConfig"]


@config
class MetricsConfig:
    """Keys for metrics and the log of slow requests."""

    metrics_tls: bool = key(
        "metrics.tls",
        default=False,
        doc="Whether `metrics.listen` takes TLS only, with the key store of `ssl.keystore.*`.",
    )
    metrics_listen: str = key(
        "metrics.listen",
        default="127.0.0.1:9404",
        doc="host:port of the Prometheus endpoint /metrics; empty for none. A key of Tidegate's own.",
    )
    slow_request_log_threshold_ms: int = key(
        "slow.request.log.threshold.ms",
        default=1000,
        type=KeyType.INT,
        check=at_least(-1),
        doc="Requests that take longer than this get a line in the log, with where the time went; at most 10 a second, and "
        "without what Fetch and the like wait for; -1 for none. A key of Tidegate's own.",
    )
