"""Keys that Debezium's connectors for database servers share."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import KeyType, Password, Problem, at_least, config, family, key, non_empty, one_of
from connectors.debezium.accepted import AcceptedKeys
from connectors.debezium.config import CaptureConfig

__all__ = ["DebeziumConfig"]


@config
class DebeziumConfig(AcceptedKeys, CaptureConfig):
    """Which server holds the tables, and how it is accessed."""

    hostname: str = key("database.hostname", doc="Where the database is.", importance="high", group="Database")
    user: str = key(
        "database.user",
        doc="Whom to connect as; needs the right to replicate.",
        importance="high",
        group="Database",
        check=non_empty,
    )
    password: Password | None = key(
        "database.password", default=None, doc="Password of that user.", importance="high", group="Database"
    )
    query_timeout_ms: int = key(
        "database.query.timeout.ms",
        default=600_000,
        doc="How long a query may take; those of snapshots: until their first rows come. 0: any time.",
        importance="low",
        group="Database",
        check=at_least(0),
        type=KeyType.INT,
    )
    snapshot_statements: str | None = key(
        "snapshot.select.statement.overrides",
        default=None,
        doc="Tables whose rows are read by the SELECT in snapshot.select.statement.overrides. and their whole name.",
        group="Snapshot",
    )
    snapshot_selects: dict[str, str] = family(
        "snapshot.select.statement.overrides.",
        doc="The SELECT that reads the rows of the table of this whole name in a snapshot.",
    )
    snapshot_order: str = key(
        "snapshot.tables.order.by.row.count",
        default="disabled",
        doc="The order in which tables are read: by their names, or by how many rows the server takes them to have.",
        importance="medium",
        group="Snapshot",
        check=one_of("disabled", "ascending", "descending", ignore_case=True),
    )
    snapshot_delay_ms: int = key(
        "snapshot.delay.ms",
        default=0,
        doc="Pause before a snapshot.",
        importance="low",
        group="Snapshot",
        check=at_least(0),
    )
    read_only: bool = key(
        "read.only",
        default=False,
        doc="Let incremental snapshots do without writing: chunks are told apart by positions in the log, not by rows in the table of signals.",
        group="Signals",
        importance="low",
    )
    max_queue_bytes: int = key(
        "max.queue.size.in.bytes",
        default=0,
        doc="Bytes of the log in a batch at most, where that is less than the 4 MiB that always bound it; 0: those.",
        group="Reading",
        check=at_least(0),
    )
    check_position: bool = key(
        "internal.log.position.check.enable",
        default=True,
        doc="Look at the start whether the server still has its log at the position, and say so where it has not.",
        group="Reading",
        importance="medium",
    )
    most_tables: int = key(
        "guardrail.collections.max",
        default=0,
        doc="How many tables may be captured; 0: any number.",
        group="Tables",
        check=at_least(0),
        type=KeyType.INT,
    )
    most_tables_action: str = key(
        "guardrail.collections.limit.action",
        default="warn",
        doc="What is done where it is more tables: it is logged (warn), or the configuration is refused and the task fails (fail).",
        group="Tables",
        check=one_of("warn", "fail", ignore_case=True),
    )

    def batch_bytes(self, most: int) -> int:
        """The size of a batch in bytes of log; never more than ``most``."""
        return min(most, self.max_queue_bytes) if self.max_queue_bytes else most

    def too_many(self, captured: int) -> str | None:
        """The message where more tables are captured than the limit allows; None otherwise."""
        if not self.most_tables or captured <= self.most_tables:
            return None
        return (
            f"{captured} tables are captured, and guardrail.collections.max={self.most_tables}: name fewer in table.include.list, or "
            "raise it"
        )

    def guardrail_problems(self, captured: int) -> Iterable[Problem]:
        said = self.too_many(captured)
        if said is not None and self.most_tables_action.lower() == "fail":
            yield Problem("guardrail.collections.max", said)
