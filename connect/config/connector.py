"""Keys common to all connectors: those of Kafka Connect's runtime, and our job keys."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from typing import Any

from connect.config.cloud_keys import CLOUD_FORMATS, OLD_CLOUD_FORMAT
from tidegate.kit.config import KeyType, at_least, config, distinct, family, key, non_empty, one_of, pairs, valid_regex
from tidegate.kit.errors import Problem
from tidegate.kit.java_regex import JavaRegex

__all__ = [
    "CommonConfig",
    "JobConfig",
    "LineageConfig",
    "ScheduleConfig",
    "SinkConfig",
    "SourceConfig",
    "TopicGroup",
    "TransformConfig",
    "override_properties",
    "sub_properties",
    "topic_groups",
]

_COMMON, _ERRORS, _EXACTLY_ONCE, _LINEAGE = "Common", "Error Handling", "Exactly Once Support", "Lineage"


def _plain_name(value: str) -> str | None:
    if not value.strip():
        return "String may not be empty"
    controls = [str(code) for code in map(ord, value) if code < 32 or 127 <= code < 160]
    if controls:
        return f"String may not contain control sequences but had the following ASCII chars: {', '.join(controls)}"
    return None


_plain_name.valid = "non-empty string without ISO control characters"  # type: ignore[attr-defined]


def _unique_aliases(kind: str) -> Any:
    def check(values: list[str]) -> str | None:
        twice = sorted({value for value in values if values.count(value) > 1})
        return f"Duplicate alias provided: {', '.join(twice)}" if twice else None

    check.valid = f"non-null string, unique {kind}"  # type: ignore[attr-defined]
    return check


def _cloud_format(name: str, converter: str) -> Any:
    return key(
        name,
        default=None,
        check=one_of(*CLOUD_FORMATS, ignore_case=True),
        doc=f"What Confluent's cloud has in place of {converter}, and chooses one here unless that is given: AVRO, JSON_SR and "
        "PROTOBUF with a schema registry, JSON without schemas, STRING, BYTES.",
        importance="low",
        group=_COMMON,
        width="SHORT",
        display_name=name.replace(".", " ").capitalize(),
        aliases=(OLD_CLOUD_FORMAT,) if name.endswith(OLD_CLOUD_FORMAT) else (),
    )


def _version(plugin: str, display_name: str) -> Any:
    return key(
        f"{plugin}.plugin.version",
        default=None,
        doc=f"Version of the {display_name.lower()}. There is one of each here, so any version is taken.",
        importance="low",
        group=_COMMON,
        width="SHORT",
        display_name=f"{display_name} version",
    )


@config
class LineageConfig:
    """Debezium's keys for OpenLineage, here of every connector."""

    told: bool = key(
        "openlineage.integration.enabled",
        default=False,
        doc="Whether OpenLineage is told what the tasks move from where to where; it needs tidegate[lineage].",
        importance="low",
        group=_LINEAGE,
    )
    file: str = key(
        "openlineage.integration.config.file.path",
        default="./openlineage.yml",
        doc="A file on the worker's machine in the form of OpenLineage's clients: its transport says where events go.",
        importance="low",
        group=_LINEAGE,
    )
    job_namespace: str | None = key(
        "openlineage.integration.job.namespace",
        default=None,
        doc="The namespace of the jobs, one for each task; topic.prefix, or else the connector's name, unless given.",
        importance="low",
        group=_LINEAGE,
    )
    job_description: str = key(
        "openlineage.integration.job.description",
        default="Debezium change data capture job",
        doc="What the jobs are described as.",
        importance="low",
        group=_LINEAGE,
    )
    job_tags: list[str] = key(
        "openlineage.integration.job.tags",
        default=[],
        aliases=("openlineage.integration.tags",),
        check=pairs,
        doc="Tags of the jobs: k1=v1,k2=v2.",
        importance="low",
        group=_LINEAGE,
    )
    job_owners: list[str] = key(
        "openlineage.integration.job.owners",
        default=[],
        aliases=("openlineage.integration.owners",),
        check=pairs,
        doc="Owners of the jobs, each after its kind: team=shop,maintainer=jo.",
        importance="low",
        group=_LINEAGE,
    )
    kafka: str | None = key(
        "openlineage.integration.dataset.kafka.bootstrap.servers",
        default=None,
        doc="The servers that name the cluster in lineages; the worker's unless given.",
        importance="low",
        group=_LINEAGE,
    )

    def problems(self) -> Iterable[Problem]:
        if self.told and importlib.util.find_spec("openlineage") is None:
            yield Problem(
                "openlineage.integration.enabled",
                "openlineage.integration.enabled=true needs openlineage-python: pip install 'tidegate[lineage]'",
            )


