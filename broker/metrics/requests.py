"""Counts and times of requests, by API, error and stage.

Every request is counted, so counting is a few additions and one tuple; everything else is computed on demand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from broker.protocol.fetch import FetchResponse
from broker.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponsePartition
from broker.protocol.messages.metadata import MetadataResponsePartition
from broker.protocol.produce import ProduceResponse
from broker.protocol.schema import Message
from broker.protocol.share_fetch import ShareFetchAnswer

__all__ = ["PERCENTILES", "RequestMetrics", "Times", "error_codes", "quantiles"]

_KEPT: Final = 1028
"""Samples per API that quantiles are computed from; the most recent, as many as in Kafka's reservoirs."""

PERCENTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


class Times(NamedTuple):
    """The stages of one request in seconds, in order; the same as in Kafka's ``RequestMetrics``.

    From the arrival of its bytes to its handler; in the handler; waiting for records, members or the disk. Then: ready,
    behind earlier answers that are not; encoding and sending; and how long the client is throttled in addition.
    """

    request_queue: float
    local: float
    remote: float
    response_queue: float
    response_send: float
    throttle: float

    @property
    def total(self) -> float:
        return sum(self[:5])


class RequestMetrics:
    """All requests of one API since the start."""

    __slots__ = ("errors", "request_bytes", "response_bytes", "samples", "versions", "without_error")

    def __init__(self, highest_version: int) -> None:
        self.versions = [0] * (highest_version + 1)
        """Number of requests by version."""
        self.errors: dict[int, int] = {}
        """Number of errors in answers, by error code."""
        self.without_error = 0
        """Answers without errors."""
        self.request_bytes = self.response_bytes = 0
        self.samples: deque[tuple[float, float, float, float, float, float]] = deque(maxlen=_KEPT)
        """The fields of ``Times``."""

    @property
    def requests(self) -> int:
        return sum(self.versions)

    def failed(self, code: int) -> None:
        self.errors[code] = self.errors.get(code, 0) + 1

    def quantiles(self) -> dict[str, list[float]]:
        """By stage and ``total``: one value for each of ``PERCENTILES``, in seconds."""
        samples = [Times(*sample) for sample in self.samples]
        parts = {name: [sample[i] for sample in samples] for i, name in enumerate(Times._fields)}
        parts["total"] = [sample.total for sample in samples]
        return {name: quantiles(values) for name, values in parts.items()}


def quantiles(samples: Iterable[float]) -> list[float]:
    """One value for each of ``PERCENTILES``."""
    ascending = sorted(samples)
    if not ascending:
        return [0.0] * len(PERCENTILES)
    return [ascending[min(int(quantile * len(ascending)), len(ascending) - 1)] for quantile in PERCENTILES]


def error_codes(answer: Any) -> Sequence[int]:
    """The nonzero error codes in an answer, with repetitions."""
    made = _FINDERS.get(type(answer))
    if made is None:
        made = _FINDERS[type(answer)] = _finder(type(answer))
    return made(answer)


_Finder = Callable[[Any], Sequence[int]]


def _of_produce(answer: ProduceResponse) -> Sequence[int]:
    return [result.error_code for _, results in answer.topics for result in results if result.error_code]


def _of_fetch(answer: FetchResponse | ShareFetchAnswer) -> Sequence[int]:
    numbers = [result.error_code for _, results in answer.topics for result in results if result.error_code]
    return [answer.error_code, *numbers] if answer.error_code else numbers


def _finder(kind: type[Message]) -> _Finder:
    """A function for a generated class that looks only at fields that can contain error codes."""
    has_error_code = any(field.name == "error_code" for field in kind.FIELDS)
    lists = [
        (field.name, _finder(field.kind))
        for field in kind.FIELDS
        if field.array and not isinstance(field.kind, str) and _has_errors(field.kind) and field.kind not in _WITHOUT
    ]

    def find(message: Any) -> Sequence[int]:
        result = [message.error_code] if has_error_code and message.error_code else []
        for name, inner in lists:
            for item in getattr(message, name) or ():
                result += inner(item)
        return result

    return find


def _has_errors(kind: type[Message]) -> bool:
    return any(
        field.name == "error_code" or (field.array and not isinstance(field.kind, str) and _has_errors(field.kind))
        for field in kind.FIELDS
    )


_WITHOUT: Final = (MetadataResponsePartition, DescribeTopicPartitionsResponsePartition)
"""An answer may contain thousands of them, and existing partitions have no error here."""
_FINDERS: Final[dict[type[Any], _Finder]] = {
    ProduceResponse: _of_produce,
    FetchResponse: _of_fetch,
    ShareFetchAnswer: _of_fetch,
}
