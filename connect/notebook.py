"""Runs connectors in this process, without worker, log or registry: for notebooks, scripts and experiments.

    from connect.notebook import read, write

    orders = read("JdbcSource", {"connection.url": "jdbc:sqlite:shop.db", "mode": "bulk", "topic.prefix": "shop_"}).to_pandas()
    write("LocalFileSink", {"store.url": "out", "format.class": "ParquetFormat", "flush.size": "1000"}, orders, topic="orders")

Configurations are those of a worker, as text; transforms are applied; converters are not, because nothing becomes
bytes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from connect.api import (
    ConnectError,
    Connector,
    Origin,
    RecordBatch,
    RowsConfig,
    RowsTask,
    SourceConnector,
    TopicPartition,
)
from connect.bench import Bench
from connect.config.connector import CommonConfig
from connect.plugins.registry import load_plugins
from connect.task.error_policy import ErrorPolicy
from connect.transforms.chain import TransformChain
from tidegate.kit.config import parse

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["batches", "read", "write"]


def read(
    connector: str | type[Connector[Any]], config: Mapping[str, str], *, rows: int | None = None, timeout_s: float = 60
) -> pa.Table:
    """The values of ``batches`` as one table; columns that some records lack are null there."""
    import pyarrow as pa

    tables = [batch.table() for batch in batches(connector, config, rows=rows, timeout_s=timeout_s)]
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


def batches(
    connector: str | type[Connector[Any]], config: Mapping[str, str], *, rows: int | None = None, timeout_s: float = 60
) -> list[RecordBatch]:
    """The output of a source that starts from the beginning: the first ``rows`` rows, or all until a poll returns none.

    Returns after at most ``timeout_s`` with the rows so far. Raises the plugins' errors.
    """
    batches: list[RecordBatch] = []
    count, until = 0, time.monotonic() + timeout_s
    with _bench(connector, config) as (bench, transformed):
        if not issubclass(bench.connector_class, SourceConnector):
            raise ConnectError(f"{bench.connector_class.__name__} is a sink: use write")
        planned = bench.plan()
        for number, properties in enumerate(planned):
            with bench.task(properties, number) as running:
                while (rows is None or count < rows) and time.monotonic() < until:
                    polled = running.task.poll()
                    if not polled and (rows is None or number + 1 < len(planned)):
                        break
                    for batch in polled:
                        part = batch if rows is None else batch.slice(0, rows - count)
                        count += len(part)
                        batches += transformed(part)
    return batches


def write(
    connector: str | type[Connector[Any]],
    config: Mapping[str, str],
    data: Any,
    *,
    topic: str = "rows",
    partition: int = 0,
) -> int:
    """Write rows to a sink as records of ``topic`` from offset 0 on, and make them durable. Returns how many.

    ``data`` are dicts, a DataFrame or an Arrow table, as for a ``RowsTask``. Raises the sink's errors; a record
    reported to ``errors.*`` raises ConnectError.
    """
    import pyarrow as pa

    topic_partition = TopicPartition(topic, partition)
    now, done = time.time_ns() // 1_000_000, 0
    with _bench(connector, {"topics": topic, **config}) as (bench, transformed), bench.sink(topic_partition) as running:
        for batch in _rows_of(data, topic):
            offsets = pa.array(range(done, done + len(batch)), pa.int64())
            stamps = pa.array([now] * len(batch), pa.int64())
            with_keys = batch.replace(
                offsets=offsets,
                timestamps_ms=stamps,
                origin=Origin(*topic_partition),
                source_partition=None,
                source_offset=None,
            )
            done += len(batch)
            running.task.put(transformed(with_keys))
            if running.context.errant:
                record, error = running.context.errant[0]
                raise ConnectError(f"the sink refused record {record.offset}: {error}") from error
        running.task.finish()
        if running.task.pre_commit({topic_partition: done}).get(topic_partition) != done:
            raise ConnectError(f"{bench.connector_class.__name__} did not make all {done} rows safe")
        running.task.close([topic_partition])
    return done


@contextmanager
def _bench(
    connector: str | type[Connector[Any]], config: Mapping[str, str]
) -> Iterator[tuple[Bench, Callable[[RecordBatch], list[RecordBatch]]]]:
    """The connector on a bench, and a function that applies its transforms to a batch."""
    plugins = load_plugins()
    loaded = plugins.connector(connector).load() if isinstance(connector, str) else connector
    bench = Bench(loaded, {name: str(value) for name, value in config.items()})
    common = parse(CommonConfig, bench.properties)
    policy = ErrorPolicy(common, bench.name, 0, threading.Event())
    with closing(TransformChain.configured(plugins, common, bench.properties)) as chain:
        yield bench, lambda batch: chain.apply(batch, policy.guarded)


def _rows_of(data: Any, topic: str) -> list[RecordBatch]:
    class Given(RowsTask[RowsConfig]):
        def rows(self, offset: Mapping[str, Any] | None) -> Any:
            return iter([data])

    class Source(SourceConnector[RowsConfig]):
        config_class, task_class = RowsConfig, Given

    with Bench(Source, {"topic": topic}).task() as running:
        return list(running.task.poll())
