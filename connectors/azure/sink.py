"""The sink to Azure Blob Storage."""

from __future__ import annotations

from connect.api import SinkConnector
from connectors.azure.config import AzureBlobSinkConfig
from connectors.objects.sink import ObjectSinkTask
from connectors.objects.store import Store

__all__ = ["AzureBlobStorageSinkConnector", "AzureBlobStorageSinkTask"]


class AzureBlobStorageSinkTask(ObjectSinkTask[AzureBlobSinkConfig]):
    @property
    def location(self) -> str:
        return f"az://{self.config.container}"

    def make_store(self) -> Store:
        from connectors.azure.client import AzureStore

        return AzureStore(self.config)


class AzureBlobStorageSinkConnector(SinkConnector[AzureBlobSinkConfig]):
    """As with S3, validation does not ask the store: credentials may exist only where tasks run."""

    config_class = AzureBlobSinkConfig
    task_class = AzureBlobStorageSinkTask
