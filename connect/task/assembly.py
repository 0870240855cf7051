"""Puts tasks together: plugins, clients, policies, runners and their lifecycle, from configuration as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from connect.api import (
    Converter,
    ConverterContext,
    Dataset,
    JobTask,
    PluginType,
    RecordBatch,
    SourceJobTask,
    SourceTask,
    Task,
    TopicPartition,
)
from connect.config.connector import CommonConfig, JobConfig, ScheduleConfig, SinkConfig, SourceConfig, sub_properties
from connect.config.worker import WorkerConfig
from connect.converters.headers import HeaderConversion, header_conversion
from connect.errors import UnknownPlugin
from connect.plugins.registry import PluginRegistry
from connect.stores.offsets import canonical
from connect.task.clients import ClientLoop
from connect.task.context import (
    RunningJobContext,
    RunningSinkContext,
    RunningSourceContext,
    RunningSourceJobContext,
)
from connect.task.error_policy import ErrorPolicy, Failure
from connect.task.lifecycle import Lifecycle, Runner, TaskState
from connect.task.lineage import Flow, FlowObserver, Flows
from connect.task.measures import TaskMeasures
from connect.task.parts import TaskParts, registry_settings
from connect.task.sinks.consumer import KafkaSinkConsumer
from connect.task.sinks.dead_letter_sender import DeadLetterSender
from connect.task.sinks.dead_letters import DeadLetters, Reporter
from connect.task.sinks.job_log import GroupOffsets
from connect.task.sinks.job_runner import JobRunner
from connect.task.sinks.pipeline import SinkPipeline
from connect.task.sinks.rereading import Rereader
from connect.task.sinks.runner import SinkRunner
from connect.task.sources.acknowledgements import Acknowledgements
from connect.task.sources.clients import SourceEnds
from connect.task.sources.conversion import Conversion
from connect.task.sources.job_runner import SourceJobRunner
from connect.task.sources.offsets import OffsetKeys, SourcePosition
from connect.task.sources.pipeline import InFlight, SourcePipeline
from connect.task.sources.runner import SourceRunner
from connect.transforms.chain import TransformChain
from tidegate.kit.config import parse

if TYPE_CHECKING:
    from broker.client import ClientConfig
    from registry.client.rehearsal import Rehearsal

__all__ = ["assembled", "converter"]

_REQUEST_OVERHEAD_BYTES: Final = 1024
"""The bytes that a record batch may have beyond its rows: its header, and compression that enlarges it."""


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
        parts = _telling_open_lineage(parts, unfinished)
        if issubclass(parts.task_class, SourceTask):
            task, runner = _source(parts, made)
        elif issubclass(parts.task_class, SourceJobTask):
            task, runner = _source_job(parts, made)
        elif issubclass(parts.task_class, JobTask):
            task, runner = _job(parts, made)
        else:
            task, runner = _sink(parts, made)
        unfinished.pop_all()  # it is the runner's to close from here on
    return Lifecycle(task, runner, parts.control, parts.on_state)


def _telling_open_lineage(parts: TaskParts, unfinished: ExitStack) -> TaskParts:
    """The parts with an OpenLineage that hears of states and flows, where the connector's configuration asks for it."""
    config = parse(CommonConfig, parts.config)
    if not config.told:
        return parts
    from connect.task.open_lineage import OpenLineageEvents, lineage_client

    name = parts.config.get("topic.prefix") or parts.connector
    servers = config.kafka or parts.worker.get("bootstrap.servers", "")
    events = OpenLineageEvents(
        config,
        lineage_client(config.file),
        job=f"{name}.{parts.task}",
        namespace=config.job_namespace or name,
        kafka=Dataset.of_topic(servers, "").namespace,
        is_source=issubclass(parts.task_class, SourceTask | SourceJobTask),
    )
    unfinished.callback(events.close)

    def on_state(state: TaskState, error: BaseException | None) -> None:
        parts.on_state(state, error)
        events.on_state(state, error)

    def on_flow(flow: Flow) -> None:
        parts.on_flow(flow)
        events.on_flow(flow)

    return replace(parts, on_state=on_state, on_flow=on_flow)


def _source(parts: TaskParts, made: ExitStack) -> tuple[Task[Any], Runner]:
    worker, config = parse(WorkerConfig, parts.worker), parse(SourceConfig, parts.config)
    policy = ErrorPolicy(config, parts.connector, parts.task, parts.control.stopping)
    keys, values = _converters(parts, made)
    chain = _chain(parts, config, made)
    ends = SourceEnds(parts, worker, config, made)
    positions = ends.connected()
    known = [(entry["partition"], entry["offset"]) for entry in positions]
    context = RunningSourceContext(**parts.context_arguments(worker), offsets=known, count_skipped=policy.count_skipped)
    task: Any = parts.task_class(parts.task_config, context)
    in_flight = InFlight(worker.max_in_flight_bytes, parts.control.stopping)
    listens = parts.task_class.acknowledged is not SourceTask.acknowledged  # type: ignore[attr-defined]
    acknowledgements = Acknowledgements(task, parts.control) if listens else None
    flows = Flows(task, parts.on_flow)
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
        observer=FlowObserver(flows, chain, is_source=True),
        acknowledgements=acknowledgements,
    )

    def on_committed(safe: Sequence[SourcePosition]) -> None:
        for partition, offset in safe:
            context.remember(partition, offset)
        if acknowledgements is not None:
            acknowledgements.tell()
        with parts.control.calling("committed"):
            task.committed(safe)

    measures = TaskMeasures()
    runner = SourceRunner(
        task,
        context,
        parts.control,
        pipeline=pipeline,
        policy=policy,
        delivery=ends.delivery(context, _offset_keys(parts, positions), on_committed, measures),
        acknowledgements=acknowledgements,
        measures=measures,
        merge=config.transaction_boundary.lower() != "connector",
        close=made.close,
    )
    return task, runner


