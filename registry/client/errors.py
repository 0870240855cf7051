"""What can go wrong between a client and a registry.

RegistryClientError
├── NotFound         no such subject, version or id
├── Incompatible     the schema breaks the subject's compatibility level
├── Refused          anything else that has to change before it can succeed
└── Unavailable      no registry answered, or its log did not: the same call may succeed later
"""

from __future__ import annotations

from tidegate.kit.errors import RetriableError, TidegateError, UsageError

__all__ = ["Incompatible", "NotFound", "Refused", "RegistryClientError", "Unavailable"]


class RegistryClientError(TidegateError):
    """What a registry answered. ``error_code`` is Confluent's; 0 where no registry answered."""

    def __init__(self, message: str, error_code: int = 0) -> None:
        super().__init__(message)
        self.error_code = error_code


class NotFound(RegistryClientError, UsageError):
    http_status = 404


class Incompatible(RegistryClientError, UsageError):
    http_status = 409


class Refused(RegistryClientError, UsageError):
    http_status = 422


class Unavailable(RegistryClientError, RetriableError):
    http_status = 503
