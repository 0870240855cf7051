"""Keys of Debezium's server connectors that have no effect here, and keys of which only one value is accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from connect.api import Importance, KeyType, at_least, config, key, keys_of
from tidegate.kit.config import pairs

__all__ = ["AcceptedKeys", "given_without_effect", "only", "without_effect"]

_GROUP: Final = "Without effect"


def without_effect(
    name: str, default: Any, because: str, *, importance: Importance = "low", aliases: Sequence[str] = (), **more: Any
) -> Any:
    """A key that is accepted and changes nothing; ``because`` says why."""
    doc = f"Accepted, without effect: {because}"
    return key(name, default=default, doc=doc, importance=importance, group=_GROUP, aliases=aliases, **more)


def only(
    name: str,
    default: str | None,
    because: str,
    *others: str,
    type: KeyType | None = None,  # noqa: A002 - as ``key`` has it
    importance: Importance = "low",
) -> Any:
    """A key that accepts only its default (None: it may not be set), or a value with the same meaning; ``because`` says
    why.
    """
    taken = {default.lower(), *(other.lower() for other in others)} if default else {""}

    def judged(value: str) -> str | None:
        if value.lower() in taken:
            return None
        return f"Must be {default}: {because}" if default else f"Must be left out: {because}"

    judged.valid = f"[{default}]" if default else ""  # type: ignore[attr-defined]
    doc = f"Only {default}: {because}." if default else f"Not supported: {because}."
    return key(name, default=default, doc=doc, importance=importance, group=_GROUP, check=judged, type=type)


def given_without_effect(cls: type, properties: Mapping[str, str]) -> list[str]:
    """The keys in a configuration that have no effect and are set to something other than their default."""
    ineffective = []
    for declared in keys_of(cls):
        if declared.group == _GROUP:
            default = str(declared.default).lower()
            names = (declared.name, *declared.aliases)
            ineffective += [
                name for name in names if name in properties and properties[name].strip().lower() != default
            ]
    return ineffective


_ONE_CLASS: Final = "classes of Java's cannot be loaded here"
_MODE: Final = "it belongs to snapshot.mode=configuration_based, which is refused"


def _maker(value: str) -> str | None:
    if value.rpartition(".")[2] in (
        "PostgresSourceInfoStructMaker",
        "MySqlSourceInfoStructMaker",
        "MariaDbSourceInfoStructMaker",
    ):
        return None
    return f"Must be the connector's own class, such as io.debezium.connector.mysql.MySqlSourceInfoStructMaker: {_ONE_CLASS}"


@config
class AcceptedKeys:
    """The keys without effect that all of Debezium's server connectors have.

    None is ignored silently: the task logs those that are set.
    """

    event_failures: str = only(
        "event.processing.failure.handling.mode",
        "fail",
        "a change that cannot be read stops the task, as it would be lost otherwise",
        importance="medium",
    )
    source_maker: str | None = key(
        "sourceinfo.struct.maker",
        type=KeyType.CLASS,
        default=None,
        doc="Only the connector's own.",
        importance="low",
        group=_GROUP,
        check=_maker,
    )
    source_version: str = only("source.struct.version", "v2", "the source block is that of version 2")
    transaction_factory: str = only(
        "transaction.metadata.factory",
        "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory",
        _ONE_CLASS,
        type=KeyType.CLASS,
    )
    snapshot_query_mode: str = only(
        "snapshot.query.mode", "select_all", f"{_ONE_CLASS}; snapshot.select.statement.overrides says what to select"
    )
    snapshot_query_custom: str | None = only("snapshot.query.mode.custom.name", None, _ONE_CLASS, importance="medium")
    snapshot_mode_custom: str | None = only("snapshot.mode.custom.name", None, _ONE_CLASS, importance="medium")
    snapshot_locking_custom: str | None = only(
        "snapshot.locking.mode.custom.name", None, _ONE_CLASS, importance="medium"
    )
    based_on_data: bool = without_effect(
        "snapshot.mode.configuration.based.snapshot.data", False, _MODE, importance="medium"
    )
    based_on_schema: bool = without_effect(
        "snapshot.mode.configuration.based.snapshot.schema", False, _MODE, importance="medium"
    )
    based_on_stream: bool = without_effect(
        "snapshot.mode.configuration.based.start.stream", False, _MODE, importance="medium"
    )
    based_on_schema_error: bool = without_effect(
        "snapshot.mode.configuration.based.snapshot.on.schema.error", False, _MODE, importance="medium"
    )
    based_on_data_error: bool = without_effect(
        "snapshot.mode.configuration.based.snapshot.on.data.error", False, _MODE, importance="medium"
    )
    snapshot_fetch_size: int | None = without_effect(
        "snapshot.fetch.size",
        None,
        "rows are streamed, and bounded in bytes",
        type=KeyType.INT,
        check=at_least(0),
        importance="medium",
    )
    query_fetch_size: int = without_effect(
        "query.fetch.size",
        0,
        "rows are streamed, and bounded in bytes",
        type=KeyType.INT,
        check=at_least(0),
        importance="medium",
    )
    old_threads: bool = without_effect(
        "internal.legacy.snapshot.max.threads", False, "there is one way to read in parallel"
    )
    advanced_metrics: bool = without_effect(
        "internal.advanced.metrics.enable",
        False,
        "metrics are the worker's, all of them always told",
        importance="medium",
    )
    scan_all: bool = without_effect(
        "internal.snapshot.scan.all.columns.force", False, "the columns of all tables that are captured are looked at"
    )
    validation_timeout_ms: int = without_effect(
        "connection.validation.timeout.ms", 60_000, "a validation takes 10 seconds at most", check=at_least(1)
    )
    metric_tags: list[str] = without_effect(
        "custom.metric.tags", [], "there are no MBeans that would be named by them", check=pairs
    )
    sanitize_pattern: str | None = without_effect(
        "custom.sanitize.pattern", None, "configurations are not written to logs"
    )
