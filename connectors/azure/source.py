"""The source from Azure Blob Storage."""

from __future__ import annotations

from connectors.azure.source_config import AzureBlobSourceConfig, AzureBlobSourceTaskConfig
from connectors.objects.source import ObjectSourceConnector, ObjectSourceTask, ReadableObjects

__all__ = ["AzureBlobStorageSourceConnector", "AzureBlobStorageSourceTask"]


class AzureBlobStorageSourceTask(ObjectSourceTask[AzureBlobSourceTaskConfig]):
    @property
    def location(self) -> str:
        return f"az://{self.config.container}"

    def make_objects(self) -> ReadableObjects:
        from connectors.azure.client import bucket_of
        from connectors.objects.buckets import BucketObjects

        return BucketObjects(bucket_of(self.config), "container")


class AzureBlobStorageSourceConnector(ObjectSourceConnector[AzureBlobSourceConfig]):
    config_class = AzureBlobSourceConfig
    task_class = AzureBlobStorageSourceTask
    task_config_class = AzureBlobSourceTaskConfig
    tasks_key = "tidegate.azure.tasks"
