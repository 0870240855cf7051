"""The errors of a registry client.

RegistryClientError
├── NotFound         no such subject, version or id
├── Incompatible     the schema breaks the subject's compatibility level
├── Refused          the request has to change for another reason
└── Unavailable      no registry answered, or its log did not: the same call may succeed later
"""

from __future__ import annotations

from tidegate.kit.errors import RetriableError, TidegateError, UsageError

__all__ = ["Incompatible", "NotFound", "Refused", "RegistryClientError", "Unavailable"]


class RegistryClientError(TidegateError):
    """An error answered by a registry. ``error_code`` is Confluent's, or 0 if no registry answered."""

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
