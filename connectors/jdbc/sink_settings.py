"""The settings of the JDBC sinks, independent of the names of the keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from connectors.sql.urls import Database

__all__ = ["KAFKA_COLUMNS", "SinkConfig", "SinkSettings"]

KAFKA_COLUMNS = ("__connect_topic", "__connect_partition", "__connect_offset")


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """``pk_mode`` is none, kafka, record_key or record_value.

    ``dots`` replaces the dots in a topic's name where they do not separate schema and table. ``debezium`` enables
    change events and Debezium's named types.
    """

    insert_mode: str
    pk_mode: str
    pk_fields: tuple[str, ...]
    table_format: str
    quoting: bool
    auto_create: bool
    auto_evolve: bool
    delete_enabled: bool
    batch_size: int
    max_retries: int
    retry_backoff_ms: int
    timezone: str
    connect_attempts: int = 3
    connect_backoff_ms: int = 10000
    truncate_enabled: bool = False
    tables: dict[str, str] = field(default_factory=dict)
    normalize: bool = False
    dots: str | None = None
    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    replace_null: bool = True
    timestamp_fields: frozenset[str] = frozenset()
    timestamp_unit: str = "us"
    string_column: str = "record_value"
    debezium: bool = False
    hold_lock: bool = True
    offsets_table: str = ""


class SinkConfig(Protocol):
    """The interface of the configuration of every JDBC sink."""

    topics: list[str]
    transforms: list[str]

    @property
    def database(self) -> Database:
        """Raises ConnectError for an invalid URL."""
        ...

    @property
    def settings(self) -> SinkSettings: ...