@config
class CommonConfig(LineageConfig):
    """Keys of sources and sinks."""

    name: str = key(
        "name",
        doc="Globally unique name to use for this connector.",
        importance="high",
        check=_plain_name,
        group=_COMMON,
        display_name="Connector name",
    )
    connector_class: str = key(
        "connector.class",
        doc="Name or alias of the class for this connector: the full class name, or its last part with or without "
        "'Connector', or module:Class of a Python class.",
        importance="high",
        group=_COMMON,
        width="LONG",
        display_name="Connector class",
    )
    connector_version: str | None = key(
        "connector.plugin.version",
        default=None,
        doc="Version of the connector.",
        group=_COMMON,
        display_name="Connector version",
    )
    tasks_max: int = key(
        "tasks.max",
        default=1,
        type=KeyType.INT,
        check=at_least(1),
        doc="Maximum number of tasks to use for this connector.",
        importance="high",
        group=_COMMON,
        width="SHORT",
        display_name="Tasks max",
    )
    tasks_max_enforce: bool = key(
        "tasks.max.enforce",
        default=True,
        doc="Whether a connector that plans more tasks than tasks.max fails (true) or runs them with a warning.",
        importance="low",
        group=_COMMON,
        width="SHORT",
        display_name="Enforce tasks max",
        deprecated="present for Kafka Connect's sake; leave it true",
    )
    key_converter: str | None = key(
        "key.converter",
        default=None,
        type=KeyType.CLASS,
        doc="Converter between Connect's data and the bytes of record keys; the worker's unless given.",
        importance="low",
        group=_COMMON,
        width="SHORT",
        display_name="Key converter class",
    )
    key_converter_version: str | None = _version("key.converter", "Key converter")
    value_converter: str | None = key(
        "value.converter",
        default=None,
        type=KeyType.CLASS,
        doc="Converter between Connect's data and the bytes of record values; the worker's unless given.",
        importance="low",
        group=_COMMON,
        width="SHORT",
        display_name="Value converter class",
    )
    value_converter_version: str | None = _version("value.converter", "Value converter")
    header_converter: str | None = key(
        "header.converter",
        default=None,
        type=KeyType.CLASS,
        doc="Converter between values with a schema and the bytes of record headers; the worker's unless given.",
        importance="low",
        group=_COMMON,
        width="SHORT",
        display_name="Header converter class",
    )
    header_converter_version: str | None = _version("header.converter", "Header converter")
    transforms: list[str] = key(
        "transforms",
        default=[],
        check=_unique_aliases("transformation aliases"),
        doc="Aliases for the transformations to be applied to records, in this order.",
        importance="low",
        group="Transforms",
        width="LONG",
        display_name="Transforms",
    )
    predicates: list[str] = key(
        "predicates",
        default=[],
        check=_unique_aliases("predicate aliases"),
        doc="Aliases for the predicates used by transformations.",
        importance="low",
        group="Predicates",
        width="LONG",
        display_name="Predicates",
    )
    reload_action: str = key(
        "config.action.reload",
        default="restart",
        check=one_of("none", "restart"),
        doc="What to do when the lease of a value behind a placeholder ends (KIP-297). The providers for files, directories and the "
        "environment give no leases, as in Kafka Connect: a changed value is read at the next start.",
        importance="low",
        group=_COMMON,
        display_name="Reload Action",
    )
    errors_retry_timeout_ms: int = key(
        "errors.retry.timeout",
        default=0,
        doc="Milliseconds for which an operation that may succeed later is tried again; 0 not at all, -1 for ever.",
        group=_ERRORS,
        display_name="Retry Timeout for Errors",
    )
    errors_retry_delay_max_ms: int = key(
        "errors.retry.delay.max.ms",
        default=60_000,
        doc="Longest time in milliseconds between two tries.",
        group=_ERRORS,
        display_name="Maximum Delay Between Retries for Errors",
    )
    errors_tolerance: str = key(
        "errors.tolerance",
        default="none",
        check=one_of("none", "all"),
        doc="'none': a record that cannot be converted or transformed fails the task; 'all': it is left out.",
        group=_ERRORS,
        width="SHORT",
        display_name="Error Tolerance",
    )
    errors_log: bool = key(
        "errors.log.enable",
        default=False,
        doc="Whether every tolerated error is logged with its stage and place.",
        group=_ERRORS,
        width="SHORT",
        display_name="Log Errors",
    )
    errors_log_messages: bool = key(
        "errors.log.include.messages",
        default=False,
        doc="Whether the log also shows topic, partition, offset and timestamp of the record at fault.",
        group=_ERRORS,
        width="SHORT",
        display_name="Log Error Details",
    )
    task_isolation: str = key(
        "task.isolation",
        default="shared",
        check=one_of("shared", "process"),
        doc="'shared': tasks are threads in the worker's task hosts; 'process': each task has a process of its own.",
        importance="low",
        group=_COMMON,
        display_name="Task isolation",
    )
    task_restart_max: int = key(
        "task.restart.max",
        default=0,
        type=KeyType.INT,
        check=at_least(-1),
        doc="How many times a task that failed is started again by itself, -1 for ever. It counts anew once the task has "
        "run for task.restart.backoff.max.ms. Kafka Connect leaves such a task FAILED, as 0 does.",
        importance="low",
        group=_COMMON,
        display_name="Task restarts",
    )
    task_restart_backoff_ms: int = key(
        "task.restart.backoff.ms",
        default=1_000,
        check=at_least(0),
        doc="Milliseconds before the first of these restarts; twice as many before each one after it.",
        importance="low",
        group=_COMMON,
        display_name="Task restart backoff",
    )
    task_restart_backoff_max_ms: int = key(
        "task.restart.backoff.max.ms",
        default=60_000,
        check=at_least(0),
        doc="The longest such time in milliseconds.",
        importance="low",
        group=_COMMON,
        display_name="Longest task restart backoff",
    )
    task_hang_timeout_ms: int = key(
        "task.hang.timeout.ms",
        default=300_000,
        check=at_least(0),
        doc="Milliseconds after which one call of a task (poll, put, flush ...) counts as hanging: where the task is then "
        "is shown in its status, and task.hang.action done. 0 never.",
        importance="low",
        group=_COMMON,
        display_name="Task hang timeout",
    )
    task_hang_action: str = key(
        "task.hang.action",
        default="show",
        check=one_of("show", "restart"),
        doc="'show': the task goes on, and where it hangs stands as trace in its status. 'restart': its host process is "
        "drained, killed and replaced, and the task is started again.",
        importance="low",
        group=_COMMON,
        display_name="Task hang action",
    )
    producer_override: dict[str, str] = family("producer.override.", doc="Settings of the producers of this connector.")
    consumer_override: dict[str, str] = family("consumer.override.", doc="Settings of the consumers of this connector.")
    admin_override: dict[str, str] = family("admin.override.", doc="Settings of the admin clients of this connector.")


