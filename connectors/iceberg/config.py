"""Keys of the Iceberg sink (iceberg.apache.org, "Kafka Connect", 1.11; tabular-io/iceberg-kafka-connect 0.6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from connect.api import JavaRegex, KeyType, Password, Problem, at_least, config, family, key
from connectors.iceberg.catalog_properties import catalog_problems
from connectors.iceberg.partition_fields import parse_partition_field, split_fields
from connectors.tables.config import routing_problems, setting_of, setting_problems

__all__ = ["IcebergSinkConfig", "TableSettings"]

_OF_TABLE: Final = ("route-regex", "id-columns", "partition-by", "commit-branch")


_CHANGES_SHARE: Final = 10
"""The part of ``tidegate.commit.bytes`` that changes by key take, which wait in memory."""


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The settings of one table: its own where given, otherwise the defaults."""

    route_regex: JavaRegex | None
    id_columns: tuple[str, ...]
    partition_by: tuple[str, ...]
    branch: str


@config
class IcebergSinkConfig:
    """Which tables are written, how, and in which catalog they are."""

    prefix: ClassVar[str] = "iceberg"

    tables: list[str] = key(
        "iceberg.tables",
        default=[],
        doc="The tables to write to, as namespace.table. Each record goes into all of them, unless iceberg.tables.route-field "
        "is set.",
        importance="high",
        group="Tables",
    )
    dynamic: bool = key(
        "iceberg.tables.dynamic-enabled",
        default=False,
        doc="Whether the value of iceberg.tables.route-field is the name of a record's table, in lower case.",
        group="Tables",
    )
    route_field: str | None = key(
        "iceberg.tables.route-field",
        default=None,
        doc="The field that decides the table of a record: matched with each table's route-regex, or the table's name with "
        "iceberg.tables.dynamic-enabled. A dot leads into a struct. Records that match no table are skipped.",
        group="Tables",
    )
    default_branch: str | None = key(
        "iceberg.tables.default-commit-branch",
        default=None,
        doc="The branch to commit to; main by default. A missing one starts from main.",
        group="Tables",
    )
    default_id_columns: str | None = key(
        "iceberg.tables.default-id-columns",
        default=None,
        doc="Columns that identify a row, separated by commas. By default those of the table, or the fields of the records' keys.",
        group="Tables",
    )
    default_partition_by: str | None = key(
        "iceberg.tables.default-partition-by",
        default=None,
        doc="Partition fields of tables that are created: column, year(column), month(column), day(column), hour(column), "
        "bucket(column, n), truncate(column, n), separated by commas.",
        group="Tables",
    )
    auto_create: bool = key(
        "iceberg.tables.auto-create-enabled",
        default=False,
        doc="Whether missing tables, and their namespaces, are created.",
        group="Tables",
    )
    evolve_schema: bool = key(
        "iceberg.tables.evolve-schema-enabled",
        default=False,
        doc="Whether tables follow the records' schemas: missing columns are added, types are widened and required columns "
        "become optional. Otherwise fields without a column are left out.",
        group="Tables",
    )
    force_optional: bool = key(
        "iceberg.tables.schema-force-optional",
        default=False,
        doc="Whether all columns of created tables are optional, except id columns.",
        group="Tables",
    )
    case_insensitive: bool = key(
        "iceberg.tables.schema-case-insensitive",
        default=False,
        doc="Whether fields find their columns whatever the case of letters.",
        group="Tables",
    )
    replace_null: bool = key(
        "iceberg.tables.replace-null-with-default",
        default=True,
        doc="Whether a null becomes its field's default.",
        group="Tables",
    )
    cdc_field: str | None = key(
        "iceberg.tables.cdc-field",
        default=None,
        doc="The field with the operation of a record: an insert (I, C, R), an update (U) or a delete (D), by its first "
        "letter. A dot leads into a struct. Rows are then changed by their id columns.",
        group="Changes",
    )
    upsert: bool = key(
        "iceberg.tables.upsert-mode-enabled",
        default=False,
        doc="Whether a record replaces the row of the same id columns. Debezium's change events are unpacked, and their "
        "deletes, like records without value, delete the row. Otherwise every record is appended.",
        importance="high",
        group="Changes",
    )
    create_props: dict[str, str] = family(
        "iceberg.tables.auto-create-props.", doc="Properties of created tables, such as format-version."
    )
    write_props: dict[str, str] = family(
        "iceberg.tables.write-props.",
        doc="Table properties that this sink writes with, such as write.target-file-size-bytes; they win over the table's.",
    )
    table: dict[str, str] = family(
        "iceberg.table.",
        doc="Settings of one table: iceberg.table.NAME.route-regex, .id-columns, .partition-by and .commit-branch.",
    )
    catalog_name: str = key("iceberg.catalog", default="iceberg", doc="The catalog's name.", group="Catalog")
    catalog_type: str | None = key(
        "iceberg.catalog.type",
        default=None,
        doc="The kind of catalog: rest, jdbc, hive, glue, dynamodb or bigquery.",
        importance="high",
        group="Catalog",
    )
    catalog_impl: str | None = key(
        "iceberg.catalog.catalog-impl",
        default=None,
        doc="The kind of catalog by the class name that Iceberg has for it, such as org.apache.iceberg.aws.glue.GlueCatalog.",
        group="Catalog",
    )
    uri: str | None = key(
        "iceberg.catalog.uri",
        default=None,
        doc="The catalog's address: http://host:8181, thrift://host:9083, jdbc:postgresql://host:5432/name or "
        "jdbc:sqlite:/path/catalog.db.",
        importance="high",
        group="Catalog",
        width="LONG",
    )
    warehouse: str | None = key(
        "iceberg.catalog.warehouse",
        default=None,
        doc="Where tables are created: s3://bucket/path, file:///path, or the name of a warehouse of a REST catalog.",
        importance="high",
        group="Catalog",
    )
    io_impl: str | None = key(
        "iceberg.catalog.io-impl",
        default=None,
        doc="Accepted for compatibility: Iceberg's own classes. The warehouse's address decides.",
        importance="low",
        group="Catalog",
    )
    credential: Password | None = key(
        "iceberg.catalog.credential",
        default=None,
        doc="Client id and secret of a REST catalog, as id:secret.",
        group="Catalog",
    )
    token: Password | None = key(
        "iceberg.catalog.token", default=None, doc="The token of a REST catalog.", group="Catalog"
    )
    jdbc_password: Password | None = key(
        "iceberg.catalog.jdbc.password", default=None, doc="The password of a catalog's database.", group="Catalog"
    )
    s3_secret: Password | None = key(
        "iceberg.catalog.s3.secret-access-key", default=None, doc="The secret of s3.access-key-id.", group="Catalog"
    )
    s3_token: Password | None = key(
        "iceberg.catalog.s3.session-token", default=None, doc="The token of a session with S3.", group="Catalog"
    )
    catalog: dict[str, str] = family(
        "iceberg.catalog.",
        doc="Further properties of the catalog and its file store, such as s3.endpoint, s3.access-key-id and client.region.",
    )
    commit_interval_ms: int = key(
        "iceberg.control.commit.interval-ms",
        default=300_000,
        type=KeyType.INT,
        check=at_least(0),
        doc="Milliseconds between commits.",
        group="Commits",
    )
    commit_bytes: int = key(
        "tidegate.commit.bytes",
        default=1024 * 1024 * 1024,
        check=at_least(1),
        doc="A task commits before the interval is over once it has taken this many bytes of rows, as Arrow columns. With "
        "changes by id columns they are held in memory until then, so a tenth of it counts.",
        group="Commits",
    )
    snapshot_age_ms: int = key(
        "tidegate.expire.snapshots.ms",
        default=0,
        check=at_least(0),
        doc="Snapshots older than this leave the table after a commit, at most once in ten minutes; 0: they stay. Their files "
        "stay until the engine that maintains the table removes orphan files.",
        group="Commits",
    )
    compact_interval_ms: int = key(
        "tidegate.compact.interval.ms",
        default=0,
        check=at_least(0),
        doc="How often small data files are put together into files of write.target-file-size-bytes, while the sink goes on. "
        "The first of several tasks does it; 0: nobody does.",
        group="Commits",
    )
    compact_min_files: int = key(
        "tidegate.compact.min.input.files",
        default=5,
        type=KeyType.INT,
        check=at_least(2),
        doc="Small files of a partition are left alone until there are this many, or until they fill a file.",
        group="Commits",
    )
    control_topic: str = key(
        "iceberg.control.topic",
        default="control-iceberg",
        doc="Accepted for compatibility: each task commits by itself, so there is no control topic.",
        importance="low",
        group="Commits",
    )
    control_group_prefix: str = key(
        "iceberg.control.group-id-prefix",
        default="cg-control",
        doc="Accepted for compatibility: there is no control topic.",
        importance="low",
        group="Commits",
    )
    connect_group: str | None = key(
        "iceberg.connect.group-id",
        default=None,
        doc="Accepted for compatibility: the worker's consumer group is used.",
        importance="low",
        group="Commits",
    )
    commit_timeout_ms: int = key(
        "iceberg.control.commit.timeout-ms",
        default=30_000,
        type=KeyType.INT,
        doc="Accepted for compatibility: no task waits for another one's files.",
        importance="low",
        group="Commits",
    )
    commit_threads: int | None = key(
        "iceberg.control.commit.threads",
        default=None,
        type=KeyType.INT,
        doc="Accepted for compatibility: a task commits its tables one after another.",
        importance="low",
        group="Commits",
    )
    commit_failures: int = key(
        "iceberg.control.commit.max-consecutive-failures",
        default=1,
        type=KeyType.INT,
        doc="Accepted for compatibility: a commit that may succeed later is repeated until it does.",
        importance="low",
        group="Commits",
    )
    transactional_prefix: str = key(
        "iceberg.coordinator.transactional.prefix",
        default="",
        doc="Accepted for compatibility: there is no coordinator.",
        importance="low",
        group="Commits",
    )
    hadoop_conf_dir: str | None = key(
        "iceberg.hadoop-conf-dir",
        default=None,
        doc="Accepted for compatibility: there is no Hadoop. Name the file store with iceberg.catalog.* keys.",
        importance="low",
        group="Catalog",
    )
    hadoop: dict[str, str] = family(
        "iceberg.hadoop.",
        doc="Hadoop's settings: endpoint and keys of S3 are read from fs.s3a.*, the others have no effect.",
    )
    kafka: dict[str, str] = family(
        "iceberg.kafka.", doc="Accepted for compatibility: clients of the control topic, which does not exist."
    )

    @property
    def changes(self) -> bool:
        """Whether rows are changed by their id columns instead of appended."""
        return self.upsert or bool(self.cdc_field)

    @property
    def pending_bytes(self) -> int:
        return self.commit_bytes // _CHANGES_SHARE if self.changes else self.commit_bytes

    def settings(self, table: str) -> TableSettings:
        of = partial(setting_of, self.table, table)

        regex = of("route-regex", None)
        return TableSettings(
            route_regex=JavaRegex(regex) if regex else None,
            id_columns=tuple(split_fields(of("id-columns", self.default_id_columns))),
            partition_by=tuple(split_fields(of("partition-by", self.default_partition_by))),
            branch=of("commit-branch", self.default_branch) or "main",
        )

    def problems(self) -> Iterable[Problem]:
        yield from routing_problems(self)
        for table in self.tables:
            if "." not in table.strip("."):
                yield Problem("iceberg.tables", f"iceberg.tables has {table!r}; it should look like shop.orders")
        yield from self._table_problems()
        yield from catalog_problems(self.catalog)

    def _table_problems(self) -> Iterable[Problem]:
        yield from setting_problems(self.prefix, self.table, _OF_TABLE)
        for name, value in self.table.items():
            if name.endswith(".partition-by"):
                yield from _partition_problems(f"iceberg.table.{name}", value)
        yield from _partition_problems("iceberg.tables.default-partition-by", self.default_partition_by or "")
        for prefix, props in (("auto-create-props", self.create_props), ("write-props", self.write_props)):
            if "write.py-location-provider.impl" in props:
                full = f"iceberg.tables.{prefix}.write.py-location-provider.impl"
                yield Problem(full, f"{full} names Python code, which a configuration cannot load: leave it out")


def _partition_problems(name: str, value: str) -> Iterable[Problem]:
    for field in split_fields(value):
        try:
            parse_partition_field(field)
        except ValueError as error:
            yield Problem(name, f"{name} has {field!r}: {error}")
