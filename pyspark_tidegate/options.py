"""The options of a read, under the names of Spark's own Kafka source where it has them.

Spark gives option names in lower case. Source: Spark's "Structured Streaming + Kafka Integration Guide".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark_tidegate.option_values import choice, flag, json_of, number, sorted_out
from tidegate.kit.errors import UsageError

__all__ = ["EARLIEST", "LATEST", "Offsets", "Options"]

EARLIEST, LATEST = -2, -1
"""These stand for the ends of the log in Spark's JSON of offsets."""

_FORMATS: Final = ("avro", "protobuf", "json-schema", "json", "string", "binary")
_REGISTERED: Final = ("avro", "protobuf", "json-schema")
_DEFAULT: Final = {
    ("key", True): "binary",
    ("key", False): "binary",
    ("value", True): "avro",
    ("value", False): "binary",
}
"""The format of a side, with a registry and without."""
_KNOWN: Final = (
    "subscribe", "subscribepattern", "assign", "startingoffsets", "endingoffsets", "startingoffsetsbytimestamp",
    "endingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy", "startingtimestamp", "endingtimestamp", "minpartitions", "failondataloss", "includeheaders", "pushfilters",
    "maxoffsetspertrigger", "plannedoffsets", "untiloffsets", "freshoffsets", "groupid", "kafkaconsumer.polltimeoutms", "value.format", "key.format", "value.schema", "key.schema", "value.message", "key.message", "value.errors", "errors.deadletterqueue.topic.name", "columns", "path",
)  # fmt: skip

Offsets = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition; ``EARLIEST`` and ``LATEST`` stand for the ends."""


@dataclass(frozen=True)
class Options:
    """The options of a read. ``starting`` and ``ending`` are an end of the log, or offsets or times of partitions."""

    topics: tuple[str, ...]
    """Names of topics; empty where ``pattern`` or ``assigned`` chooses them."""
    pattern: str
    assigned: Mapping[str, tuple[int, ...]]
    starting: int | Offsets
    ending: int | Offsets
    starting_times: int | Offsets | None
    ending_times: int | Offsets | None
    latest_if_later: bool
    """Whether a partition without a record at or after its starting time is read from its end; otherwise that is an error."""
    min_partitions: int
    fail_on_data_loss: bool
    include_headers: bool
    push_filters: bool
    max_offsets: int
    """The most offsets in a batch of a stream; 0: no bound."""
    planned: Offsets | None
    """The end of the batch that the stream planned last, where somebody knows it; empty: it has planned none."""
    until: Offsets
    """A stream plans no batch past these; a partition without one has no bound."""
    fresh: bool
    """Whether each task of a batch read looks up the offsets of its partition when it runs."""
    patience_ms: int
    """A read without progress for so long fails."""
    group: str
    """A stream commits its positions to this consumer group; empty: to none."""
    value_format: str
    key_format: str
    value_schema: str
    """The text of the schema that values are read as; empty: the newest of the subject."""
    key_schema: str
    value_message: str
    """The full name of the Protobuf message that values are read as; empty: the first of the schema."""
    key_message: str
    keep_errors: bool
    """Whether a value that can't be decoded becomes a null with the reason beside it. Otherwise it ends the job, unless there is
    a topic for it."""
    dead_letter_topic: str
    """The topic for records whose value can't be decoded; empty: none."""
    columns: tuple[str, ...]
    """The columns that are read; ``value.*`` and ``key.*`` stand for the fields of the value and the key. Empty: all of the source."""
    kafka: Mapping[str, str] = field(repr=False)
    registry: Mapping[str, str] = field(repr=False)

    @classmethod
    def parse(cls, given: Mapping[str, str], *, stream: bool) -> Options:
        """Raises UsageError that names the option, its value and what would be right."""
        options, kafka, registry = sorted_out(given, _KNOWN)
        named = [name for name in ("subscribe", "subscribepattern", "assign") if options.get(name)]
        if len(named) != 1:
            raise UsageError(
                f"one of subscribe, subscribePattern and assign says which topics are read, not {len(named)} of them"
            )
        if stream:
            _refuse_ends(options)
        group = options.get("groupid", kafka.pop("group.id", ""))
        planned = _known_offsets(options, "plannedoffsets")
        if stream and number(options, "maxoffsetspertrigger") and not group and planned is None:
            raise UsageError(
                "maxOffsetsPerTrigger needs the option groupId: Spark does not tell a Python source where its checkpoint is, and the "
                "positions of the group do (or plannedOffsets, from the checkpoint)"
            )
        formats = {
            side: _format(options, f"{side}.format", _DEFAULT[side, bool(registry)]) for side in ("key", "value")
        }
        for side, format_ in formats.items():
            if format_ in _REGISTERED and not registry.get("schema.registry.url"):
                raise UsageError(f"the format {format_} needs the option schema.registry.url")
            if format_ == "json" and not options.get(f"{side}.schema"):
                raise UsageError(f"{side}.format json needs the option {side}.schema: a JSON Schema of the {side}s")
        errors = choice(options, "value.errors", ("fail", "null", "dead-letter"), "fail")
        dead_letter_topic = options.get("errors.deadletterqueue.topic.name", "")
        if bool(dead_letter_topic) != (errors == "dead-letter"):
            raise UsageError(
                f"the option value.errors is {errors!r}, and errors.deadletterqueue.topic.name {dead_letter_topic!r}: dead-letter "
                "needs a topic, and nothing else takes one"
            )
        return cls(
            topics=_names(options, "subscribe"),
            pattern=options.get("subscribepattern", ""),
            assigned=_assigned(options.get("assign", "")),
            starting=_ends(options, "startingoffsets", "latest" if stream else "earliest"),
            ending=_ending(options),
            starting_times=_times(options, "starting"),
            ending_times=_times(options, "ending"),
            latest_if_later=choice(options, "startingoffsetsbytimestampstrategy", ("error", "latest"), "error")
            == "latest",
            min_partitions=number(options, "minpartitions"),
            fail_on_data_loss=flag(options, "failondataloss", default=True),
            push_filters=flag(options, "pushfilters", default=False),
            include_headers=flag(options, "includeheaders", default=False),
            planned=planned,
            fresh=flag(options, "freshoffsets", default=False),
            until=_known_offsets(options, "untiloffsets") or {},
            patience_ms=number(options, "kafkaconsumer.polltimeoutms", 120_000),
            max_offsets=number(options, "maxoffsetspertrigger"),
            group=group,
            value_format=formats["value"],
            key_format=formats["key"],
            value_schema=options.get("value.schema", ""),
            key_schema=options.get("key.schema", ""),
            value_message=options.get("value.message", ""),
            key_message=options.get("key.message", ""),
            keep_errors=errors == "null",
            dead_letter_topic=dead_letter_topic,
            columns=_names(options, "columns"),
            kafka=kafka,
            registry=registry,
        )


