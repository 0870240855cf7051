"""A backup of a platform: its records, and everything else that there is beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from tidegate.backup.taking import READING, begin_point, read_groups, take_records
from tidegate.clients.topics import is_internal, with_admin
from tidegate.clients.worker import path_of
from tidegate.configuration.connectors import Connectors
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from broker.client import ClientConfig
    from tidegate.backup.manifest import Point
    from tidegate.backup.services import ProgressOf, Services
    from tidegate.backup.store import BackupStore
    from tidegate.clients.rest import Rest

__all__ = ["is_meant", "take"]

_DERIVED: Final = ("__chn", "ChangeEvents")
"""The ends of names of channels' topics: the events service fills them from the events."""


def take(
    services: Services,
    store: BackupStore,
    globs: Sequence[str],
    *,
    full: bool,
    progress_of: ProgressOf,
    tell: Callable[[str], None],
    reads: bool = True,
) -> tuple[Point, int]:
    """Write the records of topics with such names that ``store`` has not, and read all else that a backup has.

    Returns the point, which is not stored yet, and the number of records written. Without ``reads`` no record is read.
    ``tell`` gets a sentence about each thing that can't be in a backup. Raises UsageError where no topic has such a name.
    """
    admin = services.admin
    names = [n for n in admin.list_topics() if not is_internal(n) and not n.endswith(_DERIVED) and is_meant(n, globs)]
    if globs and not names:
        raise UsageError(f"no topic has a name like {', '.join(globs)}")
    point = begin_point(admin)
    # positions first: every record before one of them is then among those that are read below
    if services.worker is not None:
        connectors = Connectors(services.worker)
        point.configuration[connectors.folder] = connectors.read()
        point.connector_offsets = _source_offsets(services.worker)
    point.groups, point.share_groups = read_groups(admin, names, tell)
    for part in services.parts():
        point.configuration[part.folder] = part.read()
    point.scram_users = _scram_users(services.config)
    with progress_of("reading") as progress:
        reading = services.config.with_properties(READING)
        written = take_records(reading, admin, store, point, names, full=full, reads=reads, progress=progress)
    point.ended = datetime.now(UTC).isoformat(timespec="milliseconds")
    return point, written


def is_meant(name: str, globs: Sequence[str]) -> bool:
    """Whether a topic's name matches one of ``globs``, or there are none."""
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def _source_offsets(rest: Rest) -> dict[str, list[dict[str, Any]]]:
    """The offsets of source connectors; those of sinks are the positions of their groups."""
    expanded = rest.call("GET", "/connectors", expand=["info"])
    sources = [name for name, entry in expanded.items() if entry["info"].get("type") == "source"]
    return {name: rest.call("GET", path_of(name, "/offsets"))["offsets"] for name in sources}


def _scram_users(config: ClientConfig) -> dict[str, dict[str, int]]:
    from broker.client.errors import UnsupportedVersion

    try:
        return with_admin(config, lambda admin: admin.describe_scram())
    except UnsupportedVersion:
        return {}
