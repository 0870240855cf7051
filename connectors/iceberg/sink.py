"""The Iceberg sink connector and its task."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from connect.api import Dataset, OffsetChanges, Problem, SinkConnector, TidegateError, TopicPartition, parse
from connectors.iceberg.config import IcebergSinkConfig
from connectors.tables.background import Background
from connectors.tables.local_folders import folder_problem
from connectors.tables.sink import TableSinkTask, changed_offsets

if TYPE_CHECKING:
    from connectors.iceberg.store import IcebergStore
    from connectors.tables.rows import TableRows

__all__ = ["IcebergSinkConnector", "IcebergSinkTask"]

_EXPIRE_S: Final = 600


class IcebergSinkTask(TableSinkTask[IcebergSinkConfig]):
    """Writes rows to data files as they come."""

    def __init__(self, config: IcebergSinkConfig, context: Any) -> None:
        super().__init__(config, context)
        self._expired_at: dict[str, float] = {}
        self._compaction: Background | None = None

    def make_store(self, *, creates: bool = True) -> IcebergStore:
        from connectors.iceberg.client import Tables
        from connectors.iceberg.store import IcebergStore

        return IcebergStore(self.config, Tables(self.config, creates=creates), self.context.connector)

    def dataset_of(self, table: str) -> Dataset:
        from connectors.iceberg.catalog_properties import catalog_properties

        properties = catalog_properties(self.config.catalog, self.config.hadoop)
        return Dataset(str(Dataset.of_location(properties.get("warehouse") or properties.get("uri", ""))), table)

    def start(self) -> None:
        super().start()
        if self.config.compact_interval_ms and self.context.task == 0:
            from connectors.iceberg.compaction import compact_tables

            name = self.context.connector
            act = partial(compact_tables, self.config, name)
            self._compaction = Background(f"compact-{name}", self.config.compact_interval_ms, act)
            self.resources.callback(self._compaction.stop)

    def pre_commit(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        if self._compaction is not None:
            self._compaction.start_if_due()
        return super().pre_commit(positions)

    def after_commit(self, rows: Mapping[str, TableRows]) -> None:
        if not self.config.snapshot_age_ms:
            return
        from connectors.iceberg.maintenance import expire_snapshots
        from connectors.iceberg.table_rows import IcebergRows

        for name, each in rows.items():
            if time.monotonic() - self._expired_at.get(name, -_EXPIRE_S) >= _EXPIRE_S:
                self._expired_at[name] = time.monotonic()
                assert isinstance(each, IcebergRows)
                expire_snapshots(each.table, self.config.snapshot_age_ms)


class IcebergSinkConnector(SinkConnector[IcebergSinkConfig]):
    config_class = IcebergSinkConfig
    task_class = IcebergSinkTask

    @classmethod
    def check(cls, config: IcebergSinkConfig) -> Iterable[Problem]:
        """Open the catalog, and look for the tables where they are not created, else for the folder that takes them."""
        from connectors.iceberg.catalog_properties import catalog_properties
        from connectors.iceberg.client import Tables

        warehouse = catalog_properties(config.catalog, config.hadoop).get("warehouse", "")
        if "/" in warehouse and (problem := folder_problem(warehouse)) is not None:
            yield Problem("iceberg.catalog.warehouse", problem)
        try:
            with closing(Tables(config, creates=False)) as tables:
                for name in config.tables:
                    if tables.load(name) is None and not config.auto_create:
                        yield Problem(
                            "iceberg.tables",
                            f"there is no table {name} in catalog {config.catalog_name}: create it, or set "
                            "iceberg.tables.auto-create-enabled=true",
                        )
        except TidegateError as error:
            yield Problem("iceberg.catalog.uri", str(error))

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        from connectors.iceberg.client import Tables
        from connectors.iceberg.maintenance import change_offsets

        config = parse(cls.config_class, properties)
        changes = changed_offsets(offsets)
        with closing(Tables(config)) as tables:
            for name in config.tables or list(tables.names()):
                table = tables.load(name)
                if table is not None:
                    change_offsets(table, config.settings(name).branch, properties.get("name", ""), changes)
        return True
