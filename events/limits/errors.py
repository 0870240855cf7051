"""Refusals because a limit is exceeded; the tree is in ``events.errors``."""

from __future__ import annotations

from events.errors import EventsError

__all__ = [
    "DeliveryLimitExceeded",
    "LimitError",
    "PublishLimitExceeded",
    "RequestLimitExceeded",
    "TooManyClients",
]


class LimitError(EventsError):
    http_status = 403


class RequestLimitExceeded(LimitError):
    code = "REQUEST_LIMIT_EXCEEDED"

    def __init__(self) -> None:
        super().__init__("TotalRequests Limit exceeded.")


class PublishLimitExceeded(LimitError):
    code = "LIMIT_EXCEEDED"

    def __init__(self, most: int) -> None:
        super().__init__(f"The hourly publishing limit of {most} platform events is exceeded")


class DeliveryLimitExceeded(LimitError):
    code = "LIMIT_EXCEEDED"

    def __init__(self) -> None:
        super().__init__("You have exceeded the event delivery limit for your org.")


class TooManyClients(LimitError):
    """The maximum number of subscribers and publishers is connected."""

    code = "LIMIT_EXCEEDED"

    def __init__(self, most: int) -> None:
        super().__init__(f"The maximum number of concurrent clients, {most}, is exceeded")
