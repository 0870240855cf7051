"""The source from S3."""

from __future__ import annotations

from typing import Any, ClassVar

from connectors.objects.source import ObjectSourceConnector, ObjectSourceTask, ReadableObjects
from connectors.s3.aiven_config import AivenS3SourceConfig, AivenS3SourceTaskConfig
from connectors.s3.source_config import S3SourceConfig, S3SourceTaskConfig

__all__ = ["AivenS3SourceConnector", "S3SourceConnector", "S3SourceTask"]


class S3SourceTask(ObjectSourceTask[S3SourceTaskConfig | AivenS3SourceTaskConfig]):
    @property
    def location(self) -> str:
        return f"s3://{self.config.bucket}"

    def make_objects(self) -> ReadableObjects:
        from connectors.s3.client import S3Objects

        return S3Objects(self.config)


class S3SourceConnector(ObjectSourceConnector[S3SourceConfig]):
    config_class: ClassVar[type[Any]] = S3SourceConfig
    task_class = S3SourceTask
    task_config_class: ClassVar[type[Any] | None] = S3SourceTaskConfig
    tasks_key = "tidegate.s3.tasks"


class AivenS3SourceConnector(S3SourceConnector):
    """Runs Aiven's connector's configurations, with its offsets."""

    config_class = AivenS3SourceConfig
    task_config_class = AivenS3SourceTaskConfig
