"""Keys of the S3 source: Confluent's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connect.api import KeyType, Problem, config, inherited, key
from connectors.objects.source_config import ObjectSourceConfig, poll_interval_key
from connectors.s3.access import S3AccessConfig

__all__ = ["S3SourceConfig", "S3SourceTaskConfig"]

_AVRO = "io.confluent.connect.s3.format.avro.AvroFormat"


@config
class S3SourceConfig(S3AccessConfig, ObjectSourceConfig):
    """Which objects are read, and what they contain."""

    poll_interval_ms: int = poll_interval_key("s3.poll.interval.ms", "S3")
    keys_format_class: str = inherited(default=_AVRO)
    headers_format_class: str = inherited(default=_AVRO)

    @property
    def source_bucket(self) -> Mapping[str, str]:
        return {"bucket": self.bucket}

    def problems(self) -> Iterable[Problem]:
        yield from self.access_problems()
        yield from super().problems()


@config
class S3SourceTaskConfig(S3SourceConfig):
    """The configuration that the connector gives its tasks."""

    tasks: int = key("tidegate.s3.tasks", default=1, type=KeyType.INT, doc="How many tasks share the objects.")
