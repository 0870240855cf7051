"""Keys that Debezium's connectors share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from connect.api import (
    Check,
    Importance,
    JavaRegex,
    KeyType,
    Problem,
    at_least,
    config,
    family,
    key,
    non_empty,
    one_of,
    valid_regexes,
)
from connectors.debezium.masks import cut_problem, mask_problem
from connectors.debezium.reading_config import ReadingConfig
from connectors.debezium.signal_config import SignalConfig

__all__ = ["CaptureConfig", "not_both", "parse_key_columns", "snapshot_mode_key"]


def _topic_prefix(value: str) -> str | None:
    if re.fullmatch(r"[a-zA-Z0-9._-]+", value):
        return None
    return "Must be letters, digits, hyphens, points and underscores: topics are named after it"


def _operations(value: list[str]) -> str | None:
    if value == ["none"] or (value and all(item in ("c", "u", "d", "t") for item in value)):
        return None
    return "Must be 'none' or some of c (insert), u (update), d (delete), t (truncate)"


_adjustment: Check = one_of("none", "avro", "avro_unicode", ignore_case=True)


def snapshot_mode_key(*more: str, doc: str = "", importance: Importance = "medium") -> Any:
    """The key ``snapshot.mode``. ``more`` are values that only one database has, and ``doc`` describes them."""
    return key(
        "snapshot.mode",
        default="initial",
        importance=importance,
        doc="When to read whole tables first: at the very start, at every start (always), then stop (initial_only), never (no_data), "
        f"or where the position is lost (when_needed).{doc}",
        group="Snapshot",
        check=one_of(
            *("always", "initial", "initial_only", "no_data", "never", "schema_only", "when_needed", *more),
            ignore_case=True,
        ),
    )


@config
class CaptureConfig(ReadingConfig, SignalConfig):
    """Which tables are captured, and in which form."""

    prefix: str = key(
        "topic.prefix",
        doc="First part of the names of all topics and schemas; also the server's name in offsets.",
        importance="high",
        group="Topics",
        aliases=("database.server.name",),
        check=_topic_prefix,
    )
    table_include: list[str] = key(
        "table.include.list",
        default=[],
        doc="Regular expressions that match the whole names schema.table of the tables to capture; all where none is given.",
        importance="high",
        group="Tables",
        aliases=("table.whitelist", "table.includelist"),
        check=valid_regexes,
    )
    table_exclude: list[str] = key(
        "table.exclude.list",
        default=[],
        doc="Tables not to capture, likewise; not together with table.include.list.",
        group="Tables",
        aliases=("table.blacklist", "table.excludelist"),
        check=valid_regexes,
    )
    column_include: list[str] = key(
        "column.include.list",
        default=[],
        doc="Regular expressions that match schema.table.column of the columns to capture.",
        group="Columns",
        aliases=("column.whitelist",),
        check=valid_regexes,
    )
    column_exclude: list[str] = key(
        "column.exclude.list",
        default=[],
        doc="Columns not to capture, likewise; not together with column.include.list.",
        group="Columns",
        aliases=("column.blacklist",),
        check=valid_regexes,
    )
    key_columns: str | None = key(
        "message.key.columns",
        default=None,
        check=non_empty,
        doc="Tables and the columns that make their records' keys: schema.table:a,b;schema.other:c.",
        group="Columns",
    )
    column_masks: dict[str, str] = family(
        "column.mask.",
        doc="with.N.chars: columns (regular expressions) whose text is replaced by so many asterisks; hash.SHA-256.with.salt.SALT or "
        "hash.v2.SHA-256.with.salt.SALT: by a hash.",
    )
    column_truncations: dict[str, str] = family(
        "column.truncate.to.", doc="N.chars: columns (regular expressions) whose text is cut to so many characters."
    )
    propagate_columns: list[str] = key(
        "column.propagate.source.type",
        default=[],
        doc="Columns (regular expressions) whose schemas carry the original type, length and scale as parameters.",
        group="Columns",
        check=valid_regexes,
    )
    propagate_types: list[str] = key(
        "datatype.propagate.source.type",
        default=[],
        doc="Types (regular expressions on db.schema.table.column.type or db.type) whose columns do so.",
        group="Columns",
        check=valid_regexes,
    )
    decimal_mode: str = key(
        "decimal.handling.mode",
        default="precise",
        doc="Exact decimals, strings, or doubles that may lose digits.",
        group="Values",
        check=one_of("precise", "string", "double", ignore_case=True),
    )
    time_mode: str = key(
        "time.precision.mode",
        default="adaptive",
        doc="The form of dates and times: by the column's precision, Kafka Connect's, ISO 8601 text, or one unit for all.",
        group="Values",
        check=one_of(
            "adaptive",
            "adaptive_time_microseconds",
            "connect",
            "isostring",
            "microseconds",
            "nanoseconds",
            ignore_case=True,
        ),
    )
    binary_mode: str = key(
        "binary.handling.mode",
        default="bytes",
        doc="Binary values as bytes or as text.",
        group="Values",
        importance="low",
        check=one_of("bytes", "base64", "base64-url-safe", "hex", ignore_case=True),
    )
    tombstones: bool = key(
        "tombstones.on.delete",
        default=True,
        doc="Follow each delete by a tombstone, which lets compaction forget the key.",
        group="Topics",
    )
    after_only: bool = key(
        "after.state.only",
        default=False,
        importance="low",
        doc="A key of Confluent's cloud: the record is the row as it is after the change, as the transformation "
        "io.debezium.transforms.ExtractNewRecordState makes it, which then comes before all others, as unwrap.",
        group="Topics",
    )
    skipped: list[str] = key(
        "skipped.operations",
        default=["t"],
        doc="Operations that make no records: c, u, d, t; or none.",
        importance="low",
        group="Topics",
        check=_operations,
    )
    transaction_metadata: bool = key(
        "provide.transaction.metadata",
        default=False,
        doc="Number events within their transaction, and tell of its begin and end in the transaction topic.",
        importance="low",
        group="Topics",
    )
    transaction_topic: str = key(
        "topic.transaction",
        default="transaction",
        doc="Last part of that topic's name.",
        importance="low",
        group="Topics",
    )
    delimiter: str = key(
        "topic.delimiter",
        default=".",
        doc="What stands between the parts of a topic's name.",
        importance="low",
        group="Topics",
    )
    heartbeat_interval_ms: int = key(
        "heartbeat.interval.ms",
        default=0,
        type=KeyType.INT,
        doc="How often to write a heartbeat, which also lets the database drop its log while captured tables rest; 0: never.",
        group="Heartbeat",
        check=at_least(0),
    )
    heartbeat_prefix: str = key(
        "heartbeat.topics.prefix",
        default="__debezium-heartbeat",
        doc="First part of the heartbeat topic's name.",
        importance="low",
        group="Heartbeat",
        aliases=("topic.heartbeat.prefix",),
    )
    heartbeat_query: str | None = key(
        "heartbeat.action.query",
        default=None,
        doc="A statement to run with every heartbeat.",
        importance="low",
        group="Heartbeat",
    )
    schema_adjustment: str = key(
        "schema.name.adjustment.mode",
        default="none",
        doc="Make schema names such as Avro allows.",
        importance="low",
        group="Values",
        check=_adjustment,
    )
    field_adjustment: str = key(
        "field.name.adjustment.mode",
        default="none",
        doc="Make field names such as Avro allows.",
        importance="low",
        group="Values",
        check=_adjustment,
    )
    sanitize_fields: bool = key(
        "sanitize.field.names",
        default=False,
        doc="As field.name.adjustment.mode=avro.",
        importance="low",
        group="Values",
        deprecated="Use field.name.adjustment.mode.",
    )
    snapshot_mode: str = snapshot_mode_key()
    snapshot_tables: list[str] = key(
        "snapshot.include.collection.list",
        default=[],
        doc="Of the captured tables those (regular expressions) that a snapshot reads; all where none is given.",
        group="Snapshot",
        check=valid_regexes,
    )
    unavailable_value: str = key(
        "unavailable.value.placeholder",
        default="__debezium_unavailable_value",
        doc="What stands for a large value that did not change and that the log does not repeat.",
        group="Values",
        aliases=("toasted.value.placeholder",),
    )
    extended_headers: bool = key(
        "extended.headers.enabled",
        default=True,
        doc="Headers __debezium.context.* that say which connector and task wrote a record.",
        importance="low",
        group="Topics",
    )
    include_unknown: bool = key(
        "include.unknown.datatypes",
        default=False,
        doc="Deliver values of types without a form of their own as the bytes of their text, instead of leaving them out.",
        group="Values",
    )
    notification_channels: list[str] = key(
        "notification.enabled.channels",
        default=[],
        doc="Where notifications of the progress of snapshots go: a topic (sink), the worker's log (log).",
        group="Signals",
        check=one_of("sink", "log"),
    )
    notification_topic: str | None = key(
        "notification.sink.topic.name",
        default=None,
        doc="The topic of notifications.",
        group="Signals",
        importance="high",
    )
    converters: str | None = key(
        "converters",
        default=None,
        doc="Custom converters of Debezium: not supported.",
        group="Values",
        importance="low",
    )
    post_processors: str | None = key(
        "post.processors",
        default=None,
        doc="Custom post processors of Debezium: not supported.",
        group="Values",
        importance="low",
    )
    naming: str = key(
        "topic.naming.strategy",
        type=KeyType.CLASS,
        default="io.debezium.schema.SchemaTopicNamingStrategy",
        doc="How topics are named; only this one.",
        group="Topics",
        check=one_of("io.debezium.schema.SchemaTopicNamingStrategy", "io.debezium.schema.DefaultTopicNamingStrategy"),
    )

    @property
    def field_names(self) -> str:
        """How field names are adjusted: ``none``, ``avro`` or ``avro_unicode``."""
        mode = self.field_adjustment.lower()
        return "avro" if self.sanitize_fields and mode == "none" else mode

    def problems(self) -> Iterable[Problem]:
        """Combinations of keys that contradict each other, and features of Debezium that are not supported here."""
        yield from not_both("table.include.list", self.table_include, "table.exclude.list", self.table_exclude)
        yield from not_both("column.include.list", self.column_include, "column.exclude.list", self.column_exclude)
        for name in self.column_masks:
            if (wrong := mask_problem(name)) is not None:
                yield Problem(f"column.mask.{name}", wrong)
        for name in self.column_truncations:
            if (wrong := cut_problem(name)) is not None:
                yield Problem(f"column.truncate.to.{name}", wrong)
        if "sink" in self.notification_channels and not self.notification_topic:
            yield Problem("notification.sink.topic.name", "name the topic that notifications go to")
        refused = {
            "converters": self.converters,
            "post.processors": self.post_processors,
        }
        for name, value in refused.items():
            if value:
                yield Problem(name, f"{name} is not supported here: use a transformation instead")
        try:
            parse_key_columns(self.key_columns)
        except ValueError as error:
            yield Problem("message.key.columns", str(error))


def not_both(key_name: str, value: object, other: str, other_value: object) -> Iterator[Problem]:
    """A problem where two keys that exclude each other are both set."""
    if value and other_value:
        yield Problem(other, f"give {key_name} or {other}, not both")


def parse_key_columns(text: str | None) -> list[tuple[JavaRegex, list[str]]]:
    """Parse patterns of table names with the columns of their keys. Raises ValueError that says what is wrong."""
    by_table = []
    for part in filter(None, (part.strip() for part in (text or "").split(";"))):
        table, colon, columns = part.rpartition(":")
        if not colon or not table or not columns.strip():
            raise ValueError(f"message.key.columns has {part!r}: should be schema.table:column,column")
        try:
            by_table.append((JavaRegex(table.strip(), ignore_case=True), [c.strip() for c in columns.split(",")]))
        except ValueError as error:
            raise ValueError(f"message.key.columns: {table!r} is no regular expression: {error}") from error
    return by_table
