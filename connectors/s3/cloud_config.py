"""Keys of Confluent Cloud's S3_SINK, and what they come to in the keys of the connector for one's own workers.

Source: configurations in public repositories, and the beginning of docs.confluent.io/cloud/current/connectors/cc-s3-sink. Its list of
keys could not be read when this was written, so docs/reference/connect-differences.md says which defaults are not confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from connect.api import Problem, config, inherited, key, one_of, time_zone
from connectors.objects.config import class_of
from connectors.s3.config import S3SinkConfig

__all__ = ["CloudS3SinkConfig"]

_FORMATS: Final = {
    "AVRO": "AvroFormat",
    "BYTES": "ByteArrayFormat",
    "JSON": "JsonFormat",
    "PARQUET": "ParquetFormat",
}
_OF_INPUT: Final = {
    "AVRO": "AVRO",
    "JSON_SR": "JSON",
    "PROTOBUF": "AVRO",
    "JSON": "JSON",
    "STRING": "JSON",
    "BYTES": "BYTES",
}
_INTERVAL_MS: Final = {"HOURLY": 3_600_000, "DAILY": 86_400_000}
_PACKAGE: Final = "io.confluent.connect.s3.format"
_PATH: Final = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"


@config
class CloudS3SinkConfig(S3SinkConfig):
    """The keys of S3SinkConnector with the cloud's defaults, and the keys that only the cloud has."""

    format_class: str | None = inherited(  # type: ignore[assignment]
        default=None, doc="The format of files, in place of output.data.format.", importance="low"
    )
    output_format: str | None = key(
        "output.data.format",
        default=None,
        check=one_of(*_FORMATS, ignore_case=True),
        doc="The format of files: AVRO, BYTES, JSON (JSON lines) or PARQUET. By default that of input.data.format; AVRO for "
        "PROTOBUF, JSON for JSON_SR and STRING.",
        importance="high",
        group="Connector",
    )
    input_format: str | None = key(
        "input.data.format",
        default=None,
        aliases=["data.format"],
        check=one_of(*_OF_INPUT, ignore_case=True),
        doc="The format of records, which chooses value.converter.",
        importance="high",
        group="Connector",
    )
    keys_format: str = key(
        "output.keys.format",
        default="AVRO",
        check=one_of(*_FORMATS, ignore_case=True),
        doc="With store.kafka.keys, the format of files of keys.",
        importance="low",
        group="Storage",
    )
    headers_format: str = key(
        "output.headers.format",
        default="AVRO",
        check=one_of("AVRO", "JSON", "PARQUET", ignore_case=True),
        doc="With store.kafka.headers, the format of files of headers.",
        importance="low",
        group="Storage",
    )
    interval: str = key(
        "time.interval",
        default="HOURLY",
        check=one_of(*_INTERVAL_MS, ignore_case=True),
        doc="How long a folder of TimeBasedPartitioner is: HOURLY or DAILY.",
        importance="high",
        group="Partitioner",
    )
    flush_size: int = inherited(default=1000)
    rotate_interval_ms: int = inherited(
        doc="Files are closed before a record that is this much later than their first; by default time.interval."
    )
    null_values: str = inherited(default="ignore")
    partitioner_class: str = inherited(
        default="TimeBasedPartitioner",
        check=class_of("DefaultPartitioner", "FieldPartitioner", "TimeBasedPartitioner"),
        doc="What decides the folder of a record: its time, its topic partition or values of fields.",
    )
    path_format: str = inherited(default=_PATH)
    timezone: str = inherited(default="UTC", check=time_zone())
    locale: str = inherited(default="en")
    timestamp_field: str = inherited(
        default="", doc="The field whose time a record is of; by default it is the record's own time."
    )
    partition_duration_ms: int = inherited(
        default=1, doc="Accepted for compatibility: time.interval says it.", importance="low"
    )
    timestamp_extractor: str = inherited(
        default="Record",
        check=one_of("Record", "RecordField", "Wallclock"),
        doc="Accepted for compatibility: RecordField with timestamp.field, else Record.",
        importance="low",
    )
    authentication: str = key(
        "authentication.method",
        default="Access Keys",
        check=one_of("Access Keys", "IAM Roles"),
        doc="Access Keys: aws.access.key.id and aws.secret.access.key, or where Amazon's clients look. IAM Roles is refused: "
        "only Confluent Cloud knows its provider integrations.",
        importance="high",
        group="S3",
    )

    @property
    def _interval_ms(self) -> int:
        return _INTERVAL_MS[self.interval.upper()]

    @property
    def _file_format(self) -> str | None:
        if self.format_class is not None:
            return self.format_class
        chosen = self.output_format or _OF_INPUT.get((self.input_format or "").upper())
        return None if chosen is None else self._class(chosen)

    @staticmethod
    def _class(name: str) -> str:
        format_class = _FORMATS[name.upper()]
        return f"{_PACKAGE}.{format_class.removesuffix('Format').lower()}.{format_class}"

    @property
    def platform_keys(self) -> Mapping[str, str]:
        """The same settings as keys of ``S3SinkConnector``."""
        return {
            "format.class": self._file_format or "",
            "keys.format.class": self._class(self.keys_format),
            "headers.format.class": self._class(self.headers_format),
            "flush.size": str(self.flush_size),
            "rotate.interval.ms": str(self.rotate_interval_ms if self.rotate_interval_ms > 0 else self._interval_ms),
            "behavior.on.null.values": self.null_values,
            "partitioner.class": self.partitioner_class,
            "partition.duration.ms": str(self._interval_ms),
            "path.format": self.path_format,
            "timezone": self.timezone,
            "timestamp.extractor": "RecordField" if self.timestamp_field else "Record",
            "timestamp.field": self.timestamp_field,
        }

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self._file_format is None:
            yield Problem(
                "output.data.format", f"output.data.format is missing: it should be one of {', '.join(_FORMATS)}"
            )
        if self.authentication != "Access Keys":
            yield Problem(
                "authentication.method",
                "a provider integration of Confluent Cloud cannot be used here: set authentication.method=Access Keys and give "
                "aws.access.key.id, or let credentials come from the environment or from s3.credentials.provider.class",
            )
