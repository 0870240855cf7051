"""Writing rows to topics: the writers that Spark calls, and the work of a task."""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage

from pyspark_tidegate.write_options import WriteOptions
from tidegate.kit.errors import FatalError, TidegateError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from broker.client import ClientConfig, TopicPartition, TransactionalProducer
    from broker.client.blocking import BatchProducer
    from pyspark_tidegate.encoding import Layout, Outgoing, WriteSchema

__all__ = ["AbortedWrite", "BatchWriter", "StreamWriter", "Writer", "was_committed"]

# Spark 4.1 has a class for streams that take Arrow batches. Before it, a stream's writer is given them as it is an Arrow writer too.
_ArrowStream: Any = getattr(datasource, "DataSourceStreamArrowWriter", None) or type(
    "_ArrowStream", (DataSourceStreamWriter, DataSourceArrowWriter), {}
)
_ROWS: Final = 100_000
_BYTES: Final = 16 << 20
"""Batches of Spark are put together until they have so many rows or bytes."""
_BATCH_BYTES: Final = 1_000_000
_TRANSACTION_MS: Final = "900000"
"""The longest that brokers allow by default: a transaction lasts as long as the job."""


class AbortedWrite(FatalError):
    """Another task has failed, and Spark has given the job up."""


@dataclass
class Written(WriterCommitMessage):  # type: ignore[misc]
    """A task has written its rows; ``transaction`` holds them where transactions are used."""

    transaction: TransactionalProducer | None


class Writer:
    """The part that batch and stream have in common. Made in the driver, which checks columns and registers schemas; pickled
    to the tasks.

    Rows are acknowledged by all in-sync replicas before their task ends. A task that Spark tries again writes its rows again.

    With ``transactions`` each task leaves its rows in an open transaction, and the driver commits all of them when all tasks
    have succeeded. A task can't commit by itself: where Spark fails to compute its rows, Spark ends the task's input as if
    it were complete. A task that is tried again aborts the rows of its earlier attempt, for both have one transactional id.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        import pyarrow as pa

        from pyspark_tidegate.encoding import layout_of

        self._options, self._run = options, uuid.uuid4().hex
        self._layout: Layout = layout_of(options, pa.schema(_arrow(schema)))
        self._schemas = self._registered()
        self._mark: TransactionalProducer | None = None

    def _registered(self) -> dict[tuple[str, str], WriteSchema]:
        """The schemas of the topic, if all rows have one; registered before any task runs."""
        from broker.client.blocking import Admin
        from pyspark_tidegate.encoding import write_schema
        from pyspark_tidegate.write_formats import WRITTEN
        from registry.client import RegistryClient

        options, layout = self._options, self._layout
        if not options.topic:
            return {}
        with Admin(_config(options)) as admin:
            admin.describe_topics([options.topic])  # raises where there is none
        sides = [("value", options.value_format, layout.value), ("key", options.key_format, layout.key)]
        registered = [(side, type_) for side, format_, type_ in sides if format_ in WRITTEN and type_ is not None]
        if not registered:
            return {}
        with RegistryClient.from_properties(options.registry) as client:
            return {
                (options.topic, side): write_schema(options, client, options.topic, type_, side)
                for side, type_ in registered
            }

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of a task."""
        from pyspark import TaskContext

        from broker.client.blocking import BatchProducer
        from pyspark_tidegate.encoding import Encoder
        from registry.client import RegistryClient

        options = self._options
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        config = _config(options)
        if options.transactions:
            config = config.with_properties(
                {
                    "transaction.timeout.ms": options.kafka.get("transaction.timeout.ms", _TRANSACTION_MS),
                    "transactional.id": self._transactional_id(task),
                }
            )
        with contextlib.ExitStack() as stack:
            client = None
            if options.registry:
                client = stack.enter_context(RegistryClient.from_properties(options.registry))
            encoder = Encoder(options, self._layout, self._schemas, client)
            producer = stack.enter_context(BatchProducer(config))
            sender = _Sender(producer, config, task)
            self._require_current()
            with _transaction(producer) if options.transactions else contextlib.nullcontext():
                for rows in _gathered(iterator):
                    for outgoing in encoder.encode(rows):
                        sender.send(outgoing)
                sender.wait()
                if options.group and sender.sent:
                    if task:
                        raise UsageError(
                            "the option transactions.group is set, and the rows are of several tasks: write them by one (repartition(1))"
                        )
                    producer.send_offsets({_noted_at(options): 0}, options.group, note=options.note)
                return Written(producer.leave_transaction() if options.transactions else None)

    def _require_current(self) -> None:
        """Raises AbortedWrite in a task of a write that was aborted, or has a later run."""
        from broker.client.blocking import Admin

        if self._mark is not None:
            with Admin(_config(self._options)) as admin:
                if not admin.is_current(self._mark):
                    raise AbortedWrite("the write was aborted before this task began")

    def _claim(self) -> None:
        """Mark the write as current, so that ``_require_current`` tells its tasks from those of an earlier one."""
        from broker.client.blocking import Admin

        with Admin(_config(self._options)) as admin:
            self._mark = admin.claim_producer(self._transactional_id("job"))

    def commit(self, messages: Sequence[Written | None], *_: int) -> None:
        """All tasks have succeeded. A stream gives the number of its batch too."""
        from broker.client.blocking import Admin

        transactions = [message.transaction for message in messages if message is not None and message.transaction]
        if transactions:
            with Admin(_config(self._options)) as admin:
                admin.commit_transactions(transactions)

    def abort(self, messages: Sequence[Written | None], *_: int) -> None:
        """Spark has given the job up: abort the transactions of all of them, so that readers need not wait for their timeout."""
        from broker.client.blocking import Admin

        if not self._options.transactions:
            return
        with Admin(_config(self._options)) as admin:
            if self._mark is not None:
                admin.fence_producers([self._mark.transactional_id])
            left = {message.transaction.transactional_id for message in messages if message and message.transaction}
            admin.fence_producers(left | {self._transactional_id(task) for task in range(len(messages))})

    def _transactional_id(self, task: int | str) -> str:
        return _transactional_id(self._options, self._run, task)