@config
class SourceConfig(CommonConfig):
    """Keys of sources only."""

    topic_creation_groups: list[str] = key(
        "topic.creation.groups",
        default=[],
        check=_unique_aliases("topic creation groups"),
        doc="Groups of topics that are created with settings of their own, in the order in which they are tried.",
        importance="low",
        group="Topic Creation",
        width="LONG",
        display_name="Topic Creation Groups",
    )
    exactly_once: str = key(
        "exactly.once.support",
        default="requested",
        check=one_of("requested", "required", ignore_case=True),
        doc="'required' lets the connector be checked beforehand: without exactly-once delivery it is refused. "
        "'requested' takes what worker and connector can do.",
        group=_EXACTLY_ONCE,
        width="SHORT",
        display_name="Exactly once support",
    )
    transaction_boundary: str = key(
        "transaction.boundary",
        default="poll",
        check=one_of("poll", "interval", "connector", ignore_case=True),
        doc="With exactly-once sources: where a transaction ends. 'poll': with what each poll brought; 'interval': after "
        "transaction.boundary.interval.ms; 'connector': where the connector says, if it can.",
        group=_EXACTLY_ONCE,
        width="SHORT",
        display_name="Transaction Boundary",
    )
    transaction_interval_ms: int | None = key(
        "transaction.boundary.interval.ms",
        default=None,
        type=KeyType.LONG,
        check=at_least(0),
        importance="low",
        doc="Milliseconds from one commit to the next with transaction.boundary=interval; the worker's "
        "offset.flush.interval.ms unless given.",
        group=_EXACTLY_ONCE,
        width="SHORT",
        display_name="Transaction boundary interval",
    )
    offsets_topic: str | None = key(
        "offsets.storage.topic",
        default=None,
        check=non_empty,
        importance="low",
        doc="A topic of its own for this connector's offsets, on the cluster that its records go to; created if missing. "
        "The worker's offset topic gets them too. Unless given, the worker's alone.",
        group="offsets.topic",
        width="LONG",
        display_name="Offsets topic",
    )
    cloud_format: str | None = _cloud_format("output.data.format", "value.converter")
    cloud_key_format: str | None = _cloud_format("output.key.format", "key.converter")


