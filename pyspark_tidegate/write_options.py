"""The options of a write, under the names of Spark's Kafka sink and of Confluent's serializers where they have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark_tidegate.option_values import choice, flag, sorted_out
from registry.serde.subjects import STRATEGIES
from tidegate.kit.errors import UsageError

__all__ = ["WriteOptions"]

_FORMATS: Final = ("avro", "protobuf", "json-schema", "json", "string", "binary")
_REGISTERED: Final = ("avro", "protobuf", "json-schema")
_KNOWN: Final = (
    "topic", "value.format", "key.format", "key.fields", "value.schema", "key.schema", "value.message", "key.message",
    "auto.register.schemas",
    "use.latest.version", "key.subject.name.strategy", "value.subject.name.strategy", "transactions",
    "transactions.group", "transactions.note", "path", "checkpointlocation", "queryname",
)  # fmt: skip


@dataclass(frozen=True)
class WriteOptions:
    topic: str
    """The topic of all rows; empty: each row names its topic in the column ``topic``."""
    value_format: str
    key_format: str
    key_fields: tuple[str, ...]
    """The fields of the value that make the key; empty: the column ``key`` is the key."""
    value_schema: str
    """The text of the schema that values are written with; empty: derived from the columns, or the subject's newest."""
    key_schema: str
    value_message: str
    """The full name of the Protobuf message that values are written as; empty: the first of the schema."""
    key_message: str
    register: bool
    latest: bool
    value_strategy: str
    key_strategy: str
    transactions: bool
    """Whether rows are seen by readers of committed records only when all tasks have succeeded."""
    group: str
    """The consumer group in which the transaction of a batch write notes ``note``; empty: none."""
    note: str
    checkpoint: str
    """The checkpoint of a stream, where it is an option of the query."""
    kafka: Mapping[str, str] = field(repr=False)
    registry: Mapping[str, str] = field(repr=False)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> WriteOptions:
        """Raises UsageError that names the option, its value and what would be right."""
        options, kafka, registry = sorted_out(given, _KNOWN)
        fields = tuple(name.strip() for name in options.get("key.fields", "").split(",") if name.strip())
        value_format = choice(options, "value.format", _FORMATS, "avro" if registry else "binary")
        key_format = choice(options, "key.format", _FORMATS, "avro" if registry and fields else "binary")
        for format_ in (value_format, key_format):
            if format_ in _REGISTERED and not registry.get("schema.registry.url"):
                raise UsageError(f"the format {format_} needs the option schema.registry.url")
        if key_format in ("string", "binary") and len(fields) > 1:
            raise UsageError(
                f"the option key.fields names {len(fields)} fields, and key.format is {key_format}: a key of several fields "
                "needs key.format=avro, protobuf, json-schema or json"
            )
        latest = flag(options, "use.latest.version", default=False)
        if latest and (options.get("value.schema") or options.get("key.schema")):
            raise UsageError("the option use.latest.version is true, and a schema is given: give one of the two")
        transactions = flag(options, "transactions", default=False)
        group = options.get("transactions.group", "")
        if group and not (transactions and options.get("topic")):
            raise UsageError(
                "the option transactions.group is for transactions=true, and for a write to one topic, which the option topic names"
            )
        strategies = {side: _strategy(options, f"{side}.subject.name.strategy") for side in ("value", "key")}
        for side, strategy in strategies.items():
            if options.get(f"{side}.message") and strategy != "TopicNameStrategy":
                raise UsageError(
                    f"the option {side}.message is given, and {side}.subject.name.strategy is {strategy}, which names the subject "
                    "after the first message: give TopicNameStrategy"
                )
        return cls(
            topic=options.get("topic", "").strip(),
            value_format=value_format,
            key_format=key_format,
            key_fields=fields,
            value_schema=options.get("value.schema", ""),
            key_schema=options.get("key.schema", ""),
            value_message=options.get("value.message", ""),
            key_message=options.get("key.message", ""),
            register=flag(options, "auto.register.schemas", default=True),
            latest=latest,
            value_strategy=strategies["value"],
            key_strategy=strategies["key"],
            transactions=transactions,
            group=group,
            note=options.get("transactions.note", ""),
            checkpoint=options.get("checkpointlocation", ""),
            kafka=kafka,
            registry=registry,
        )

    @property
    def key_is_record(self) -> bool:
        """Whether a key of ``key.fields`` is a record of them; otherwise it is the bytes or the text of the only one."""
        return self.key_format not in ("string", "binary")


def _strategy(options: Mapping[str, str], name: str) -> str:
    value = options.get(name, "TopicNameStrategy")
    short = value.rpartition(".")[2]
    if short not in STRATEGIES:
        raise UsageError(f"the option {name} is {value!r}: it must be one of {', '.join(STRATEGIES)}")
    return short
