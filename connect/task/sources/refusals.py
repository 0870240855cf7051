"""Record batches that the log refuses for the fault of single records, where ``errors.tolerance=all``: those are found and left out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connect.api import RecordBatch
from connect.task.error_policy import ErrorPolicy, Failure
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from broker.client import Ack

__all__ = ["Refusals"]

logger = get_logger(__name__)

_PRODUCER = "org.apache.kafka.clients.producer.KafkaProducer"

Transmit = Callable[[int, RecordBatch], Sequence["Future[Ack]"]]
"""partition, rows with the log's bytes -> acknowledgements to come"""


@dataclass(frozen=True, slots=True)
class _Refused:
    partition: int
    rows: RecordBatch
    error: Exception
    outcome: Future[Any]


class Refusals:
    """``watch`` and ``settle`` are called from the task's thread; acknowledgements come from another one.

    Records that are sent again come after those sent since: the order is kept only for records that the log takes at once.
    """

    def __init__(self, policy: ErrorPolicy, transmit: Transmit) -> None:
        self._policy, self._transmit = policy, transmit
        self._refused: deque[_Refused] = deque()

    def watch(self, sent: Future[Ack], partition: int, rows: RecordBatch) -> Future[Any]:
        """A future that is done when every row has been taken by the log or left out; it fails as ``sent`` does otherwise."""
        outcome: Future[Any] = Future()

        def judge(done: Future[Ack]) -> None:
            error = None if done.cancelled() else done.exception()
            if isinstance(error, Exception) and _is_records_fault(error):
                self._refused.append(_Refused(partition, rows, error, outcome))
            else:
                _end_like(done, outcome)

        sent.add_done_callback(judge)
        return outcome

    def resend(self) -> None:
        """Send the halves of what was refused; leave out what is refused alone."""
        for _ in range(len(self._refused)):
            refused = self._refused.popleft()
            rows = refused.rows
            if len(rows) == 1:
                self._policy.tolerate(Failure("KAFKA_PRODUCE", _PRODUCER, refused.error, rows))
                # No dead letter queue can take it: the log has refused it.
                logger.warning(
                    "a record that the log refuses is left out",
                    topic=rows.topic,
                    source_partition=dict(rows.source_partition or {}),
                    source_offset=dict(rows.source_offset or {}),
                    error=str(refused.error),
                )
                refused.outcome.set_result(None)
                continue
            middle = len(rows) // 2
            halves = [rows.slice(0, middle), rows.slice(middle)]
            _join([sent for half in halves for sent in self._transmit(refused.partition, half)], refused.outcome)


def _is_records_fault(error: Exception) -> bool:
    from broker.client.errors import CorruptMessage, InvalidRecord, MessageTooLarge

    return isinstance(error, CorruptMessage | InvalidRecord | MessageTooLarge)


def _end_like(done: Future[Any], other: Future[Any]) -> None:
    if done.cancelled():
        other.cancel()
    elif (error := done.exception()) is not None:
        other.set_exception(error)
    else:
        other.set_result(done.result())


def _join(parts: Sequence[Future[Any]], whole: Future[Any]) -> None:
    """End ``whole`` when all parts have: well, or as the first that did not."""
    left = deque(parts)

    def ended(done: Future[Any]) -> None:
        left.pop()  # atomic: the last one to be here finds it empty
        if whole.done():
            return
        if done.cancelled() or done.exception() is not None:
            _end_like(done, whole)
        elif not left:
            whole.set_result(None)

    for part in parts:
        part.add_done_callback(ended)