@config
class SinkConfig(CommonConfig):
    """Keys of sinks only."""

    topics: list[str] = key(
        "topics",
        default=[],
        check=distinct,
        doc="List of topics to consume, separated by commas.",
        importance="high",
        group=_COMMON,
        width="LONG",
        display_name="Topics",
    )
    topics_regex: str = key(
        "topics.regex",
        default="",
        check=valid_regex,
        doc="Regular expression giving topics to consume. Only one of topics or topics.regex should be specified.",
        importance="high",
        group=_COMMON,
        width="LONG",
        display_name="Topics regex",
    )
    dead_letter_topic: str = key(
        "errors.deadletterqueue.topic.name",
        default="",
        doc="Topic that gets the records that were left out under errors.tolerance=all; none if empty.",
        group=_ERRORS,
        display_name="Dead Letter Queue Topic Name",
    )
    dead_letter_replication: int = key(
        "errors.deadletterqueue.topic.replication.factor",
        default=3,
        type=KeyType.SHORT,
        doc="Replication factor of that topic, where it has to be created.",
        group=_ERRORS,
        display_name="Dead Letter Queue Topic Replication Factor",
    )
    dead_letter_headers: bool = key(
        "errors.deadletterqueue.context.headers.enable",
        default=False,
        doc="Whether its records carry headers (__connect.errors.*) that say where and why they were left out.",
        group=_ERRORS,
        display_name="Enable Error Context Headers",
    )
    cloud_format: str | None = _cloud_format("input.data.format", "value.converter")
    cloud_key_format: str | None = _cloud_format("input.key.format", "key.converter")

    def problems(self) -> Iterable[Problem]:
        yield from CommonConfig.problems(self)
        if self.topics and self.topics_regex:
            text = "topics and topics.regex are mutually exclusive options, but both are set."
            yield Problem("topics", f"Invalid value {','.join(self.topics)} for configuration topics: {text}")
            yield Problem("topics.regex", f"Invalid value {self.topics_regex} for configuration topics.regex: {text}")
        if not self.topics and not self.topics_regex:
            text = "Must configure one of topics or topics.regex"
            yield Problem("topics", f"Invalid value  for configuration topics: {text}")
            yield Problem("topics.regex", f"Invalid value  for configuration topics.regex: {text}")
        if self.dead_letter_topic and self.dead_letter_topic in self.topics:
            text = "The DLQ topic may not be included in the list of topics to consume"
            yield Problem("topics", f"Invalid value {','.join(self.topics)} for configuration topics: {text}")


