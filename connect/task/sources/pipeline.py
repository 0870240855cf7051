"""From a source's batch to produce requests: transforms, converters, partitions, record batches. Columns all the way."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from connect.api import ConnectError, RecordBatch
from connect.task.control import Stopped
from connect.task.error_policy import ErrorPolicy
from connect.task.lineage import FlowObserver
from connect.task.sources.acknowledgements import Acknowledgements
from connect.task.sources.conversion import Conversion
from connect.task.sources.refusals import Refusals
from connect.transforms.chain import TransformChain

if TYPE_CHECKING:
    import pyarrow as pa

    from broker.client import Ack, EncodedBatch

__all__ = ["InFlight", "Sender", "SourcePipeline"]


_PORTION_BYTES: Final = 8 * 1024 * 1024
"""Of the log's bytes, that are made at once."""


_Source: TypeAlias = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
"""A source partition, and the offset after the last of some records."""


class Sender(Protocol):
    """The producer as the pipeline uses it, on the task's thread."""

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has; creates it where the connector's configuration says how."""
        ...

    def send_batch(self, topic: str, partition: int, batch: EncodedBatch) -> Future[Ack]:
        """Send a finished batch; waits while there is no room for it."""
        ...


class InFlight:
    """Bounds the bytes that were sent and not acknowledged, and keeps the first failure."""

    def __init__(self, max_bytes: int, stopping: threading.Event) -> None:
        self._max_bytes, self._stopping = max_bytes, stopping
        self._bytes = 0
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._source: _Source = (None, None)

    def take(self, size: int) -> None:
        """Wait for room; raises Stopped when the task is to stop, and the failure of an earlier send."""
        with self._changed:
            while self._bytes and self._bytes + size > self._max_bytes and self._failure is None:
                if self._stopping.is_set():
                    raise Stopped
                self._changed.wait(0.1)
            self.check()
            self._bytes += size

    def answered(self, size: int) -> None:
        """The log has answered; what it said is for ``ended``."""
        with self._changed:
            self._bytes -= size
            self._changed.notify_all()

    def ended(self, future: Future[Any], source: _Source = (None, None)) -> None:
        """Keep the failure of a send, if it is the first, and from where the records came."""
        with self._changed:
            if not future.cancelled() and (error := future.exception()) is not None and self._failure is None:
                self._failure, self._source = error, source
            self._changed.notify_all()

    def check(self) -> None:
        """Raise the failure of a send, if there was one."""
        if self._failure is not None:
            partition, offset = self._source
            read = "" if partition is None else f" of {dict(partition)}, read up to {offset and dict(offset)}"
            raise ConnectError(f"the log refused records{read}: {self._failure}") from self._failure


