"""Puts tasks together: plugins, clients, policies, runners and their lifecycle, from configuration as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connect.api import Converter, ConverterContext, JobTask, PluginType, RecordBatch, SourceTask, Task
from connect.clients import ClientLoop, TaskClients, worker_client
from connect.config import WorkerConfig
from connect.connector_config import CommonConfig, JobConfig, SinkConfig, SourceConfig, sub_properties
from connect.context import RunningSinkContext, RunningSourceContext, RunningTaskContext
from connect.control import TaskControl
from connect.converters.headers import HeaderConversion, header_conversion
from connect.error_policy import ErrorPolicy, Failure
from connect.errors import UnknownPlugin
from connect.lifecycle import Lifecycle, Runner, TaskState
from connect.metrics.measures import TaskMeasures
from connect.plugins import PluginRegistry
from connect.sinks.consumer import KafkaSinkConsumer
from connect.sinks.dead_letters import DeadLetters, Reporter
from connect.sinks.job_log import GroupOffsets
from connect.sinks.job_runner import JobRunner
from connect.sinks.pipeline import SinkPipeline
from connect.sinks.rereading import Rereader
from connect.sinks.runner import SinkRunner
from connect.sources.acknowledgements import Acknowledgements
from connect.sources.conversion import Conversion
from connect.sources.ends import SourceEnds
from connect.sources.offsets import OffsetKeys, SourcePosition
from connect.sources.pipeline import InFlight, SourcePipeline
from connect.sources.runner import SourceRunner
from connect.sources.senders import DeadLetterSender
from connect.stores.offsets import canonical
from connect.transforms.chain import TransformChain
from tidegate.kit.config import parse

if TYPE_CHECKING:
    from registry.client.rehearsal import Rehearsal

__all__ = ["TaskParts", "assembled", "converter"]

_REQUEST_OVERHEAD_BYTES: Final = 1024
"""What a record batch may grow by beyond its rows: its header, and compression that does not help."""


_REGISTRY_KEYS: Final = ("schema.registry.", "basic.auth.", "bearer.auth.")
"""How keys of a registry client begin."""


@dataclass(frozen=True, slots=True)
class TaskParts:
    """What a task is made from: ``config`` are the connector's properties, ``properties`` the task's."""

    connector: str
    task: int
    task_class: type[Task[Any]]
    task_config: Any
    properties: Mapping[str, str]
    config: Mapping[str, str]
    worker: Mapping[str, str]
    plugins: PluginRegistry
    control: TaskControl
    offsets: Sequence[Mapping[str, Any]]
    on_state: Callable[[TaskState, BaseException | None], None]
    """Hears of each state of the task, with the error where its start is to be repeated."""
    on_topic: Callable[[str], None]
    on_progress: Callable[[dict[str, Any]], None]
    ask_worker: Callable[[str], Any]
    """Ask the worker: "fence" (end what forerunners of the connector's tasks can write), "confirm" (the task is still to run
    as it was set up; raises where not), "offsets" (the connector's positions in the worker's topic)."""

    keep_offsets: Callable[[Mapping[bytes, Mapping[str, Any]]], None]
    """Have the worker commit positions, by their keys, where it keeps them itself (standalone)."""

    @property
    def clients(self) -> TaskClients:
        return TaskClients(self.worker, self.connector, self.task, self.config)

    def context_arguments(self, worker: WorkerConfig) -> dict[str, Any]:
        return {
            "connector": self.connector,
            "task": self.task,
            "properties": self.properties,
            "stopping": self.control.stopping,
            "kafka": worker_client(self.worker),
            "registry": registry_settings(self.worker),
            "tell_progress": self.on_progress,
        }


def registry_settings(worker: Mapping[str, str]) -> dict[str, str]:
    """The settings of a client of the worker's schema registry; none where it has no registry."""
    url = parse(WorkerConfig, worker).schema_registry_url
    if url is None:
        return {}
    own = sub_properties(worker, "value.converter.") if "schema.registry.url" not in worker else worker
    given = {key: value for key, value in own.items() if key.startswith(_REGISTRY_KEYS)}
    return {**given, "schema.registry.url": url}


