"""Keys of the Delta sink. No original has a sink to Delta with keys that people use, so they follow Iceberg's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final
from urllib.parse import urlsplit

from connect.api import JavaRegex, KeyType, Password, Problem, at_least, config, family, key
from connectors.tables.config import routing_problems, setting_of, setting_problems, split_names

__all__ = ["DeltaSinkConfig", "TableSettings", "name_problem"]

_OF_TABLE: Final = ("route-regex", "id-columns", "partition-by", "path")
_RETRIES: Final = {"max_retries": "3", "retry_timeout": "20s"}
"""delta-rs would repeat a request for three minutes, in which a task could not stop; the worker repeats it afterwards."""
_NAME: Final = re.compile(r"[\w-]+(\.[\w-]+)*")
_SCHEMES: Final = ("", "file", "s3", "s3a", "gs", "az", "abfs", "abfss", "adl", "azure", "http", "https")


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The settings of one table: its own where given, otherwise the defaults."""

    route_regex: JavaRegex | None
    id_columns: tuple[str, ...]
    partition_by: tuple[str, ...]
    uri: str


def name_problem(name: str) -> str | None:
    """Why this cannot be a table's name: it becomes folders."""
    return None if _NAME.fullmatch(name) else "a table's name looks like shop.orders"


@config
class DeltaSinkConfig:
    """Which tables are written, how, and where they are."""

    prefix: ClassVar[str] = "delta"

    tables: list[str] = key(
        "delta.tables",
        default=[],
        doc="The tables to write to, as folder.table. Each record goes into all of them, unless delta.tables.route-field is set.",
        importance="high",
        group="Tables",
    )
    warehouse: str | None = key(
        "delta.warehouse",
        default=None,
        doc="The folder of the tables: file:///path, s3://bucket/path, gs://bucket/path, abfss://container@account/path. The "
        "table shop.orders is in shop/orders below it.",
        importance="high",
        group="Tables",
    )
    dynamic: bool = key(
        "delta.tables.dynamic-enabled",
        default=False,
        doc="Whether the value of delta.tables.route-field is the name of a record's table, in lower case.",
        group="Tables",
    )
    route_field: str | None = key(
        "delta.tables.route-field",
        default=None,
        doc="The field that decides the table of a record: matched with each table's route-regex, or the table's name with "
        "delta.tables.dynamic-enabled. A dot leads into a struct. Records that match no table are skipped.",
        group="Tables",
    )
    default_id_columns: str | None = key(
        "delta.tables.default-id-columns",
        default=None,
        doc="Columns that identify a row, separated by commas. By default the fields of the records' keys.",
        group="Tables",
    )
    default_partition_by: str | None = key(
        "delta.tables.default-partition-by",
        default=None,
        doc="Partition columns of tables that are created, separated by commas.",
        group="Tables",
    )
    auto_create: bool = key(
        "delta.tables.auto-create-enabled", default=False, doc="Whether missing tables are created.", group="Tables"
    )
    evolve_schema: bool = key(
        "delta.tables.evolve-schema-enabled",
        default=False,
        doc="Whether tables follow the records' schemas: missing columns are added and types are widened. Otherwise fields "
        "without a column are left out.",
        group="Tables",
    )
    case_insensitive: bool = key(
        "delta.tables.schema-case-insensitive",
        default=True,
        doc="Whether fields find their columns whatever the case of letters: Delta has no two columns that differ in it only.",
        group="Tables",
    )
    replace_null: bool = key(
        "delta.tables.replace-null-with-default",
        default=True,
        doc="Whether a null becomes its field's default.",
        group="Tables",
    )
    cdc_field: str | None = key(
        "delta.tables.cdc-field",
        default=None,
        doc="The field with the operation of a record: an insert (I, C, R), an update (U) or a delete (D), by its first "
        "letter. A dot leads into a struct. Rows are then changed by their id columns.",
        group="Changes",
    )
    upsert: bool = key(
        "delta.tables.upsert-mode-enabled",
        default=False,
        doc="Whether a record replaces the row of the same id columns. Debezium's change events are unpacked, and their "
        "deletes, like records without value, delete the row. Otherwise every record is appended.",
        importance="high",
        group="Changes",
    )
    create_props: dict[str, str] = family(
        "delta.tables.auto-create-props.", doc="Properties of created tables, such as delta.targetFileSize."
    )
    table: dict[str, str] = family(
        "delta.table.",
        doc="Settings of one table: delta.table.NAME.route-regex, .id-columns, .partition-by, and .path for a table elsewhere.",
    )
    secret_key: Password | None = key(
        "delta.storage.aws_secret_access_key", default=None, doc="The secret of aws_access_key_id.", group="Storage"
    )
    session_token: Password | None = key(
        "delta.storage.aws_session_token", default=None, doc="The token of a session with S3.", group="Storage"
    )
    azure_key: Password | None = key(
        "delta.storage.azure_storage_account_key", default=None, doc="The key of an Azure account.", group="Storage"
    )
    azure_token: Password | None = key(
        "delta.storage.azure_storage_sas_token", default=None, doc="A shared access signature.", group="Storage"
    )
    azure_secret: Password | None = key(
        "delta.storage.azure_storage_client_secret", default=None, doc="The secret of an Azure client.", group="Storage"
    )
    google_key: Password | None = key(
        "delta.storage.google_service_account_key",
        default=None,
        doc="A Google service account, as JSON.",
        group="Storage",
    )
    storage: dict[str, str] = family(
        "delta.storage.",
        doc="Options of the file store as delta-rs names them, such as aws_access_key_id, aws_region, aws_endpoint_url. Without "
        "them credentials come from the worker's environment.",
    )
    commit_interval_ms: int = key(
        "delta.commit.interval-ms",
        default=300_000,
        type=KeyType.INT,
        check=at_least(0),
        doc="Milliseconds between commits.",
        group="Commits",
    )
    commit_bytes: int = key(
        "tidegate.commit.bytes",
        default=128 * 1024 * 1024,
        check=at_least(1),
        doc="A task commits before the interval is over once it has taken this many bytes of rows, as Arrow columns. They are "
        "held in memory until then.",
        group="Commits",
    )
    compact_interval_ms: int = key(
        "tidegate.compact.interval.ms",
        default=0,
        check=at_least(0),
        doc="How often small files are put together (OPTIMIZE) into files of the table's delta.targetFileSize, while the sink "
        "goes on. The first of several tasks does it; 0: nobody does.",
        group="Commits",
    )
    vacuum_hours: int = key(
        "tidegate.vacuum.retention.hours",
        default=0,
        type=KeyType.INT,
        check=at_least(0),
        doc="Whether files that no version of the last hours needs are deleted (VACUUM) each time that files were put together: "
        "so many hours. 0: they stay.",
        group="Commits",
    )

    @property
    def changes(self) -> bool:
        """Whether rows are changed by their id columns instead of appended."""
        return self.upsert or bool(self.cdc_field)

    @property
    def pending_bytes(self) -> int:
        return self.commit_bytes

    @property
    def storage_options(self) -> Mapping[str, str]:
        options = dict(self.storage)
        if any(value.startswith("http://") for name, value in options.items() if "endpoint" in name.lower()):
            options.setdefault("aws_allow_http", "true")
        return _RETRIES | options

    def settings(self, table: str) -> TableSettings:
        of = partial(setting_of, self.table, table)
        regex = of("route-regex", None)
        folder = "/".join([(self.warehouse or "").rstrip("/"), *table.split(".")])
        return TableSettings(
            route_regex=JavaRegex(regex) if regex else None,
            id_columns=split_names(of("id-columns", self.default_id_columns)),
            partition_by=split_names(of("partition-by", self.default_partition_by)),
            uri=of("path", folder),
        )

    def problems(self) -> Iterable[Problem]:
        yield from routing_problems(self)
        for table in self.tables:
            if (problem := name_problem(table)) is not None:
                yield Problem("delta.tables", f"delta.tables has {table!r}, and {problem}")
        placed = all(f"{table}.path" in self.table for table in self.tables)
        if not self.warehouse and (self.dynamic or not placed):
            yield Problem("delta.warehouse", "delta.warehouse has to say where tables are, such as s3://bucket/lake")
        for name, value in (("delta.warehouse", self.warehouse or "file:"), *self._paths()):
            scheme = urlsplit(value).scheme.lower()
            if scheme not in _SCHEMES or (not scheme and not value.startswith("/")):
                yield Problem(name, f"{name} is {value!r}; it should look like file:///path or s3://bucket/path")
        yield from setting_problems(self.prefix, self.table, _OF_TABLE)

    def _paths(self) -> Iterable[tuple[str, str]]:
        return ((f"delta.table.{name}", value) for name, value in self.table.items() if name.endswith(".path"))
