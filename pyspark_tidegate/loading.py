"""Rows of a frame as records in transactions that stay open, for a job that commits them when it is sure that it counts.

``df.write`` commits when all its tasks have succeeded. A job that has to note first what it is about to commit can't use that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark_tidegate.sink import Writer
from pyspark_tidegate.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from broker.client import TransactionalProducer

__all__ = ["Loaded", "load"]

_ANSWER: Final = "records LONG, transactional_id STRING, producer_id LONG, epoch INT"


class Loaded(NamedTuple):
    """The number of records, and the transactions that hold them; none where no transactions were asked for."""

    records: int
    transactions: Sequence[TransactionalProducer]


class _Loader(Writer):
    """Its transactional ids are made of a name: a load of the same name that comes later aborts what an earlier one left open."""

    def __init__(self, options: WriteOptions, frame: DataFrame, name: str) -> None:
        super().__init__(options, frame.schema)
        self._run = name
        if options.transactions:
            self._claim()

    def loaded(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The work of a task: writes its rows, and answers with a row of ``_ANSWER``."""
        import pyarrow as pa

        self._require_current()  # before it takes the transactional id from a later run's task
        count = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for batch in batches:
                count += batch.num_rows
                yield batch

        producer = self.write(counted()).transaction
        answer = [[count], *([None if producer is None else part] for part in (producer or (None,) * 3))]
        types = (pa.int64(), pa.string(), pa.int64(), pa.int32())
        columns = [pa.array(values, type_) for values, type_ in zip(answer, types, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, names=["records", "transactional_id", "producer_id", "epoch"])


def load(frame: DataFrame, options: Mapping[str, str], name: str) -> Loaded:
    """Write all rows with these options of a write; ``name`` is that of the load, the same in each of its runs.

    Records are acknowledged by all in-sync replicas on return. With ``transactions`` readers of committed records don't see them
    before ``Admin.commit_transactions``, and an open transaction is aborted by the cluster after ``transaction.timeout.ms``.
    """
    from broker.client import TransactionalProducer

    loader = _Loader(WriteOptions.parse(options), frame, name)
    rows = frame.mapInArrow(loader.loaded, _ANSWER).collect()
    transactions = [
        TransactionalProducer(row.transactional_id, row.producer_id, row.epoch)
        for row in rows
        if row.transactional_id is not None
    ]
    return Loaded(sum(row.records for row in rows), transactions)
