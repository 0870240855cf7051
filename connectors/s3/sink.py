"""The sink to S3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect.api import SinkConnector
from connectors.objects.sink import ObjectSinkTask
from connectors.objects.store import Store
from connectors.s3.cloud_config import CloudS3SinkConfig
from connectors.s3.config import S3SinkConfig

__all__ = ["CloudS3SinkConnector", "S3SinkConnector", "S3SinkTask"]


class S3SinkTask(ObjectSinkTask[S3SinkConfig]):
    @property
    def location(self) -> str:
        return f"s3://{self.config.bucket}"

    def make_store(self) -> Store:
        from connectors.s3.client import S3Store

        return S3Store(self.config)


class S3SinkConnector(SinkConnector[S3SinkConfig]):
    """As in the original, validation does not access S3: credentials may exist only where tasks run."""

    config_class = S3SinkConfig
    task_class = S3SinkTask


class CloudS3SinkConnector(SinkConnector[CloudS3SinkConfig]):
    """Confluent Cloud's S3_SINK. Its tasks use the keys of ``S3SinkConnector``."""

    config_class = CloudS3SinkConfig
    task_config_class = S3SinkConfig
    task_class = S3SinkTask

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self.properties, **self.config.platform_keys}] * max_tasks
