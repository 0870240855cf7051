"""Keys that the sources from object stores share: Confluent's, both of the self-managed connectors (``mode``) and of those in
Confluent Cloud."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Final

from connect.api import KeyType, Problem, at_least, config, key, one_of, valid_regex
from connectors.objects.config import class_of, separator_of
from connectors.objects.formats import RESTORABLE, FileFormat, FormatOptions, format_of
from connectors.objects.layouts import Backup, Layout, Objects

__all__ = ["ObjectSourceConfig", "poll_interval_key"]

_CLOUD_FORMATS: Final[Mapping[str, str]] = {
    "AVRO": "AvroFormat",
    "BYTES": "ByteArrayFormat",
    "JSON": "JsonFormat",
    "PARQUET": "ParquetFormat",
}
_UNUSED: Final = "Accepted for compatibility: all folders below topics.dir are read."


@config
class ObjectSourceConfig(ABC):
    """Which objects are read, and what they contain."""

    mode: str | None = key(
        "mode",
        default=None,
        check=one_of("RESTORE_BACKUP", "GENERIC", ignore_case=True),
        doc="RESTORE_BACKUP: what the sink wrote goes back into its topics and partitions. GENERIC: any objects go into "
        "the topics of topic.regex.list. By default GENERIC where that is given.",
        importance="high",
        group="Connector",
    )
    topics_dir: str = key(
        "topics.dir",
        default="topics",
        doc="The folder that is read, with all folders in it; empty for the whole bucket.",
        importance="high",
        group="Storage",
    )
    topic_regexes: list[str] = key(
        "topic.regex.list",
        default=[],
        doc="With GENERIC, topics and which objects go there, as topic:regex. The whole name of an object, folders too, has "
        "to match; the first that does counts. Objects that none matches are passed over.",
        importance="high",
        group="Connector",
    )
    format_class: str | None = key(
        "format.class",
        default=None,
        type=KeyType.CLASS,
        check=class_of(*RESTORABLE),
        doc="The format of objects: AvroFormat, JsonFormat (JSON lines), ParquetFormat or ByteArrayFormat.",
        importance="high",
        group="Connector",
    )
    input_format: str | None = key(
        "input.data.format",
        default=None,
        check=one_of(*_CLOUD_FORMATS, ignore_case=True),
        doc="The same in the words of Confluent's cloud; format.class counts where both are given.",
        importance="high",
        group="Connector",
    )
    batch_rows: int = key(
        "record.batch.max.size",
        default=10_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The most records in one batch.",
        group="Connector",
    )
    since_ms: int = key(
        "file.discovery.starting.timestamp",
        default=0,
        check=at_least(0),
        doc="With GENERIC, objects that were written before are passed over; milliseconds since the epoch.",
        group="Connector",
    )
    on_error: str = key(
        "behavior.on.error",
        default="fail",
        check=one_of("fail", "ignore", "log", ignore_case=True),
        doc="What to do with an object that is not in its format: fail, or log it and go on after it (ignore, log).",
        group="Connector",
    )
    keys: bool = key(
        "store.kafka.keys",
        default=False,
        doc="With RESTORE_BACKUP, whether records get the keys that the sink stored beside them.",
        importance="low",
        group="Storage",
    )
    keys_format_class: str = key(
        "keys.format.class",
        default="AvroFormat",
        type=KeyType.CLASS,
        check=class_of(*RESTORABLE),
        doc="The format of objects with keys.",
        importance="low",
        group="Storage",
    )
    headers: bool = key(
        "store.kafka.headers",
        default=False,
        doc="With RESTORE_BACKUP, whether records get the headers that the sink stored beside them, as strings.",
        importance="low",
        group="Storage",
    )
    headers_format_class: str = key(
        "headers.format.class",
        default="AvroFormat",
        type=KeyType.CLASS,
        check=class_of("AvroFormat", "JsonFormat", "ParquetFormat"),
        doc="The format of objects with headers.",
        importance="low",
        group="Storage",
    )
    raw_extension: str = key(
        "format.bytearray.extension",
        default=".bin",
        doc="What names of ByteArrayFormat's objects end with, with RESTORE_BACKUP.",
        importance="low",
        group="Connector",
    )
    raw_separator: str | None = key(
        "format.bytearray.separator",
        default=None,
        doc="What stands after each record in ByteArrayFormat; a newline by default. Where it is empty an object is one record.",
        importance="low",
        group="Connector",
    )
    directory_delim: str = key("directory.delim", default="/", doc="What stands between folders.", group="Storage")
    file_delim: str = key(
        "file.delim", default="+", doc="What stands between topic, partition and offset in names.", group="Storage"
    )
    partitioner_class: str | None = key(
        "partitioner.class", default=None, type=KeyType.CLASS, doc=_UNUSED, importance="low", group="Partitioner"
    )
    partition_fields: list[str] = key(
        "partition.field.name", default=[], doc=_UNUSED, importance="low", group="Partitioner"
    )
    path_format: str = key("path.format", default="", doc=_UNUSED, importance="low", group="Partitioner")

    @property
    @abstractmethod
    def source_bucket(self) -> Mapping[str, str]:
        """The bucket or container, with which every source partition begins."""

    @property
    def restores(self) -> bool:
        return self.mode.upper() == "RESTORE_BACKUP" if self.mode else not self.topic_regexes

    @property
    def format(self) -> FileFormat:
        return format_of(self.format_class or _CLOUD_FORMATS[(self.input_format or "").upper()], self._options)

    @property
    def keys_format(self) -> FileFormat | None:
        return format_of(self.keys_format_class, self._options) if self.keys and self.restores else None

    @property
    def headers_format(self) -> FileFormat | None:
        return format_of(self.headers_format_class, self._options) if self.headers and self.restores else None

    @property
    def _options(self) -> FormatOptions:
        return FormatOptions(raw_extension=self.raw_extension, raw_separator=separator_of(self.raw_separator))

    @property
    def skips_errors(self) -> bool:
        return self.on_error.lower() != "fail"

    @property
    def layout(self) -> Layout:
        prefix = f"{self.topics_dir.strip('/')}{self.directory_delim}" if self.topics_dir.strip("/") else ""
        if not self.restores:
            pairs = [entry.partition(":") for entry in self.topic_regexes]
            return Objects(self.source_bucket, prefix, [(topic, regex) for topic, _, regex in pairs], self.since_ms)
        return Backup(
            self.source_bucket,
            prefix,
            folder_delim=self.directory_delim,
            file_delim=self.file_delim,
            extensions=self.format.extensions,
        )

    def compression(self, name: str) -> str | None:
        """The compression of an object, derived from the end of its name."""
        return "gzip" if name.endswith(".gz") else None

    def problems(self) -> Iterable[Problem]:
        if self.format_class is None and self.input_format is None:
            yield Problem("format.class", "give format.class, such as JsonFormat")
        if not self.restores and not self.topic_regexes:
            yield Problem("topic.regex.list", "mode GENERIC needs topic.regex.list, such as orders:shop/orders/.*")
        for entry in self.topic_regexes:
            topic, colon, regex = entry.partition(":")
            if not topic or not colon or (wrong := valid_regex(regex)) is not None:
                reason = f": {wrong}" if topic and colon else ""
                yield Problem("topic.regex.list", f"{entry!r} should be topic:regex{reason}")


def poll_interval_key(name: str, group: str) -> Any:
    """A key that all sources have, each by a name of its own."""
    doc = "How often new objects are looked for, in milliseconds."
    return key(name, default=60_000, check=at_least(1), doc=doc, group=group)