def _told_of_topics(parts: TaskParts, task: Task[Any]) -> Callable[[str], None]:
    """For jobs, whose records no pipeline sees."""
    flows = Flows(task, parts.on_flow)

    def tell(topic: str) -> None:
        parts.on_topic(topic)
        flows.topic(topic)

    return tell


def _offset_keys(parts: TaskParts, positions: Sequence[Mapping[str, Any]]) -> OffsetKeys:
    return OffsetKeys(parts.connector, {canonical(entry["partition"]): entry["key"] for entry in positions})


def _source_job(parts: TaskParts, made: ExitStack) -> tuple[Task[Any], Runner]:
    worker, config = parse(WorkerConfig, parts.worker), parse(SourceConfig, parts.config)
    ends = SourceEnds(parts, worker, config, made)
    positions = ends.connected()
    known = [(entry["partition"], entry["offset"]) for entry in positions]
    context = RunningSourceJobContext(
        **parts.context_arguments(worker), offsets=known, create_topic=ends.sender.partition_count
    )
    task: Any = parts.task_class(parts.task_config, context)

    def on_committed(safe: Sequence[SourcePosition]) -> None:
        for partition, offset in safe:
            context.remember(partition, offset)

    runner = SourceJobRunner(
        task,
        context,
        parts.control,
        schedule=parse(ScheduleConfig, parts.config),
        delivery=ends.delivery(context, _offset_keys(parts, positions), on_committed, TaskMeasures()),
        on_topic=_told_of_topics(parts, task),
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
    chain = _chain(parts, config, made)
    flows = Flows(task, parts.on_flow)
    observer = FlowObserver(flows, chain, is_source=False)
    pipeline = SinkPipeline(chain, keys, values, policy, headers=headers, observer=observer)
    if config.dead_letter_topic and config.errors_tolerance == "all":
        sender = _dead_letter_sender(parts, config, loop, made)
        rereader = Rereader(loop, parts.clients.consumer())

        def original(failure: Failure) -> RecordBatch | None:
            batch = failure.batch
            if batch.origin is None or batch.offsets is None:
                return None
            return pipeline.original(failure) or rereader.record(batch.origin, batch.offsets[0].as_py())

        letters = DeadLetters(config, parts.task, original, sender, parts.plugins.names_by_class)
    consumer = KafkaSinkConsumer(
        loop, parts.clients.consumer(), config.topics, config.topics_regex or None, parts.clients.consumer_id
    )
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


def _dead_letter_sender(parts: TaskParts, config: SinkConfig, loop: ClientLoop, made: ExitStack) -> DeadLetterSender:
    from broker.client import NewTopic

    topic = NewTopic(config.dead_letter_topic, 1, config.dead_letter_replication)
    sender = DeadLetterSender(loop, parts.clients, topic, fit=parse(WorkerConfig, parts.worker).replication_fit)
    made.callback(sender.close)
    sender.start()
    return sender


def _job(parts: TaskParts, made: ExitStack) -> tuple[Task[Any], Runner]:
    worker, config = parse(WorkerConfig, parts.worker), parse(SinkConfig, parts.config)
    loop = ClientLoop(parts.control)
    letters: DeadLetters | None = None
    if config.dead_letter_topic and config.errors_tolerance == "all":
        sender = _dead_letter_sender(parts, config, loop, made)
        letters = DeadLetters(config, parts.task, lambda failure: failure.batch, sender, parts.plugins.names_by_class)
    policy = ErrorPolicy(
        config,
        parts.connector,
        parts.task,
        parts.control.stopping,
        on_tolerated=letters.take if letters is not None else None,
    )
    component = config.connector_class

    def leave_out(record: RecordBatch, error: Exception) -> None:
        policy.tolerate(Failure("VALUE_CONVERTER", component, error, record))

    def commit(ends: Mapping[TopicPartition, int]) -> None:
        runner.commit(ends)

    # An engine reads records as a sink's consumer would.
    isolation = parts.clients.consumer().consumer().isolation_level
    arguments = parts.context_arguments(worker)
    kafka: ClientConfig = arguments.pop("kafka").with_properties({"isolation.level": isolation})
    context = RunningJobContext(
        **arguments,
        kafka=kafka,
        tolerates_errors=config.errors_tolerance == "all",
        leave_out=leave_out,
        interrupted=parts.control.interrupted,
        commit=commit,
    )
    task: Any = parts.task_class(parts.task_config, context)
    group = f"connect-{parts.connector}"
    offsets = GroupOffsets(loop, parts.clients.admin(), group, committed=kafka.reads_committed)
    made.callback(offsets.close)
    offsets.start()
    runner = JobRunner(
        task,
        parts.control,
        connector=parts.connector,
        sink=config,
        job=parse(JobConfig, parts.config),
        offsets=offsets,
        policy=policy,
        dead_letters=letters,
        on_topic=_told_of_topics(parts, task),
        close=made.close,
    )
    return task, runner
