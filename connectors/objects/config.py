"""Keys that all sinks to object stores and file systems have: Confluent's storage-common and partitioner keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from connect.api import Check, KeyType, Problem, Visible, at_least, between, config, key, one_of, time_zone
from connectors.objects.formats import FORMATS, RESTORABLE, FormatOptions, format_name
from connectors.objects.joda import problem_of

__all__ = [
    "PARTITIONERS",
    "ObjectSinkConfig",
    "class_of",
    "compression_key",
    "compression_level_key",
    "request_retries_key",
    "separator_of",
]

PARTITIONERS = (
    "DefaultPartitioner",
    "FieldPartitioner",
    "TimeBasedPartitioner",
    "DailyPartitioner",
    "HourlyPartitioner",
    "FieldAndTimeBasedPartitioner",
)
_TIME_BASED = PARTITIONERS[2:]
_PACKAGE = "io.confluent.connect.storage.partitioner"


def class_of(*names: str) -> Check:
    """Accepts a class name, with or without package, that ends with one of ``names``, also in Confluent's ``CloudStorage`` form."""

    def check(value: str) -> str | None:
        return None if format_name(value) in names else f"Class must be one of: {', '.join(names)}, in any package"

    check.valid = f"[{', '.join(names)}]"  # type: ignore[attr-defined]
    check.allowed = names  # type: ignore[attr-defined]
    return check


def compression_key(name: str, group: str) -> Any:
    """A key that all object stores have, each by a name of its own."""
    return key(
        name,
        default="none",
        check=one_of("none", "gzip"),
        doc="Compression of JSON, CSV and raw files.",
        importance="low",
        group=group,
    )


def request_retries_key(name: str, group: str) -> Any:
    return key(
        name,
        default=3,
        type=KeyType.INT,
        check=at_least(0),
        doc="How often a failed request is repeated before the worker's own retries.",
        group=group,
    )


def compression_level_key(name: str, group: str) -> Any:
    return key(
        name,
        default=-1,
        type=KeyType.INT,
        check=between(-1, 9),
        doc="From 0, none, to 9, best; -1 for the default.",
        importance="low",
        group=group,
    )


def _of_partitioners(*names: str) -> Visible:
    """A form shows the key only with these partitioners."""
    return lambda values: str(values.get("partitioner.class")).rpartition(".")[2] in names


def separator_of(text: str | None) -> bytes:
    """The bytes for ``format.bytearray.separator``: a newline by default; escapes as in Java source code."""
    return b"\n" if text is None else text.encode().decode("unicode_escape").encode()


def _delimiter(value: str) -> str | None:
    if len(_character(value)) == 1 and _character(value) not in '"\r\n' and _character(value).isascii():
        return None
    return "should be a character other than a quote or the end of a line, such as ; or \\t"


def _character(value: str) -> str:
    return "\t" if value == "\\t" else value


def _null_text(value: str) -> str | None:
    return "should have no quote and no end of a line" if {*value} & {*'"\r\n'} else None