@config
class ScheduleConfig:
    """When the jobs of an external engine run (SourceJobTask, JobTask)."""

    interval_ms: int = key(
        "job.interval.ms",
        default=60_000,
        check=at_least(0),
        doc="Milliseconds from the end of a run to the next look for new records, where job.schedule is not given.",
        group="Job",
    )
    schedule: str | None = key(
        "job.schedule",
        default=None,
        doc="When runs start, as a cron expression of five fields (minute hour day month weekday), in UTC.",
        group="Job",
    )

    def problems(self) -> Iterable[Problem]:
        if self.schedule is not None:
            from apscheduler.triggers.cron import CronTrigger

            try:
                CronTrigger.from_crontab(self.schedule, timezone="UTC")
            except ValueError as error:
                text = f"not a cron expression of five fields ({error})"
                yield Problem("job.schedule", f"Invalid value {self.schedule} for configuration job.schedule: {text}")


@config
class JobConfig(ScheduleConfig):
    """Keys of sinks whose work an external engine does (JobTask)."""

    max_records: int = key(
        "job.max.records",
        default=0,
        check=at_least(0),
        doc="Most records (offsets) of one run, over all partitions; 0 takes everything there is.",
        group="Job",
    )
    min_records: int = key(
        "job.min.records",
        default=1,
        check=at_least(1),
        doc="A run waits until there are so many records (offsets) to move.",
        group="Job",
    )
    offset_reset: str = key(
        "job.offset.reset",
        default="none",
        check=one_of("none", "earliest", "latest"),
        doc="Where a job goes on in a partition that no longer holds its committed offset, since retention removed the records or "
        "the topic was made anew. 'none': it fails and says what is missing. 'earliest', 'latest': at the first record that is "
        "there, or behind the last one; a warning says how many records are missing.",
        group="Job",
    )


@config
class TransformConfig:
    """Keys common to all transformations, under ``transforms.<alias>.``."""

    predicate: str | None = key(
        "predicate",
        default=None,
        doc="The alias of a predicate used to determine whether to apply this transformation.",
    )
    negate: bool = key("negate", default=False, doc="Whether the configured predicate should be negated.")


@config
class TopicGroup:
    """Keys of one group of topics that a source creates, under ``topic.creation.<group>.``; others are topic settings."""

    replication_factor: int = key(
        "replication.factor", type=KeyType.SHORT, doc="Replication factor; -1 is the broker's default."
    )
    partitions: int = key("partitions", type=KeyType.INT, doc="Number of partitions; -1 is the broker's default.")
    include: list[str] = key("include", default=[], doc="Regular expressions of the topics in this group.")
    exclude: list[str] = key("exclude", default=[], doc="Regular expressions of topics that are not, all the same.")

    def problems(self) -> Iterable[Problem]:
        for name, patterns in (("include", self.include), ("exclude", self.exclude)):
            for pattern in patterns:
                wrong = valid_regex(pattern)
                if wrong:
                    yield Problem(name, f"Invalid value {pattern} for configuration {name}: {wrong}")

    def takes(self, topic: str) -> bool:
        """Whether a topic belongs to this group."""
        if any(JavaRegex(pattern).fullmatch(topic) for pattern in self.exclude):
            return False
        return any(JavaRegex(pattern).fullmatch(topic) for pattern in self.include)


def topic_groups(properties: Mapping[str, str], groups: Iterable[str]) -> dict[str, dict[str, str]]:
    """The properties of each topic creation group in matching order, ``default`` last; empty if topic creation is off,
    which it is without ``topic.creation.default.*``.
    """
    default = sub_properties(properties, "topic.creation.default.")
    if not default and not list(groups):
        return {}
    by_group = {group: sub_properties(properties, f"topic.creation.{group}.") for group in groups if group != "default"}
    for group in by_group.values():
        for name in ("replication.factor", "partitions"):
            if name in default:
                group.setdefault(name, default[name])
    return by_group | {"default": {"include": ".*"} | default}


def sub_properties(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The properties under a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in properties.items() if name.startswith(prefix)}


def override_properties(properties: Mapping[str, str], kind: str) -> dict[str, str]:
    """A connector's settings for one kind of client (``producer``, ``consumer``, ``admin``)."""
    return sub_properties(properties, f"{kind}.override.")
