"""Errors of the worker and its REST API, with the texts that clients of Kafka Connect match on.

TidegateError
├── UsageError
│   ├── BadRequest              400  the request must change
│   │   ├── InvalidConnector    400  one or more keys of a connector are invalid
│   │   └── UnknownPlugin       400  (404 if the plugin is the requested resource)
│   ├── Forbidden               403
│   ├── NotFound                404  no such connector, task or plugin
│   └── AlreadyExists           409
├── Unsupported                 500  not in this mode of the worker
├── TimedOut                    500  the answer is late; the work continues
├── Elsewhere                   409  another worker of the group can do it: the request is forwarded
└── RetriableError
    ├── Conflict                409  a concurrent change; the same request may succeed soon
    ├── StartingUp              503  not yet
    └── HostDied                500  the process that ran a task or a check is gone
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tidegate.kit.errors import RetriableError, TidegateError, UsageError

__all__ = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Elsewhere",
    "Forbidden",
    "HostDied",
    "InvalidConnector",
    "NotFound",
    "RemoteError",
    "StartingUp",
    "TimedOut",
    "UnknownPlugin",
    "Unsupported",
]


class BadRequest(UsageError):
    """The request cannot be carried out as it stands."""


class InvalidConnector(BadRequest):
    """A connector's configuration has errors; ``errors`` are their texts in the order of the keys."""

    def __init__(self, errors: Sequence[str]) -> None:
        lines = "\n".join(errors)
        super().__init__(
            f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n{lines}\n"
            "You can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`"
        )
        self.errors = tuple(errors)


class UnknownPlugin(BadRequest):
    """No plugin has that name."""


class Forbidden(UsageError):
    http_status = 403


class NotFound(UsageError):
    http_status = 404


class AlreadyExists(UsageError):
    http_status = 409


class Conflict(RetriableError):
    """Another change is under way."""

    http_status = 409


class Elsewhere(TidegateError):
    """Another worker has to do it. ``url`` is its REST address; None if it is unknown."""

    http_status = 409

    def __init__(self, message: str, url: str | None) -> None:
        super().__init__(message)
        self.url = url


class Unsupported(TidegateError):
    """A worker in this mode does not do this."""


class TimedOut(TidegateError):
    """The answer is not there in time; what was asked for is still being done."""


class StartingUp(RetriableError):
    """The worker is not as far yet."""


class HostDied(RetriableError):
    """The process that was to answer has ended."""

    http_status = 500


class RemoteError(TidegateError):
    """An error in a task host, passed to the requesting process; ``status`` is that of the REST answer."""

    http_status: ClassVar[int] = 500

    def __init__(self, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.http_status = status  # type: ignore[misc]
