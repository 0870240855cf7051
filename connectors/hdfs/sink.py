"""The sink to HDFS."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import Problem, SinkConnector, TidegateError
from connectors.hdfs.client import HdfsStore
from connectors.hdfs.config import HdfsSinkConfig
from connectors.objects.sink import ObjectSinkTask, store_problems
from connectors.objects.store import Store

__all__ = ["HdfsSinkConnector", "HdfsSinkTask"]


class HdfsSinkTask(ObjectSinkTask[HdfsSinkConfig]):
    @property
    def location(self) -> str:
        return self.config.url

    def make_store(self) -> Store:
        return _store(self.config)


class HdfsSinkConnector(SinkConnector[HdfsSinkConfig]):
    config_class = HdfsSinkConfig
    task_class = HdfsSinkTask

    @classmethod
    def check(cls, config: HdfsSinkConfig) -> Iterable[Problem]:
        try:
            return list(store_problems(_store(config), "hdfs.url"))
        except TidegateError as error:
            return [Problem("hdfs.url", str(error))]


def _store(config: HdfsSinkConfig) -> HdfsStore:
    return HdfsStore(config.url, config.topics_dir, config.logs_dir, config.conf_dir)
