"""The Bulk API 2.0 sink: writes records to objects with ingest jobs; each rejected record is reported separately."""

from __future__ import annotations

import re
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from connect.api import (
    ConnectError,
    DataError,
    Dataset,
    Origin,
    Problem,
    Record,
    RecordBatch,
    RetriableConnectError,
    SinkConnector,
    SinkTask,
    TopicPartition,
    get_logger,
)
from connectors.salesforce.bulk import ENDED, BulkClient
from connectors.salesforce.bulk_config import BulkSinkConfig
from connectors.salesforce.bulk_csv import NULL, rows_of, to_csv
from connectors.salesforce.bulk_layers import Layer, Layers, Part
from connectors.salesforce.bulk_rows import BulkRows
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.errors import RETRIABLE_CODES
from connectors.salesforce.sink import check_login

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BulkSink", "BulkSinkTask"]

logger = get_logger(__name__)

_ERROR: Final = re.compile(r"([A-Z_]+):")


class _Job(NamedTuple):
    """A job whose file has been sent."""

    id: str
    layer: Layer
    parts: list[Part]
    cells: pa.Table


class BulkSinkTask(SinkTask[BulkSinkConfig]):
    """Collects rows and writes them with jobs, one at a time.

    Rows that were sent to a job are not sent again while the task runs: the next call waits for a job that takes long.
    Offsets can be committed up to the first waiting row.
    """

    def dataset(self, topic: str) -> Dataset | None:
        del topic
        return self.config.dataset(self.config.object_name)

    def start(self) -> None:
        self._client = SalesforceClient(self.config)
        self.resources.callback(self._client.close)
        self._bulk = BulkClient(self._client)
        self._rows = BulkRows(self.config, self._client.describe(self.config.object_name), self._refuse)
        self._layers = Layers()
        self._job: _Job | None = None
        self._failing_since: float | None = None

    def cancel(self) -> None:
        self._client.abort()

    def put(self, batches: Sequence[RecordBatch]) -> None:
        if self._is_full():
            self._write()  # before new records are accepted, so that the same put can be repeated
        for batch in batches:
            self._rows.add(batch, self._layers)
        if self._is_full():
            self._try_to_write()

    def flush(self) -> None:
        self._write()

    def pre_commit(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self._try_to_write()
        safe = dict(positions)
        for part in self._waiting():
            assert part.batch.origin is not None and part.batch.offsets is not None
            partition = TopicPartition(part.batch.origin.topic, part.batch.origin.partition)
            first = part.batch.offsets[min(part.rows)].as_py()
            if partition in safe:
                safe[partition] = min(safe[partition], first)
        return safe

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """The partitions' next owner reads waiting rows again; rows of a running job are then written twice."""
        self._layers.drop([Origin(partition.topic, partition.partition) for partition in partitions])

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        client = SalesforceClient(self.config)
        try:
            rows = BulkRows(self.config, client.describe(self.config.object_name), self._refuse)
        finally:
            client.close()
        layers = Layers()
        for batch in batches:
            rows.add(batch, layers)
        while (layer := layers.first()) is not None:
            cells = _file(layer.next_parts(self.config.batch_rows, self.config.batch_bytes))
            yield f"{layer.operation} {self.config.object_name}, {len(cells)} rows:"
            yield from to_csv(cells).decode().splitlines()

    def _is_full(self) -> bool:
        waiting = sum(part.cells.nbytes for part in self._layers.parts())
        return len(self._layers) >= self.config.batch_rows or waiting >= self.config.batch_bytes

    def _waiting(self) -> Iterable[Part]:
        yield from self._job.parts if self._job is not None else ()
        yield from self._layers.parts()

    def _try_to_write(self) -> None:
        try:
            self._write()
        except RetriableConnectError as error:
            logger.warning("rows wait to be written", connector=self.context.connector, error=str(error))

    def _write(self) -> None:
        """Write all layers; raises RetriableConnectError while the rest is still waiting."""
        while True:
            if self._job is None:
                layer = self._layers.first()
                if layer is None:
                    return
                self._job = self._send(layer)
            ended = self._bulk.close_ingest(self._job.id)
            if ended["state"] not in ENDED:
                ended = self._bulk.wait(
                    "ingest", self._job.id, stopping=self.context.stopping, timeout_ms=self.config.job_timeout_ms
                )
            self._bulk.complete("ingest", ended)
            failed = list(rows_of(self._bulk.failed_rows(self._job.id))) if ended.get("numberRecordsFailed", 1) else []
            job, self._job = self._job, None
            self._judge(job, failed)

    def _send(self, layer: Layer) -> _Job:
        """Create a job from the first rows of a layer. They are put back when that fails."""
        parts = layer.next_parts(self.config.batch_rows, self.config.batch_bytes)
        try:
            cells = _file(parts)
            made = self._bulk.open_ingest(self.config.object_name, layer.operation, self.config.custom_id)
            self._bulk.upload(made, to_csv(cells))
        except BaseException:
            self._layers.put_back(layer, parts)
            raise
        return _Job(made, layer, parts, cells)

    def _judge(self, job: _Job, failed: Sequence[Mapping[str, str]]) -> None:
        """Report rows that were rejected permanently, and schedule the other rejected ones for another attempt."""
        again: dict[int, list[int]] = defaultdict(list)
        message = ""
        reports: list[tuple[Record, str]] = []
        for (number, row_number), row in zip(_failed_rows(job, failed), failed, strict=True):
            words = row.get("sf__Error", "")
            match = _ERROR.match(words)
            if match and match[1] in RETRIABLE_CODES and self._may_try_again():
                again[number].append(row_number)
                message = words
            else:
                reports.append((job.parts[number].record(row_number), words))
        self._layers.put_back(job.layer, [job.parts[number].take(sorted(again[number])) for number in sorted(again)])
        for record, words in reports:
            self._refuse(record, f"Salesforce refused the record: {words}")
        if again:
            raise RetriableConnectError(f"Salesforce could not take {sum(map(len, again.values()))} records: {message}")
        self._failing_since = None

    def _may_try_again(self) -> bool:
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        return now - self._failing_since < self.config.max_retry_ms / 1000

    def _refuse(self, record: Record, words: str) -> None:
        if self.config.on_error == "fail":
            self.context.errant_records.report(record, DataError(words))
        elif self.config.on_error == "log":
            logger.warning("a record is dropped", connector=self.context.connector, offset=record.offset, error=words)


def _file(parts: Sequence[Part]) -> pa.Table:
    """The cells of several parts as one table; a column that a part lacks is empty there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.concat_tables([part.cells for part in parts], promote_options="default")
    return pa.table({name: pc.fill_null(table.column(name), "") for name in table.column_names})


def _failed_rows(job: _Job, failed: Sequence[Mapping[str, str]]) -> Iterable[tuple[int, int]]:
    """The rows of a job that were rejected, as (part, index).

    Salesforce returns them in any order, so they are identified by their cells.
    """
    if not failed:
        return
    names = job.cells.column_names
    waiting: dict[tuple[str, ...], deque[tuple[int, int]]] = defaultdict(deque)
    where = [(number, index) for number, part in enumerate(job.parts) for index in range(len(part.rows))]
    for at, row in zip(where, zip(*(column.to_pylist() for column in job.cells.columns), strict=True), strict=True):
        waiting[tuple(map(_plain, row))].append(at)
    for failed_row in failed:
        queue = waiting[tuple(_plain(failed_row.get(name, "")) for name in names)]
        if not queue:
            raise ConnectError(
                f"job {job.id} refused a row that was not in its file: {dict(failed_row)!r:.300}; see its failed records in Salesforce"
            )
        yield queue.popleft()


def _plain(cell: str) -> str:
    return "" if cell == NULL else cell


class BulkSink(SinkConnector[BulkSinkConfig]):
    """Writes records of topics to objects or platform events with Bulk API 2.0 jobs; at least once."""

    config_class = BulkSinkConfig
    task_class = BulkSinkTask

    @classmethod
    def check(cls, config: BulkSinkConfig) -> Iterable[Problem]:
        return check_login(config, config.object_name, "salesforce.object")
