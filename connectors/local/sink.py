"""The sink to the local disk."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import Problem, SinkConnector
from connectors.local.client import LocalStore
from connectors.local.config import LocalSinkConfig
from connectors.objects.sink import ObjectSinkTask, store_problems
from connectors.objects.store import Store

__all__ = ["LocalSinkConnector", "LocalSinkTask"]


class LocalSinkTask(ObjectSinkTask[LocalSinkConfig]):
    @property
    def location(self) -> str:
        return str(self.config.root)

    def make_store(self) -> Store:
        return _store(self.config)


class LocalSinkConnector(SinkConnector[LocalSinkConfig]):
    config_class = LocalSinkConfig
    task_class = LocalSinkTask

    @classmethod
    def check(cls, config: LocalSinkConfig) -> Iterable[Problem]:
        return store_problems(_store(config), "store.url")


def _store(config: LocalSinkConfig) -> LocalStore:
    return LocalStore(config.root, config.topics_dir, config.logs_dir)