class BatchWriter(Writer, DataSourceArrowWriter):  # type: ignore[misc]
    """``df.write.format("tidegate")``."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        if options.group:
            self._run = _hashed(options.group)
        if options.transactions:
            # Fenced when the write is aborted. A task that only then gets its producer would leave a transaction that nobody
            # ends, so it looks at the mark first.
            self._claim()


class StreamWriter(Writer, _ArrowStream):  # type: ignore[misc]
    """``df.writeStream.format("tidegate")``.

    Spark makes another writer to commit or abort a batch than that of its tasks. The transactional ids are those of the
    checkpoint, so both know them, and a query that is restarted aborts what its forerunner left open.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        if options.checkpoint:
            self._run = _hashed(options.checkpoint)


def was_committed(given: Mapping[str, str]) -> bool:
    """Whether the newest write that was committed with these options' ``transactions.group`` noted their ``transactions.note``.

    Aborts what an earlier write of that group has left open. From then on that write can't be committed.
    """
    from broker.client.blocking import Admin

    options = WriteOptions.parse({name.lower(): value for name, value in given.items()})
    with Admin(_config(options)) as admin:
        admin.fence_producers([_transactional_id(options, _hashed(options.group), 0)])
        _, noted = admin.group_offsets_with_notes(options.group).get(_noted_at(options), (0, ""))
    return bool(options.note) and noted == options.note


def _transactional_id(options: WriteOptions, run: str, task: int | str) -> str:
    return f"{options.kafka.get('transactional.id', 'tidegate-spark')}-{run}-{task}"


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _noted_at(options: WriteOptions) -> TopicPartition:
    """The partition whose offset in the group has the note."""
    from broker.client import TopicPartition

    return TopicPartition(options.topic, 0)


def _config(options: WriteOptions) -> ClientConfig:
    from broker.client import ClientConfig

    rest = {n: value for n, value in options.kafka.items() if n not in ("bootstrap.servers", "transactional.id")}
    return ClientConfig(options.kafka["bootstrap.servers"], rest)


def _arrow(schema: StructType) -> list[pa.Field]:
    from pyspark.sql.pandas.types import to_arrow_schema

    return list(to_arrow_schema(schema))


@contextlib.contextmanager
def _transaction(producer: BatchProducer) -> Iterator[None]:
    """Begins a transaction, and aborts it when the block raises."""
    producer.begin_transaction()
    try:
        yield
    except BaseException:
        with contextlib.suppress(TidegateError):
            producer.abort_transaction()
        raise


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark's batches, of 10,000 rows by default, put together."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield _joined(waiting)
            waiting, rows, size = [], 0, 0
    if rows:
        yield _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


class _Sender:
    """Sends records to their partitions, and waits for the answers."""

    def __init__(self, producer: BatchProducer, config: ClientConfig, task: int) -> None:
        settings = config.producer()
        self._producer = producer
        self._compression = settings.compression_type
        self._batch_bytes = min(_BATCH_BYTES, settings.max_request_size)
        self._first = task
        """The partition at which rows without a key begin, so that tasks don't all begin at one."""
        self._answers: list[Future[Any]] = []
        self.sent = False
        """Whether there were any rows."""

    def send(self, outgoing: Outgoing) -> None:
        """Queue the records; waits while too much is on its way. Raises what an earlier batch was refused for."""
        from broker.client.columns import encode_batches

        self.sent = True
        for partition, part in self._parts(outgoing):
            encoded = encode_batches(
                part.keys,
                part.values,
                part.timestamps_ms,
                part.headers,
                compression=self._compression,
                max_bytes=self._batch_bytes,
            )
            self._answers += [self._producer.send_batch(outgoing.topic, partition, batch) for batch in encoded]
        # Each is asked once whether it is done: it may become so at any moment.
        answers, self._answers = self._answers, []
        for answer in answers:
            if answer.done():
                answer.result()
            else:
                self._answers.append(answer)

    def wait(self) -> None:
        for answer in self._answers:
            answer.result()

    def _parts(self, outgoing: Outgoing) -> Iterator[tuple[int, Outgoing]]:
        """The records of each partition in their order; those without a key are spread evenly, neighbours together."""
        import numpy as np
        import pyarrow as pa

        from broker.client.partitioning import partitions_for

        rows, count = len(outgoing.values), len(self._producer.partitions(outgoing.topic))
        keys = None
        if outgoing.keys is not None and outgoing.keys.null_count < rows:
            keys = outgoing.keys.cast(pa.binary())
        spread = self._first + np.arange(rows) * count // max(rows, 1)
        self._first += 1
        chosen = partitions_for(keys, outgoing.partitions, rows, count, spread)
        order = np.argsort(chosen, kind="stable")
        used, starts = np.unique(chosen[order], return_index=True)
        if len(used) == 1:
            yield int(used[0]), outgoing
            return
        stops = [*starts[1:].tolist(), rows]
        columns = (outgoing.keys, outgoing.values, None, outgoing.timestamps_ms, outgoing.headers)
        for partition, start, stop in zip(used.tolist(), starts.tolist(), stops, strict=True):
            at = pa.array(order[start:stop])
            yield partition, type(outgoing)(outgoing.topic, *(None if c is None else c.take(at) for c in columns))
