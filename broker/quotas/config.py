"""The configuration keys of quotas, under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from tidegate.kit.config import KeyType, at_least, config, key

__all__ = ["QuotaConfig"]


@config
class QuotaConfig:
    """The windows that rates are measured over."""

    quota_window_num: int = key(
        "quota.window.num",
        default=11,
        type=KeyType.INT,
        check=at_least(1),
        doc="How many windows rates are taken over, for quotas of clients.",
    )
    quota_window_size_seconds: int = key(
        "quota.window.size.seconds",
        default=1,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long each of these windows is, in seconds.",
    )
    controller_quota_window_num: int = key(
        "controller.quota.window.num",
        default=11,
        type=KeyType.INT,
        check=at_least(1),
        doc="How many windows of changes of topics may be made at once, for quotas of changes.",
    )
    controller_quota_window_size_seconds: int = key(
        "controller.quota.window.size.seconds",
        default=1,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long each of these windows is, in seconds.",
    )
