"""Keys of the Google Cloud Storage source: Confluent's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connect.api import KeyType, Problem, config, inherited, key
from connectors.gcs.access import GcsAccess
from connectors.objects.source_config import ObjectSourceConfig, poll_interval_key

__all__ = ["GcsSourceConfig", "GcsSourceTaskConfig"]

_AVRO = "io.confluent.connect.gcs.format.avro.AvroFormat"


@config
class GcsSourceConfig(ObjectSourceConfig, GcsAccess):
    """Which objects are read, and what they contain."""

    poll_interval_ms: int = poll_interval_key("gcs.poll.interval.ms", "GCS")
    keys_format_class: str = inherited(default=_AVRO)
    headers_format_class: str = inherited(default=_AVRO)

    @property
    def source_bucket(self) -> Mapping[str, str]:
        return {"bucket": self.bucket}

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from self.access_problems()


@config
class GcsSourceTaskConfig(GcsSourceConfig):
    """The configuration that the connector gives its tasks."""

    tasks: int = key("tidegate.gcs.tasks", default=1, type=KeyType.INT, doc="How many tasks share the objects.")
