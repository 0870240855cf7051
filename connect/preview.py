"""Shows what a connector would do, without doing it: with its real plugin, transforms and converters, and a read-only
log.

Nothing is written: no topic, no offset, no schema, nothing in the target. A source that acknowledges upstream when it
reads (a queue) can't undo that, though; its docs say so.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from connect.api import ConnectError, JobTask, RecordBatch, SinkTask, SourceConnector, SourceJobTask, SourceTask
from connect.bench import Bench
from connect.config.cloud_keys import with_cloud_keys
from connect.config.connector import CommonConfig, SinkConfig
from connect.config.worker import WorkerConfig
from connect.converters.headers import header_conversion
from connect.errors import BadRequest
from connect.plugins.config_providers import resolved
from connect.plugins.registry import PluginRegistry
from connect.task.assembly import converter
from connect.task.clients import worker_client
from connect.task.error_policy import ErrorPolicy, Failure
from connect.task.sinks.pipeline import SinkPipeline, raw_batch
from connect.task.sources.conversion import Conversion
from connect.transforms.chain import TransformChain
from tidegate.kit.config import parse
from tidegate.kit.scrubbing import noted_config, scrubbed

if TYPE_CHECKING:
    from broker.client import FetchedBatches
    from registry.client.rehearsal import Rehearsal

__all__ = ["Preview", "facts", "json_facts", "preview"]

_NO_REGISTRY: Final = "http://127.0.0.1:9"
"""An address without a registry, which counts as an empty one."""
_MOST_TEXT: Final = 20_000
_QUIET_S: Final = 3.0
"""A source that has delivered rows and delivers no more for so long is not waited for."""


@dataclass(slots=True)
class Preview:
    """``batches`` are those that a source would send (after its transforms) or that a sink's task would receive.

    ``left_out`` are records that could not be handled, with the place; a worker would treat them as ``errors.*`` says,
    or fail the task. ``schemas`` are those that a source would look up or register. ``actions`` are those of a sink,
    one line each. Of a job (``JobTask``, ``SourceJobTask``) there are actions only.
    """

    batches: list[RecordBatch] = field(default_factory=list)
    left_out: list[Failure] = field(default_factory=list)
    schemas: list[Rehearsal] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(len(batch) for batch in self.batches)


def facts(result: Preview) -> dict[str, Any]:
    """A preview as ``records``, ``schemas``, ``left_out`` and ``actions``, without secrets in texts."""
    return {
        "records": [
            {
                "topic": record.topic,
                "partition": record.origin.partition if record.origin is not None else record.partition,
                "offset": record.offset,
                "timestamp": record.timestamp_ms,
                "key": record.key,
                "value": record.value,
            }
            for batch in result.batches
            for record in batch.records()
        ],
        "schemas": [{"subject": s.subject, "id": s.schema_id, "schema": s.text} for s in result.schemas],
        "left_out": [
            {"stage": f.stage, "component": f.component, "error": scrubbed(str(f.error)), **f.position}
            for f in result.left_out
        ],
        "actions": [scrubbed(action) for action in result.actions],
    }


def json_facts(result: Preview) -> dict[str, Any]:
    """``facts`` in JSON's types: decimals, times and bytes are texts. A key or value that is longer than ``_MOST_TEXT`` characters as
    JSON, is nested too deeply, or is a map with keys of another type is a text that says so.
    """
    told = facts(result)
    for record in told["records"]:
        record["key"], record["value"] = _plain(record["key"]), _plain(record["value"])
    return told


def _plain(value: Any) -> Any:
    try:
        text = json.dumps(value, default=_text)
        if len(text) > _MOST_TEXT:
            return f"{text[:_MOST_TEXT]}... ({len(text):,} characters)"
        return json.loads(text, parse_constant=str)
    except RecursionError:
        return "(nested too deeply to be shown)"
    except (TypeError, ValueError) as error:
        return f"(not shown: {error})"


def _text(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def preview(
    plugins: PluginRegistry,
    worker: Mapping[str, str],
    config: Mapping[str, str],
    *,
    rows: int = 10,
    timeout_s: float = 30,
    given: Sequence[RecordBatch] | None = None,
) -> Preview:
    """The first ``rows`` rows of a connector, or those that arrive: the first within ``timeout_s``, others within 3 s of one another.

    A source starts as if it had never run; a sink reads its topics from their beginnings, or takes the batches of bytes
    ``given`` (``connect.given_records``), all their rows. ``worker`` has the default converters, ``schema.registry.url``
    and, for a sink, ``bootstrap.servers``. Raises BadRequest where a source or a job is given records, ConfigError
    and the plugins' errors.
    """
    worker = {"bootstrap.servers": "127.0.0.1:9092", **worker}
    worker.setdefault("schema.registry.url", parse(WorkerConfig, worker).schema_registry_url or _NO_REGISTRY)
    config = resolved(worker, config)
    noted_config(worker)
    noted_config(config)
    plugin = plugins.connector(config.get("connector.class", ""))
    config, connector = with_cloud_keys(config, plugin.type), plugin.load()
    common = parse(CommonConfig, config)
    result = Preview()
    tolerant = parse(CommonConfig, {**config, "errors.tolerance": "all", "errors.log.enable": "false"})
    policy = ErrorPolicy(tolerant, common.name, 0, threading.Event(), on_tolerated=result.left_out.append)
    chain = TransformChain.configured(plugins, common, config)
    keys, values = (
        converter(plugins, worker, config, is_key=is_key, connector=common.name, rehearsals=result.schemas)
        for is_key in (True, False)
    )
    headers = header_conversion(plugins, worker, config, connector=common.name)
    try:
        if given is not None and not issubclass(connector.task_class, SinkTask):
            kind = "a source" if issubclass(connector, SourceConnector) else "a job, which reads the log by itself"
            raise BadRequest(f"{plugin.name} is {kind}: only another sink can be given records")
        if issubclass(connector.task_class, SourceJobTask):
            _of_source_job(result, Bench(connector, {**worker, **config}), rows)
        elif issubclass(connector, SourceConnector):
            conversion = Conversion(keys, values, policy, headers=headers)
            bench = Bench(connector, connector.preview_properties(config))
            _of_source(result, bench, chain, policy, conversion, rows, timeout_s)
        elif issubclass(connector.task_class, JobTask):
            _of_job(result, Bench(connector, {**worker, **config}), worker, rows)
        else:
            pipeline = SinkPipeline(chain, keys, values, policy, headers=headers)
            _of_sink(result, Bench(connector, config), worker, pipeline, rows, given)
    finally:
        for part in (chain, keys, values, headers):
            part.close()
    return result


def _of_source(
    result: Preview,
    bench: Bench,
    chain: TransformChain,
    policy: ErrorPolicy,
    conversion: Conversion,
    rows: int,
    timeout_s: float,
) -> None:
    for number, properties in enumerate(bench.plan()):
        with bench.task(properties, number) as running:
            task: SourceTask[Any] = running.task
            limit = _stop_after(timeout_s, running.context.stopping)
            while result.rows < rows and not running.context.stopping.is_set():
                for batch in task.poll():
                    for part in chain.apply(batch.slice(0, rows - result.rows), policy.guarded):
                        for _ in conversion.converted(part):
                            pass  # run for its errors and schemas
                        result.batches.append(part)
                        limit.cancel()
                        limit = _stop_after(min(_QUIET_S, timeout_s), running.context.stopping)
                    if result.rows >= rows:
                        break
            limit.cancel()
        if result.rows >= rows:
            return


def _stop_after(seconds: float, stopping: threading.Event) -> threading.Timer:
    limit = threading.Timer(seconds, stopping.set)
    limit.daemon = True
    limit.start()
    return limit


def _of_source_job(result: Preview, bench: Bench, rows: int) -> None:
    task: SourceJobTask[Any] = bench.unstarted()
    try:
        result.actions = list(task.preview(rows))
    finally:
        task.stop()


def _of_sink(
    result: Preview,
    bench: Bench,
    worker: Mapping[str, str],
    pipeline: SinkPipeline,
    rows: int,
    given: Sequence[RecordBatch] | None,
) -> None:
    if given is not None:
        result.batches = [batch for batch in pipeline.receive_raw(given) if len(batch)]
    else:
        for batch in pipeline.receive(_some_fetched(worker, parse(SinkConfig, bench.properties), rows)):
            if result.rows < rows:
                result.batches.append(batch.slice(0, rows - result.rows))
    task: SinkTask[Any] = bench.unstarted()
    if result.batches:
        result.actions = list(task.preview(result.batches))


def _of_job(result: Preview, bench: Bench, worker: Mapping[str, str], rows: int) -> None:
    """The engine reads the records by itself, so no converter of ours can show them: only its actions are shown."""
    task: JobTask[Any] = bench.unstarted()
    task.context.kafka = worker_client(worker, "consumer")  # type: ignore[misc]
    batches, left = [], rows
    for part in _some_fetched(worker, parse(SinkConfig, bench.properties), rows):
        if len(batch := raw_batch(part).slice(0, left)):
            batches.append(batch)
            left -= len(batch)
    try:
        result.actions = list(task.preview(batches))
    finally:
        task.stop()


def _some_fetched(worker: Mapping[str, str], sink: SinkConfig, rows: int) -> list[FetchedBatches]:
    """As ``_fetched``; raises ConnectError where there is nothing."""
    fetched = _fetched(worker, sink, rows)
    if not fetched:
        raise ConnectError(f"there are no records to show in {', '.join(sink.topics) or sink.topics_regex}")
    return fetched


def _fetched(worker: Mapping[str, str], sink: SinkConfig, rows: int) -> list[FetchedBatches]:
    """The first records of the sink's topics, read without joining its group."""
    from broker.client import TopicPartition
    from broker.client.blocking import Admin, BatchConsumer

    config = worker_client(worker, "consumer").with_properties({"auto.offset.reset": "earliest"})
    with Admin(config) as admin:
        there = admin.list_topics()
        topics = [name for name in there if name in sink.topics]
        if sink.topics_regex:
            topics += [name for name in there if re.fullmatch(sink.topics_regex, name)]
        missing = [name for name in sink.topics if name not in there]
        if missing:
            raise ConnectError(f"there is no topic {', '.join(missing)}")
        described = admin.describe_topics(topics)
        partitions = [TopicPartition(name, p.partition) for name in topics for p in described[name].partitions]
        starts = admin.beginning_offsets(partitions)
        ends = admin.end_offsets(partitions, committed=config.reads_committed)
    left = {partition for partition in partitions if starts[partition] < ends[partition]}
    fetched: list[FetchedBatches] = []
    count = 0
    with BatchConsumer(config) as consumer:
        consumer.assign(sorted(left))
        while left and count < rows:
            for part in consumer.fetch():
                fetched.append(part)
                count += len(part.columns())
            left = {partition for partition in left if consumer.position(partition) < ends[partition]}
    return sorted(fetched, key=lambda part: (part.topic, part.partition))
