"""The options of the data source, under the names of Spark's own Kafka source where it has them.

Spark gives option names in lower case. Source: Spark's "Structured Streaming + Kafka Integration Guide".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.kit.errors import UsageError

__all__ = ["EARLIEST", "LATEST", "Offsets", "Options"]

EARLIEST, LATEST = -2, -1
"""These stand for the ends of the log in Spark's JSON of offsets."""

_KAFKA: Final = "kafka."
_REGISTRY: Final = ("schema.registry.", "basic.auth.", "bearer.auth.")
_FORMATS: Final = ("avro", "string", "binary")
_KNOWN: Final = (
    "subscribe", "subscribepattern", "assign", "startingoffsets", "endingoffsets", "startingoffsetsbytimestamp",
    "endingoffsetsbytimestamp", "startingtimestamp", "endingtimestamp", "minpartitions", "failondataloss", "includeheaders",
    "maxoffsetspertrigger", "groupid", "kafkaconsumer.polltimeoutms", "value.format", "key.format", "value.schema", "key.schema", "value.errors", "path",
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
    min_partitions: int
    fail_on_data_loss: bool
    include_headers: bool
    max_offsets: int
    """The most offsets in a batch of a stream; 0: no bound."""
    patience_ms: int
    """A read without progress for so long fails."""
    group: str
    """A stream commits its positions to this consumer group; empty: to none."""
    value_format: str
    key_format: str
    value_schema: str
    """The schema that values are read as, as Avro JSON; empty: the newest of the subject."""
    key_schema: str
    keep_errors: bool
    """Whether a value that can't be decoded becomes a null with the reason beside it. Otherwise it ends the job."""
    kafka: Mapping[str, str] = field(repr=False)
    registry: Mapping[str, str] = field(repr=False)

    @classmethod
    def parse(cls, given: Mapping[str, str], *, stream: bool) -> Options:
        """Raises UsageError that names the option, its value and what would be right."""
        options = {name.lower(): value for name, value in given.items()}
        kafka = {name.removeprefix(_KAFKA): value for name, value in options.items() if name.startswith(_KAFKA)}
        registry = {name: value for name, value in options.items() if name.startswith(_REGISTRY)}
        unknown = [n for n in options if n not in _KNOWN and not n.startswith((_KAFKA, *_REGISTRY))]
        if unknown:
            raise UsageError(
                f"the option {unknown[0]} is not known: {', '.join(_KNOWN)}, kafka.* and schema.registry.* are"
            )
        if not kafka.get("bootstrap.servers"):
            raise UsageError("the option kafka.bootstrap.servers is missing: give host:port of the cluster")
        named = [name for name in ("subscribe", "subscribepattern", "assign") if options.get(name)]
        if len(named) != 1:
            raise UsageError(
                f"one of subscribe, subscribePattern and assign says which topics are read, not {len(named)} of them"
            )
        if stream:
            _refuse_ends(options)
        group = options.get("groupid", kafka.pop("group.id", ""))
        if stream and _number(options, "maxoffsetspertrigger") and not group:
            raise UsageError(
                "maxOffsetsPerTrigger needs the option groupId: Spark does not tell a Python source where its checkpoint is, and the "
                "positions of the group do"
            )
        value_format = _choice(options, "value.format", "avro" if registry else "binary")
        if "avro" in (value_format, _choice(options, "key.format", "binary")) and not registry.get(
            "schema.registry.url"
        ):
            raise UsageError("the format avro needs the option schema.registry.url")
        return cls(
            topics=tuple(name.strip() for name in options.get("subscribe", "").split(",") if name.strip()),
            pattern=options.get("subscribepattern", ""),
            assigned=_assigned(options.get("assign", "")),
            starting=_ends(options, "startingoffsets", "latest" if stream else "earliest"),
            ending=_ending(options),
            starting_times=_times(options, "starting"),
            ending_times=_times(options, "ending"),
            min_partitions=_number(options, "minpartitions"),
            fail_on_data_loss=_flag(options, "failondataloss", default=True),
            include_headers=_flag(options, "includeheaders", default=False),
            patience_ms=_number(options, "kafkaconsumer.polltimeoutms", 120_000),
            max_offsets=_number(options, "maxoffsetspertrigger"),
            group=group,
            value_format=value_format,
            key_format=_choice(options, "key.format", "binary"),
            value_schema=options.get("value.schema", ""),
            key_schema=options.get("key.schema", ""),
            keep_errors=_one_of(options, "value.errors", ("fail", "null"), "fail") == "null",
            kafka=kafka,
            registry=registry,
        )


def _choice(options: Mapping[str, str], name: str, default: str) -> str:
    return _one_of(options, name, _FORMATS, default)


def _one_of(options: Mapping[str, str], name: str, choices: tuple[str, ...], default: str) -> str:
    value = options.get(name, default).strip().lower()
    if value not in choices:
        raise UsageError(f"the option {name} is {value!r}: it must be one of {', '.join(choices)}")
    return value


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    return _one_of(options, name, ("true", "false"), str(default).lower()) == "true"


def _number(options: Mapping[str, str], name: str, default: int = 0) -> int:
    text = options.get(name, str(default)).strip()
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"the option {name} is {text!r}: it must be a whole number")
    return int(text)


def _assigned(text: str) -> dict[str, tuple[int, ...]]:
    if not text:
        return {}
    value = _json("assign", text)
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


def _offsets(name: str, text: str, *, least: int) -> Offsets:
    value = _json(name, text)
    try:
        made = {topic: {int(n): at for n, at in numbers.items()} for topic, numbers in value.items()}
    except (AttributeError, ValueError):
        made = {}
    if not made or not all(isinstance(at, int) and at >= least for numbers in made.values() for at in numbers.values()):
        raise UsageError(f'the option {name} is {text!r}: it must be earliest, latest or like {{"topic":{{"0":23}}}}')
    return made


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise UsageError(f"the option {name} is {text!r}, which is not JSON") from None