@config
class ObjectSinkConfig:
    """In which format records are stored, under which names, and when a file is complete."""

    format_class: str = key(
        "format.class",
        type=KeyType.CLASS,
        check=class_of(*FORMATS),
        doc="The format of files: AvroFormat, JsonFormat (JSON lines), ParquetFormat, CsvFormat, TsvFormat or ByteArrayFormat.",
        importance="high",
        group="Connector",
    )
    flush_size: int = key(
        "flush.size",
        type=KeyType.INT,
        check=at_least(1),
        doc="Records of a topic's partition after which its files are closed and committed.",
        importance="high",
        group="Connector",
    )
    rotate_interval_ms: int = key(
        "rotate.interval.ms",
        default=-1,
        doc="Files are closed before a record that is this much later than their first, by timestamp.extractor; -1: never.",
        importance="high",
        group="Connector",
    )
    rotate_schedule_interval_ms: int = key(
        "rotate.schedule.interval.ms",
        default=-1,
        doc="Files are closed at multiples of this since midnight of the timezone, by the clock; -1: never. Where files "
        "end then depends on when they were written.",
        group="Connector",
    )
    rotate_on_partition_change: bool = key(
        "rotate.file.on.partition.change",
        default=True,
        doc="With rotate.interval.ms: whether a record of another folder closes the files too.",
        importance="low",
        group="Connector",
    )
    schema_compatibility: str = key(
        "schema.compatibility",
        default="NONE",
        check=one_of("NONE", "BACKWARD", "FORWARD", "FULL", ignore_case=True),
        doc="NONE: another schema closes the files. BACKWARD, FULL: records of an older version are written with the "
        "newest seen. FORWARD: records of a newer version are written with the oldest.",
        importance="high",
        group="Connector",
    )
    retry_backoff_ms: int = key(
        "retry.backoff.ms",
        default=5000,
        doc="Accepted for compatibility: what fails for the moment is tried again by the worker's own pauses.",
        importance="low",
        group="Connector",
    )
    pad_width: int = key(
        "filename.offset.zero.pad.width",
        default=10,
        type=KeyType.INT,
        check=at_least(0),
        doc="Digits that offsets in file names have at least.",
        importance="low",
        group="Connector",
    )
    avro_codec: str = key(
        "avro.codec",
        default="null",
        check=one_of("null", "deflate", "snappy", "bzip2"),
        doc="Compression of Avro files.",
        importance="low",
        group="Connector",
    )
    parquet_codec: str = key(
        "parquet.codec",
        default="snappy",
        check=one_of("none", "gzip", "snappy", "lz4", "brotli", "lz4_raw", "zstd"),
        doc="Compression of Parquet files.",
        importance="low",
        group="Connector",
    )
    decimal_format: str = key(
        "json.decimal.format",
        default="BASE64",
        check=one_of("NUMERIC", "BASE64", ignore_case=True),
        doc="How JSON files hold decimals: base64 of the unscaled bytes, or numbers.",
        group="Connector",
    )
    csv_header: bool = key(
        "format.csv.header",
        default=True,
        doc="Whether the first line of CsvFormat's and TsvFormat's files has the names of columns.",
        importance="low",
        group="Connector",
    )
    csv_delimiter: str = key(
        "format.csv.delimiter",
        default=",",
        check=_delimiter,
        doc="The character between the cells of CsvFormat, as itself or as \\t; TsvFormat has tabs.",
        importance="low",
        group="Connector",
        keep_blanks=True,
    )
    csv_null: str = key(
        "format.csv.null",
        default="",
        check=_null_text,
        doc="The text of a null in CsvFormat and TsvFormat, such as \\N. The same text as a value is quoted.",
        importance="low",
        group="Connector",
    )
    csv_nested: str = key(
        "format.csv.nested",
        default="fail",
        check=one_of("fail", "json", ignore_case=True),
        doc="What to do with arrays, maps and structs in CsvFormat and TsvFormat: fail, or write them as JSON.",
        importance="low",
        group="Connector",
    )
    raw_extension: str = key(
        "format.bytearray.extension",
        default=".bin",
        doc="What names of ByteArrayFormat's files end with.",
        importance="low",
        group="Connector",
    )
    raw_separator: str | None = key(
        "format.bytearray.separator",
        default=None,
        doc="What ByteArrayFormat writes after each record; a newline by default. \\n, \\t and such have their meaning.",
        importance="low",
        group="Connector",
    )
    null_values: str = key(
        "behavior.on.null.values",
        default="fail",
        check=one_of("ignore", "fail", "write", ignore_case=True),
        doc="What to do with records without a value (tombstones): leave them out, fail, or write their keys to files in "
        "tombstone.encoded.partition, which needs store.kafka.keys=true.",
        importance="low",
        group="Connector",
    )
    report_nulls: bool = key(
        "report.null.values.to.dlq",
        default=True,
        doc="With behavior.on.null.values=ignore: whether tombstones go to the dead letter queue, where errors.tolerance is all "
        "and there is one.",
        importance="low",
        group="Connector",
    )
    tombstone_folder: str = key(
        "tombstone.encoded.partition",
        default="tombstone",
        doc="With behavior.on.null.values=write, the folder of tombstones, in place of the partitioner's.",
        importance="low",
        group="Connector",
    )
    store_keys: bool = key(
        "store.kafka.keys",
        default=False,
        doc="Whether the keys of a file's records are stored too, in a file beside it with .keys before its extension.",
        importance="low",
        group="Storage",
    )
    keys_format_class: str = key(
        "keys.format.class",
        default="io.confluent.connect.s3.format.avro.AvroFormat",
        type=KeyType.CLASS,
        check=class_of(*RESTORABLE),
        doc="The format of files of keys.",
        importance="low",
        group="Storage",
    )
    store_headers: bool = key(
        "store.kafka.headers",
        default=False,
        doc="Whether the headers of a file's records are stored too, in a file beside it with .headers before its extension.",
        importance="low",
        group="Storage",
    )
    headers_format_class: str = key(
        "headers.format.class",
        default="io.confluent.connect.s3.format.avro.AvroFormat",
        type=KeyType.CLASS,
        check=class_of("AvroFormat", "JsonFormat", "ParquetFormat"),
        doc="The format of files of headers: AvroFormat, JsonFormat or ParquetFormat.",
        importance="low",
        group="Storage",
    )
    topics_dir: str = key(
        "topics.dir",
        default="topics",
        doc="The folder that all topics' folders are in; empty for none.",
        importance="high",
        group="Storage",
    )
    directory_delim: str = key("directory.delim", default="/", doc="What stands between folders.", group="Storage")
    file_delim: str = key(
        "file.delim",
        default="+",
        doc="What stands between topic, partition and offsets in file names.",
        group="Storage",
    )
    partitioner_class: str = key(
        "partitioner.class",
        default=f"{_PACKAGE}.DefaultPartitioner",
        type=KeyType.CLASS,
        check=class_of(*PARTITIONERS),
        doc="What decides the folder of a record: its topic partition (DefaultPartitioner), values of fields "
        "(FieldPartitioner), its time (TimeBasedPartitioner, DailyPartitioner, HourlyPartitioner) or fields and then time "
        "(FieldAndTimeBasedPartitioner).",
        importance="high",
        group="Partitioner",
    )
    partition_fields: list[str] = key(
        "partition.field.name",
        default=[],
        doc="Fields that FieldPartitioner makes folders of.",
        group="Partitioner",
        visible=_of_partitioners("FieldPartitioner", "FieldAndTimeBasedPartitioner"),
    )
    partition_duration_ms: int = key(
        "partition.duration.ms",
        default=-1,
        doc="Milliseconds that a folder of TimeBasedPartitioner stretches over.",
        group="Partitioner",
        visible=_of_partitioners("TimeBasedPartitioner", "FieldAndTimeBasedPartitioner"),
    )
    path_format: str = key(
        "path.format",
        default="",
        check=problem_of,
        doc="Pattern of TimeBasedPartitioner's folders, such as 'year'=YYYY/'month'=MM.",
        group="Partitioner",
        visible=_of_partitioners("TimeBasedPartitioner", "FieldAndTimeBasedPartitioner"),
    )
    locale: str = key(
        "locale",
        default="",
        doc="Accepted for compatibility: names of months and days in folders are English.",
        group="Partitioner",
        visible=_of_partitioners(*_TIME_BASED),
    )
    timezone: str = key(
        "timezone",
        default="",
        check=time_zone(or_empty=True),
        doc="Time zone of time-based folders and of rotate.schedule.interval.ms.",
        group="Partitioner",
        visible=_of_partitioners(*_TIME_BASED),
    )
    timestamp_extractor: str = key(
        "timestamp.extractor",
        default="Wallclock",
        check=class_of(
            "Wallclock",
            "Record",
            "RecordField",
            "TimeBasedPartitioner$WallclockTimestampExtractor",
            "TimeBasedPartitioner$RecordTimestampExtractor",
            "TimeBasedPartitioner$RecordFieldTimestampExtractor",
        ),
        doc="Which time a record is of: when it is written (Wallclock), that of the record (Record), or of a field (RecordField).",
        group="Partitioner",
    )
    timestamp_field: str = key(
        "timestamp.field", default="timestamp", doc="The field that RecordField looks at.", group="Partitioner"
    )
    schema_generator: str | None = key(
        "schema.generator.class",
        default=None,
        type=KeyType.CLASS,
        doc="Accepted for compatibility: it makes schemas for Hive, which no table is registered in.",
        importance="low",
        group="Partitioner",
    )

    compression = "none"
    compression_level = -1

    @property
    def partitioner(self) -> str:
        return self.partitioner_class.rpartition(".")[2]

    @property
    def extractor(self) -> str:
        """timestamp.extractor by its short name."""
        return self.timestamp_extractor.rpartition("$")[2].removesuffix("TimestampExtractor")

    @property
    def options(self) -> FormatOptions:
        return FormatOptions(
            parquet_codec=self.parquet_codec,
            avro_codec=self.avro_codec,
            decimal_format=self.decimal_format,
            csv_header=self.csv_header,
            csv_delimiter=_character(self.csv_delimiter),
            csv_null=self.csv_null,
            csv_nested=self.csv_nested,
            raw_extension=self.raw_extension,
            raw_separator=separator_of(self.raw_separator),
            compression=self.compression,
            compression_level=self.compression_level,
        )

    @property
    def writes_tombstones(self) -> bool:
        return self.null_values.lower() == "write"

    def problems(self) -> Iterable[Problem]:
        if self.writes_tombstones and not self.store_keys:
            yield Problem("behavior.on.null.values", "behavior.on.null.values=write needs store.kafka.keys=true")
        parts = self.tombstone_folder.replace(self.directory_delim or "/", "/").split("/")
        if self.writes_tombstones and not {"", ".", ".."}.isdisjoint(parts):
            name = "tombstone.encoded.partition"
            yield Problem(name, f"{name} is {self.tombstone_folder!r}; it should name a folder, such as tombstone")
        if self.partitioner.startswith("Field") and not any(self.partition_fields):
            yield Problem("partition.field.name", f"{self.partitioner} needs partition.field.name")
        if self.partitioner in _TIME_BASED and not self.timezone:
            yield Problem("timezone", f"{self.partitioner} needs a timezone, such as UTC")
        by_pattern = self.partitioner.endswith("TimeBasedPartitioner")
        if by_pattern and self.partition_duration_ms <= 0:
            duration = f"partition.duration.ms is {self.partition_duration_ms}"
            yield Problem("partition.duration.ms", f"{duration}; {self.partitioner} needs a positive number")
        if by_pattern and not self.path_format:
            yield Problem("path.format", f"{self.partitioner} needs a path.format, such as 'year'=YYYY/'month'=MM")
        if self.rotate_schedule_interval_ms > 0 and not self.timezone:
            yield Problem("timezone", "rotate.schedule.interval.ms needs a timezone, such as UTC")
