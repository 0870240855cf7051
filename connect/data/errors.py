"""Errors of connectors, converters and transforms, arranged by the runtime's reaction.

TidegateError
├── RetriableConnectError   the call is repeated with the same data, after a pause
├── ConnectError            the task fails and shows the message as its trace
│   └── DataError           invalid records: handled as ``errors.*`` says; ``rows`` names them if known
└── NotFoundError ...       see the packages' own errors
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.kit.errors import RetriableError, TidegateError

__all__ = ["ConnectError", "DataError", "RetriableConnectError"]


class ConnectError(TidegateError):
    """A connector can't continue. Kafka Connect's ``ConnectException``."""


class RetriableConnectError(RetriableError):
    """The same call may succeed later. Kafka Connect's ``RetriableException``."""


class DataError(ConnectError):
    """Records are invalid: wrong type, wrong bytes, no schema. Kafka Connect's ``DataException``.

    ``rows`` are the indexes of invalid rows in the batch, if known; otherwise the runtime bisects the batch to find
    them.
    """

    def __init__(self, message: str, *, rows: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.rows = tuple(rows)
