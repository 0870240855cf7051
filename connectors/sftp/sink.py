"""The sink to an SFTP server."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import Problem, SinkConnector
from connectors.objects.sink import ObjectSinkTask, store_problems
from connectors.objects.store import Store
from connectors.sftp.config import SftpSinkConfig

__all__ = ["SftpSinkConnector", "SftpSinkTask"]


class SftpSinkTask(ObjectSinkTask[SftpSinkConfig]):
    @property
    def location(self) -> str:
        return self.config.location

    def make_store(self) -> Store:
        return _store(self.config)


class SftpSinkConnector(SinkConnector[SftpSinkConfig]):
    config_class = SftpSinkConfig
    task_class = SftpSinkTask

    @classmethod
    def check(cls, config: SftpSinkConfig) -> Iterable[Problem]:
        return store_problems(_store(config), config.location_key)


def _store(config: SftpSinkConfig) -> Store:
    from connectors.sftp.client import SftpStore

    return SftpStore(config.location, config, config.topics_dir, config.logs_dir)
