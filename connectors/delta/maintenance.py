"""Work on tables beside the rows: OPTIMIZE, VACUUM, and offsets that a user changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from connect.api import ConnectError, TidegateError, TopicPartition, get_logger
from connectors.delta.client import Tables, delta_errors, single_try
from connectors.delta.config import DeltaSinkConfig
from connectors.delta.table_rows import NO_OFFSET, app_id_of
from connectors.tables.errors import CommitConflict

__all__ = ["change_offsets", "maintain_tables"]

logger = get_logger(__name__)

_TRIES: Final = 20


def maintain_tables(config: DeltaSinkConfig, names: Callable[[], Sequence[str]], stopping: threading.Event) -> None:
    """Put small files of all tables together, and delete files that are too old.

    A failure is logged: the next time may succeed. delta-rs repeats a commit that meets another, and gives up
    where the other has changed the same files.
    """
    tables = Tables(config)
    for name in names():
        if stopping.is_set():
            return
        try:
            with delta_errors("maintain", name):
                table = tables.load(name)
                if table is None:
                    continue
                done = table.optimize.compact()
                if done["numFilesRemoved"]:
                    counts = {"files": done["numFilesRemoved"], "into": done["numFilesAdded"]}
                    logger.info("files were put together", table=name, **counts)
                if config.vacuum_hours and not stopping.is_set():
                    deleted = table.vacuum(
                        config.vacuum_hours, dry_run=False, enforce_retention_duration=False, full=True
                    )
                    logger.info("old files were deleted", table=name, files=len(deleted))
        except TidegateError as error:
            logger.warning("table is not maintained", table=name, reason=str(error))


def change_offsets(config: DeltaSinkConfig, connector: str, changes: Mapping[TopicPartition, int | None]) -> None:
    """Set offsets on behalf of a user, in a version without other changes; None deletes one."""
    versions = {
        app_id_of(connector, partition): NO_OFFSET if offset is None else offset
        for partition, offset in changes.items()
    }
    if config.dynamic:
        raise ConnectError(
            "offsets stand in the tables, and nobody knows the names of tables that records name: to read the topics anew, "
            "delete the connector and create it by another name"
        )
    tables = Tables(config)
    for name in config.tables:
        for attempt in range(_TRIES):
            table = tables.load(name)
            if table is None or all(table.transaction_version(app) == at for app, at in versions.items()):
                break
            try:
                with delta_errors("change the offsets of", name):
                    table.create_write_transaction(
                        [], mode="append", schema=table.schema(), commit_properties=single_try({}, versions)
                    )
                break
            except CommitConflict:
                if attempt + 1 == _TRIES:
                    raise
