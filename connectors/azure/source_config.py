"""Keys of the Azure Blob Storage source: Confluent's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connect.api import KeyType, Problem, config, inherited, key
from connectors.azure.access import AzureAccess
from connectors.objects.source_config import ObjectSourceConfig, poll_interval_key

__all__ = ["AzureBlobSourceConfig", "AzureBlobSourceTaskConfig"]

_AVRO = "io.confluent.connect.azure.blob.storage.format.avro.AvroFormat"


@config
class AzureBlobSourceConfig(ObjectSourceConfig, AzureAccess):
    """Which blobs are read, and what they contain."""

    poll_interval_ms: int = poll_interval_key("azblob.poll.interval.ms", "Azure")
    keys_format_class: str = inherited(default=_AVRO)
    headers_format_class: str = inherited(default=_AVRO)

    @property
    def source_bucket(self) -> Mapping[str, str]:
        return {"container": self.container}

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from self.access_problems()


@config
class AzureBlobSourceTaskConfig(AzureBlobSourceConfig):
    """The configuration that the connector gives its tasks."""

    tasks: int = key("tidegate.azure.tasks", default=1, type=KeyType.INT, doc="How many tasks share the blobs.")
