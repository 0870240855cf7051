"""The sink to S3."""

from __future__ import annotations

from connect.api import SinkConnector
from connectors.objects.sink import ObjectSinkTask
from connectors.objects.store import Store
from connectors.s3.config import S3SinkConfig

__all__ = ["S3SinkConnector", "S3SinkTask"]


class S3SinkTask(ObjectSinkTask[S3SinkConfig]):
    def make_store(self) -> Store:
        from connectors.s3.client import S3Store

        return S3Store(self.config)


class S3SinkConnector(SinkConnector[S3SinkConfig]):
    """Validation does not touch S3, as with the original: credentials may exist only where tasks run."""

    config_class = S3SinkConfig
    task_class = S3SinkTask