def _names(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in options.get(name, "").split(",") if part.strip())


def _format(options: Mapping[str, str], name: str, default: str) -> str:
    return choice(options, name, _FORMATS, default)


def _assigned(text: str) -> dict[str, tuple[int, ...]]:
    if not text:
        return {}
    value = json_of("assign", text)
    good = isinstance(value, dict) and all(
        isinstance(ids, list) and all(isinstance(n, int) and n >= 0 for n in ids) for ids in value.values()
    )
    if not good:
        raise UsageError(f'the option assign is {text!r}: it must be like {{"topic":[0,1]}}')
    return {topic: tuple(ids) for topic, ids in value.items()}


def _refuse_ends(options: Mapping[str, str]) -> None:
    """As in Spark's Kafka source."""
    ends = [name for name in options if name.startswith("ending") and options[name].strip()]
    if ends:
        raise UsageError(
            f"the option {ends[0]} is for a batch read: a stream has no end (stop the query, or read a batch)"
        )


def _ending(options: Mapping[str, str]) -> int | Offsets:
    ending = _ends(options, "endingoffsets", "latest")
    numbers = [ending] if isinstance(ending, int) else [at for topic in ending.values() for at in topic.values()]
    if EARLIEST in numbers:
        raise UsageError(
            f"the option endingoffsets is {options['endingoffsets']!r}: a read can't end at the earliest offset"
        )
    return ending


def _ends(options: Mapping[str, str], name: str, default: str) -> int | Offsets:
    text = options.get(name, default).strip()
    if text.lower() in ("earliest", "latest"):
        return EARLIEST if text.lower() == "earliest" else LATEST
    return _offsets(name, text, least=EARLIEST)


def _times(options: Mapping[str, str], side: str) -> int | Offsets | None:
    if text := options.get(f"{side}timestamp", "").strip():
        if not (text.isascii() and text.isdigit()):
            raise UsageError(f"the option {side}timestamp is {text!r}: it must be milliseconds since 1970")
        return int(text)
    text = options.get(f"{side}offsetsbytimestamp", "").strip()
    return _offsets(f"{side}offsetsbytimestamp", text, least=0) if text else None


def _known_offsets(options: Mapping[str, str], name: str) -> Offsets | None:
    text = options.get(name, "").strip()
    if not text:
        return None
    return {} if text == "{}" else _offsets(name, text, least=0)


def _offsets(name: str, text: str, *, least: int) -> Offsets:
    value = json_of(name, text)
    try:
        made = {topic: {int(n): at for n, at in numbers.items()} for topic, numbers in value.items()}
    except (AttributeError, ValueError):
        made = {}
    if not made or not all(isinstance(at, int) and at >= least for numbers in made.values() for at in numbers.values()):
        raise UsageError(f'the option {name} is {text!r}: it must be earliest, latest or like {{"topic":{{"0":23}}}}')
    return made
