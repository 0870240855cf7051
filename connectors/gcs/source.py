"""The source from Google Cloud Storage."""

from __future__ import annotations

from connectors.gcs.source_config import GcsSourceConfig, GcsSourceTaskConfig
from connectors.objects.source import ObjectSourceConnector, ObjectSourceTask, ReadableObjects

__all__ = ["GcsSourceConnector", "GcsSourceTask"]


class GcsSourceTask(ObjectSourceTask[GcsSourceTaskConfig]):
    @property
    def location(self) -> str:
        return f"gs://{self.config.bucket}"

    def make_objects(self) -> ReadableObjects:
        from connectors.objects.buckets import BucketObjects

        return BucketObjects(self.config.opened(), "bucket")


class GcsSourceConnector(ObjectSourceConnector[GcsSourceConfig]):
    config_class = GcsSourceConfig
    task_class = GcsSourceTask
    task_config_class = GcsSourceTaskConfig
    tasks_key = "tidegate.gcs.tasks"
