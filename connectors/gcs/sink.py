"""The sink to Google Cloud Storage."""

from __future__ import annotations

from connect.api import SinkConnector
from connectors.gcs.config import GcsSinkConfig
from connectors.objects.sink import ObjectSinkTask
from connectors.objects.store import Store

__all__ = ["GcsSinkConnector", "GcsSinkTask"]


class GcsSinkTask(ObjectSinkTask[GcsSinkConfig]):
    @property
    def location(self) -> str:
        return f"gs://{self.config.bucket}"

    def make_store(self) -> Store:
        from connectors.objects.buckets import BucketStore

        return BucketStore(self.config.opened(), "bucket")


class GcsSinkConnector(SinkConnector[GcsSinkConfig]):
    """As with S3, validation does not ask the store: credentials may exist only where tasks run."""

    config_class = GcsSinkConfig
    task_class = GcsSinkTask
