"""The Delta sink connector and its task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from connect.api import Dataset, OffsetChanges, Problem, SinkConnector, TidegateError, TopicPartition, parse
from connectors.delta.config import DeltaSinkConfig
from connectors.tables.background import Background
from connectors.tables.local_folders import folder_problem
from connectors.tables.sink import TableSinkTask, changed_offsets

if TYPE_CHECKING:
    from connectors.delta.store import DeltaStore

__all__ = ["DeltaSinkConnector", "DeltaSinkTask"]


class DeltaSinkTask(TableSinkTask[DeltaSinkConfig]):
    """Keeps rows in memory and writes them with a commit."""

    def __init__(self, config: DeltaSinkConfig, context: Any) -> None:
        super().__init__(config, context)
        self._maintenance: Background | None = None

    def make_store(self, *, creates: bool = True) -> DeltaStore:
        from connectors.delta.store import DeltaStore

        del creates
        return DeltaStore(self.config, self.context.connector)

    def dataset_of(self, table: str) -> Dataset:
        return Dataset.of_location(self.config.settings(table).uri)

    def start(self) -> None:
        super().start()
        if self.config.compact_interval_ms and self.context.task == 0:
            from connectors.delta.maintenance import maintain_tables

            name = self.context.connector
            act = partial(maintain_tables, self.config, self._known_tables)
            self._maintenance = Background(f"optimize-{name}", self.config.compact_interval_ms, act)
            self.resources.callback(self._maintenance.stop)

    def _known_tables(self) -> list[str]:
        return self.config.tables or list(self._writers)

    def pre_commit(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        if self._maintenance is not None:
            self._maintenance.start_if_due()
        return super().pre_commit(positions)


class DeltaSinkConnector(SinkConnector[DeltaSinkConfig]):
    config_class = DeltaSinkConfig
    task_class = DeltaSinkTask

    @classmethod
    def check(cls, config: DeltaSinkConfig) -> Iterable[Problem]:
        """Look for the tables where they are not created, else for the folder that takes them."""
        from connectors.delta.client import Tables

        if (problem := folder_problem(config.warehouse or "")) is not None:
            yield Problem("delta.warehouse", problem)
        try:
            tables = Tables(config)
            for name in config.tables:
                if tables.load(name) is None and not config.auto_create:
                    yield Problem(
                        "delta.tables",
                        f"there is no table {name} at {config.settings(name).uri}: create it, or set "
                        "delta.tables.auto-create-enabled=true",
                    )
        except TidegateError as error:
            yield Problem("delta.warehouse", str(error))

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        """Raises ConnectError for tables that records name: nobody knows which those are."""
        from connectors.delta.maintenance import change_offsets

        config = parse(cls.config_class, properties)
        change_offsets(config, properties.get("name", ""), changed_offsets(offsets))
        return True