def converter(
    plugins: PluginRegistry,
    worker: Mapping[str, str],
    config: Mapping[str, str],
    *,
    is_key: bool,
    connector: str,
    rehearsals: list[Rehearsal] | None = None,
) -> Converter:
    """The converter of keys or of values: the connector's own, else the worker's, each with the keys beside it."""
    name = "key.converter" if is_key else "value.converter"
    chosen = config if config.get(name) else worker
    settings = parse(WorkerConfig, worker)
    class_name = chosen.get(name) or (settings.key_converter if is_key else settings.value_converter)
    plugin = plugins.find(class_name, PluginType.CONVERTER)
    if plugin is None:
        raise UnknownPlugin(f"{name}={class_name}: no converter goes by that name")
    values = sub_properties(chosen, f"{name}.")
    registry = registry_settings(worker)
    if values.get("schema.registry.url", registry.get("schema.registry.url")) == registry.get("schema.registry.url"):
        values = {**registry, **values}
    loaded = plugin.load()
    made: Converter = loaded(parse(loaded.config_class, values), ConverterContext(is_key, connector, rehearsals))
    return made


def _converters(parts: TaskParts, made: ExitStack) -> tuple[Converter, Converter]:
    keys, values = (
        converter(parts.plugins, parts.worker, parts.config, is_key=is_key, connector=parts.connector)
        for is_key in (True, False)
    )
    made.callback(keys.close)
    made.callback(values.close)
    return keys, values


def _headers(parts: TaskParts, made: ExitStack) -> HeaderConversion:
    headers = header_conversion(parts.plugins, parts.worker, parts.config, connector=parts.connector)
    made.callback(headers.close)
    return headers


def _chain(parts: TaskParts, config: CommonConfig, made: ExitStack) -> TransformChain:
    chain = TransformChain.configured(parts.plugins, config, parts.config)
    made.callback(chain.close)
    return chain


def assembled(parts: TaskParts) -> Lifecycle:
    """A task ready to run, with its clients connected. Raises Stopped; what was made before an error is closed."""
    made = ExitStack()
    with ExitStack() as unfinished:
        unfinished.push(made)
        if issubclass(parts.task_class, SourceTask):
            task, runner = _source(parts, made)
        elif issubclass(parts.task_class, JobTask):
            task, runner = _job(parts, made)
        else:
            task, runner = _sink(parts, made)
        unfinished.pop_all()  # it is the runner's to close from here on
    return Lifecycle(task, runner, parts.control, parts.on_state)


def _source(parts: TaskParts, made: ExitStack) -> tuple[Task[Any], Runner]:
    worker, config = parse(WorkerConfig, parts.worker), parse(SourceConfig, parts.config)
    policy = ErrorPolicy(config, parts.connector, parts.task, parts.control.stopping)
    keys, values = _converters(parts, made)
    chain = _chain(parts, config, made)
    ends = SourceEnds(parts, worker, config, made)
    positions = ends.connected()
    known = [(entry["partition"], entry["offset"]) for entry in positions]
    context = RunningSourceContext(**parts.context_arguments(worker), offsets=known)
    task: Any = parts.task_class(parts.task_config, context)
    in_flight = InFlight(worker.max_in_flight_bytes, parts.control.stopping)
    listens = parts.task_class.acknowledged is not SourceTask.acknowledged  # type: ignore[attr-defined]
    acknowledgements = Acknowledgements(task, parts.control) if listens else None
    pipeline = SourcePipeline(
        chain,
        Conversion(keys, values, policy, headers=_headers(parts, made)),
        policy=policy,
        sender=ends.sender,
        in_flight=in_flight,
        compression=ends.sender.compression,
        max_batch_bytes=ends.sender.max_request_bytes - _REQUEST_OVERHEAD_BYTES,
        # A transaction with a refused record cannot be committed.
        tolerates_refusals=config.errors_tolerance == "all" and not ends.transactional,
        on_topic=parts.on_topic,
        acknowledgements=acknowledgements,
    )

    def on_committed(safe: Sequence[SourcePosition]) -> None:
        for partition, offset in safe:
            context.remember(partition, offset)
        if acknowledgements is not None:
            acknowledgements.tell()
        with parts.control.calling("committed"):
            task.committed(safe)

    offset_keys = OffsetKeys(parts.connector, {canonical(entry["partition"]): entry["key"] for entry in positions})
    measures = TaskMeasures()
    runner = SourceRunner(
        task,
        context,
        parts.control,
        pipeline=pipeline,
        policy=policy,
        delivery=ends.delivery(context, offset_keys, on_committed, measures),
        acknowledgements=acknowledgements,
        measures=measures,
        merge=config.transaction_boundary.lower() != "connector",
        close=made.close,
    )
    return task, runner


