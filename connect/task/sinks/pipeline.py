"""From what a fetch brought to the batches that a sink task is given: columns, converters, transforms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from connect.api import Converter, DataError, Origin, RecordBatch, Schema, SchemaType
from connect.task.error_policy import ErrorPolicy, Failure
from connect.task.lineage import FlowObserver
from connect.transforms.chain import TransformChain

if TYPE_CHECKING:
    from broker.client import FetchedBatches
    from connect.converters.headers import HeaderConversion

__all__ = ["SinkPipeline"]

_BYTES: Final = Schema(SchemaType.BYTES, optional=True)


class SinkPipeline:
    """Used from one thread."""

    def __init__(
        self,
        chain: TransformChain,
        key_converter: Converter,
        value_converter: Converter,
        policy: ErrorPolicy,
        *,
        headers: HeaderConversion | None = None,
        observer: FlowObserver | None = None,
    ) -> None:
        self._chain, self._policy = chain, policy
        self._keys, self._values, self._headers = key_converter, value_converter, headers
        self._observer = observer
        self._raw: dict[Origin, list[RecordBatch]] = {}
        self.read_records = 0

    def receive(self, fetched: Iterable[FetchedBatches]) -> list[RecordBatch]:
        """Batches in the order of their offsets in each partition."""
        return self.receive_raw(map(raw_batch, fetched))

    def receive_raw(self, batches: Iterable[RecordBatch]) -> list[RecordBatch]:
        """As ``receive``, of batches of bytes as ``raw_batch`` makes them."""
        self._raw = {}
        made: list[RecordBatch] = []
        for raw in batches:
            if not len(raw):
                continue
            assert raw.origin is not None
            self._raw.setdefault(raw.origin, []).append(raw)
            self.read_records += len(raw)
            guarded = self._policy.guarded
            for keyed in guarded("KEY_CONVERTER", type(self._keys).__name__, raw, self._convert_keys):
                for converted in guarded("VALUE_CONVERTER", type(self._values).__name__, keyed, self._convert_values):
                    for headed in self._with_headers(converted):
                        made += self._transformed(headed)
        return made

    def _transformed(self, batch: RecordBatch) -> list[RecordBatch]:
        made = self._chain.apply(batch, self._policy.guarded)
        if self._observer is not None:
            for part in made:
                self._observer.saw(batch, part)
        return made

    def _with_headers(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        headers = self._headers
        if headers is None or batch.headers is None:
            return [batch]
        return self._policy.guarded("HEADER_CONVERTER", headers.name, batch, lambda rows: [headers.from_log(rows)])

    def original(self, failure: Failure) -> RecordBatch | None:
        """The record of a failure as it lay in the log, while its fetch is the current one."""
        batch = failure.batch
        if batch.origin is None or batch.offsets is None or not len(batch):
            return None
        return self.original_at(batch.origin, batch.offsets[0].as_py())

    def original_at(self, origin: Origin, offset: int) -> RecordBatch | None:
        for raw in self._raw.get(origin, ()):
            assert raw.offsets is not None
            row = raw.offsets.index(offset).as_py()
            if row >= 0:
                return raw.slice(row, 1)
        return None

    def _convert_values(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        made, start = [], 0
        for run in self._values.to_connect(batch.topic, batch.values):
            part = batch.slice(start, len(run.values))
            made.append(part.replace(values=run.values, value_schema=run.schema))
            start += len(run.values)
        return _whole(made, start, batch, self._values)

    def _convert_keys(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        if batch.keys is None:
            return [batch]
        if batch.keys.null_count == len(batch.keys):
            return [batch.replace(keys=None, key_schema=None)]
        made, start = [], 0
        for run in self._keys.to_connect(batch.topic, batch.keys):
            part = batch.slice(start, len(run.values))
            made.append(part.replace(keys=run.values, key_schema=run.schema))
            start += len(run.values)
        return _whole(made, start, batch, self._keys)


def raw_batch(fetched: FetchedBatches) -> RecordBatch:
    """A fetch as a batch of bytes."""
    columns = fetched.columns()
    return RecordBatch(
        topic=fetched.topic,
        values=columns.values,
        value_schema=_BYTES,
        keys=columns.keys,
        key_schema=_BYTES,
        timestamps_ms=columns.timestamps_ms,
        headers=columns.headers,
        origin=Origin(fetched.topic, fetched.partition),
        offsets=columns.offsets,
    )


def _whole(made: list[RecordBatch], rows: int, batch: RecordBatch, converter: Converter) -> list[RecordBatch]:
    if rows != len(batch):
        name = type(converter).__name__
        raise DataError(f"{name} made {rows} rows of {len(batch)} of topic {batch.topic}: a fault of the converter")
    return made