class SourcePipeline:
    """Used from one thread. ``send`` makes no Python call per row where the schemas are flat."""

    def __init__(
        self,
        chain: TransformChain,
        conversion: Conversion,
        *,
        policy: ErrorPolicy,
        sender: Sender,
        in_flight: InFlight,
        compression: str = "none",
        max_batch_bytes: int = 1_000_000,
        tolerates_refusals: bool = False,
        on_topic: Callable[[str], None] | None = None,
        observer: FlowObserver | None = None,
        acknowledgements: Acknowledgements | None = None,
    ) -> None:
        self._chain, self._policy, self._sender, self._in_flight = chain, policy, sender, in_flight
        self._conversion = conversion
        self._compression, self._max_batch_bytes = compression, max_batch_bytes
        self._on_topic, self._observer, self._acknowledgements = on_topic, observer, acknowledgements
        self._tolerates_refusals = tolerates_refusals
        self._refusals: dict[str, Refusals] = {}
        self._rows_at_once: dict[str, int] = {}
        self._topics: set[str] = set()
        self._sticky = random.randrange(1 << 16)
        self.given_records = 0
        """How many records were given to the producer."""

    def send(self, batch: RecordBatch) -> list[Future[Any]]:
        """Send what a batch becomes; the batch is safe when all futures are done. Raises Stopped and what fails the task."""
        self.resend_refused()
        futures: list[Future[Any]] = []
        if not len(batch):
            return futures
        for transformed in self._chain.apply(batch, self._policy.guarded):
            if self._observer is not None:
                self._observer.saw(batch, transformed)
            for portion in self._portions(transformed):
                for converted in self._conversion.converted(portion):
                    futures += self._produce(converted)
        return futures

    def _portions(self, batch: RecordBatch) -> Iterator[RecordBatch]:
        """Pieces that become about ``_PORTION_BYTES`` each, going by what rows of the topic became before: JSON that carries its
        schema is many times as large as the batch it is made of."""
        rows = self._rows_at_once.get(batch.topic, len(batch))
        if rows >= len(batch):
            yield batch
            return
        for start in range(0, len(batch), rows):
            yield batch.slice(start, rows)

    def resend_refused(self) -> None:
        """Deal with what the log has refused; from time to time, while nothing is sent. Raises what fails the task."""
        self._in_flight.check()
        for refusals in self._refusals.values():
            refusals.resend()

    def _produce(self, batch: RecordBatch) -> list[Future[Any]]:
        if batch.topic not in self._topics:
            self._topics.add(batch.topic)
            if self._on_topic is not None:
                self._on_topic(batch.topic)
        portion = _PORTION_BYTES * len(batch) // max(batch.nbytes, 1)
        self._rows_at_once[batch.topic] = max(
            portion - portion % 8, 8
        )  # Arrow's bitmaps are sliced best at whole bytes
        futures: list[Future[Any]] = []
        for partition, part in self._partitioned(batch):
            futures += self._transmit(partition, part)
        self.given_records += len(batch)
        return futures

    def _transmit(self, partition: int, part: RecordBatch) -> list[Future[Any]]:
        """Send rows of one partition, with the log's bytes."""
        from broker.client.columns import encode_batches

        topic, first = part.topic, 0
        encoded = encode_batches(
            part.keys,
            part.values,
            part.timestamps_ms,
            part.headers,
            compression=self._compression,
            max_bytes=self._max_batch_bytes,
        )
        futures: list[Future[Any]] = []
        for piece in encoded:
            size = len(piece)
            self._in_flight.take(size)
            future: Future[Any] = self._sender.send_batch(topic, partition, piece)
            future.add_done_callback(lambda _, size=size: self._in_flight.answered(size))  # type: ignore[misc]
            if self._acknowledgements is not None and part.offsets is not None:
                self._acknowledgements.await_answer(future, part.slice(first, piece.count))
            if self._tolerates_refusals:
                refusals = self._refusals.setdefault(topic, Refusals(self._policy, self._transmit))
                future = refusals.watch(future, partition, part.slice(first, piece.count))
            first += piece.count
            source = (
                part.source_partition,
                part.source_offsets[first - 1] if part.source_offsets else part.source_offset,
            )
            future.add_done_callback(lambda done, source=source: self._in_flight.ended(done, source))  # type: ignore[misc]
            futures.append(future)
        return futures

    def _partitioned(self, batch: RecordBatch) -> Iterator[tuple[int, RecordBatch]]:
        """The rows of each partition in their order."""
        import numpy as np
        import pyarrow as pa

        from broker.client.partitioning import partitions_for

        count = self._sender.partition_count(batch.topic)
        self._sticky += 1
        if count == 1 and batch.partitions is None:
            yield 0, batch
            return
        chosen = partitions_for(batch.keys, batch.partitions, len(batch), count, self._sticky)
        order = np.argsort(chosen, kind="stable")
        used, starts = np.unique(chosen[order], return_index=True)
        if len(used) == 1:
            yield int(used[0]), batch
            return
        stops = [*starts[1:].tolist(), len(order)]
        for partition, start, stop in zip(used.tolist(), starts.tolist(), stops, strict=True):
            yield partition, _taken(batch, pa.array(order[start:stop]))


def _taken(batch: RecordBatch, rows: pa.Array) -> RecordBatch:
    names = ("values", "keys", "timestamps_ms", "headers", "offsets")
    columns = {name: column.take(rows) for name in names if (column := getattr(batch, name)) is not None}
    return batch.replace(partitions=None, source_offsets=None, **columns)