def _sink(parts: TaskParts, made: ExitStack) -> tuple[Task[Any], Runner]:
    worker, config = parse(WorkerConfig, parts.worker), parse(SinkConfig, parts.config)
    loop = ClientLoop(parts.control)
    letters: DeadLetters | None = None

    def on_tolerated(failure: Failure) -> None:
        if letters is not None:
            letters.take(failure)

    policy = ErrorPolicy(config, parts.connector, parts.task, parts.control.stopping, on_tolerated=on_tolerated)
    context = RunningSinkContext(**parts.context_arguments(worker), errant_records=Reporter(policy))
    task: Any = parts.task_class(parts.task_config, context)
    keys, values = _converters(parts, made)
    headers = _headers(parts, made)
    pipeline = SinkPipeline(_chain(parts, config, made), keys, values, policy, headers=headers)
    if config.dead_letter_topic and config.errors_tolerance == "all":
        from broker.client import NewTopic

        topic = NewTopic(config.dead_letter_topic, 1, config.dead_letter_replication)
        sender = DeadLetterSender(loop, parts.clients, topic, fit=worker.replication_fit)
        made.callback(sender.close)
        sender.start()
        rereader = Rereader(loop, parts.clients.consumer())

        def original(failure: Failure) -> RecordBatch | None:
            batch = failure.batch
            if batch.origin is None or batch.offsets is None:
                return None
            return pipeline.original(failure) or rereader.record(batch.origin, batch.offsets[0].as_py())

        letters = DeadLetters(config, parts.task, original, sender, parts.plugins.names_by_class)
    consumer = KafkaSinkConsumer(loop, parts.clients.consumer(), config.topics, config.topics_regex or None)
    made.callback(consumer.stop)
    consumer.start()
    runner = SinkRunner(
        task,
        context,
        parts.control,
        pipeline=pipeline,
        policy=policy,
        consumer=consumer,
        dead_letters=letters,
        flush_interval_ms=worker.offset_flush_interval_ms,
        on_topic=parts.on_topic,
        close=made.close,
    )
    return task, runner


def _job(parts: TaskParts, made: ExitStack) -> tuple[Task[Any], Runner]:
    worker, config = parse(WorkerConfig, parts.worker), parse(SinkConfig, parts.config)
    context = RunningTaskContext(**parts.context_arguments(worker))
    task: Any = parts.task_class(parts.task_config, context)
    offsets = GroupOffsets(ClientLoop(parts.control), parts.clients.admin(), f"connect-{parts.connector}")
    made.callback(offsets.close)
    offsets.start()
    runner = JobRunner(
        task,
        parts.control,
        connector=parts.connector,
        sink=config,
        job=parse(JobConfig, parts.config),
        offsets=offsets,
        on_topic=parts.on_topic,
        close=made.close,
    )
    return task, runner
