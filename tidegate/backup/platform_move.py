"""Moves all that a platform has to another one, in rounds that the first one need not notice, and a last one in which nothing is
written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tidegate.backup.manifest import points, read_point
from tidegate.backup.platform_backup import take
from tidegate.backup.platform_restore import PlatformRestore, start_connector
from tidegate.backup.taking import continue_point
from tidegate.clients.worker import path_of, states_of
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.texts import counted

if TYPE_CHECKING:
    from broker.client.blocking import Admin
    from tidegate.backup.manifest import Point
    from tidegate.backup.services import ProgressOf, Services
    from tidegate.backup.store import BackupStore
    from tidegate.clients.rest import Rest

__all__ = ["PlatformMove"]

Opened: TypeAlias = "Callable[[], AbstractContextManager[Services]]"

_FEW: Final = 10_000
"""A round that copies at most so many records is short: the last one may follow."""
_ROUNDS: Final = 10
_LAST_ROUNDS: Final = 5
_STOPPED_S: Final = 60.0
_PAUSE_S: Final = 0.2
_STOPPED: Final = "stopped.json"
"""The file that names the connectors which are stopped here, for a run that finds them so after this one was killed."""
_WRITTEN: Final = "written.json"
"""The file that tells the ends of the target's partitions after the last round that was finished."""
_STARTING: Final = "starting.json"
"""The file that says which connectors run there from now on, and no longer here."""


class PlatformMove:
    """One run of ``move``. ``store`` keeps what was copied, over all runs until the last.

    ``source`` and ``target`` open the services of the two platforms. The results are the JSON of ``tidegate move``.
    """

    def __init__(
        self,
        store: BackupStore,
        source: Opened,
        target: Opened,
        *,
        progress_of: ProgressOf,
        tell: Callable[[str], None],
    ) -> None:
        self._store, self._source, self._target = store, source, target
        self._progress_of, self._tell = progress_of, tell
        self._copied = 0

    def plan(self) -> dict[str, Any]:
        """Tell what ``copy`` and ``cut_over`` would do. Reads no records. Raises UsageError where they would."""
        with self._source() as source:
            point, _ = self._take(source, reads=False)
        ends = sum(p.end - p.start for topic in point.topics.values() for p in topic.partitions)
        with self._target() as target:
            restoring = self._restore(point, target)
            if not points(self._store):
                restoring.check(resume=False)
            told = restoring.run(resume=True, replication_factor=-1, compares=False, starts=True, execute=False)
        changes = [row for row in told["changes"] if row[0] != "topics"]
        first = ["topics", f"copy {counted(len(point.topics), 'topic')} with up to {counted(ends, 'record')}"]
        return self._told(point, {**told, "changes": [first, *changes]}, executed=False)

    def copy(self) -> dict[str, Any]:
        """Copy what is new until little is left to copy. Everything goes on meanwhile. Raises UsageError once all has moved."""
        if self._store.read_json(_STARTING) is not None:
            raise UsageError("the platform has moved, but for the start of its connectors there: --cut-over does that")
        for number in range(_ROUNDS):
            point, written, told = self._round(goes_on=True)
            if written <= _FEW or told["problems"] or number + 1 == _ROUNDS:
                break
        return self._told(point, told)

    def cut_over(self) -> dict[str, Any]:
        """Copy all, with the connectors here stopped for the last part; start them there. Where records still arrive here, or
        anything fails, the connectors here are started again. Raises TidegateError then.

        The note of what starts there is the moment of the move: from then on nothing is started here, and a run that was cut off
        is finished by the next one.
        """
        if (noted := self._store.read_json(_STARTING)) is not None:
            return self._start(noted)
        told = self.copy()
        if told["problems"]:
            return told
        with self._source() as source, _stopped_connectors(source.worker, self._store) as stopped:
            point = self._quiet_point()
            names = sorted(stopped)
            with self._target() as target:
                restoring = self._restore(point, target, replaces=True)
                last = restoring.run(resume=True, replication_factor=-1, compares=True, starts=False, execute=True)
            self._copied += last["written"]
            told = self._told(point, last, cut_over=True)
            if told["problems"]:
                return told
            starting = {"connectors": names, "sink_offsets": restoring.sink_offsets, "told": told}
            self._store.write_json(_STARTING, starting)
            stopped.clear()
        return self._start(starting)

    def _quiet_point(self) -> Point:
        """Copy until a round finds nothing new. Raises TidegateError that names the topics to which records still come."""
        ends: dict[str, int] = {}
        for _ in range(_LAST_ROUNDS):
            point, _, _ = self._round(goes_on=True)
            before, ends = ends, _ends(point)
            if before == ends:
                return point
        writing = ", ".join(sorted(name for name, end in ends.items() if before.get(name) != end))
        raise TidegateError(
            f"records still come to {writing}: stop who writes them, then move again. Connectors go on here"
        )

    def _start(self, noted: Mapping[str, Any]) -> dict[str, Any]:
        """Start the connectors there that a run which was cut off has not started yet, each whatever becomes of the others. Raises
        TidegateError where one can't be started: the next run begins here.
        """
        told: dict[str, Any] = noted["told"]
        with self._target() as target:
            if target.worker is not None:
                states = states_of(target.worker)
                waiting = {name for name in noted["connectors"] if states.get(name) in ("STOPPED", "UNASSIGNED", None)}
                left = _resumed(target.worker, waiting, noted.get("sink_offsets", {}))
                if left:
                    raise TidegateError(
                        f"the platform has moved, but {', '.join(sorted(left))} could not be started there: "
                        f"{next(iter(left.values()))}. Move again with --cut-over when the reason is gone"
                    )
        return told | {
            "changes": [*told["changes"], *([f"connectors {name}", "start"] for name in noted["connectors"])]
        }

    def _round(self, *, goes_on: bool) -> tuple[Point, int, dict[str, Any]]:
        """Copy what is new once. Returns the state of the platform here, the number of records, and the result of the restore."""
        before = read_point(self._store) if points(self._store) else None
        with self._source() as source:
            point, written = self._take(source)
        if before is not None:
            continue_point(point, before)
        with self._target() as target:
            restoring = self._restore(point, target, goes_on=goes_on)
            if before is None:  # other records must not be taken for copied ones later
                restoring.check(resume=False)
            self._require_own_records(target.admin)
            point.store(self._store)
            told = restoring.run(resume=True, replication_factor=-1, compares=False, starts=False, execute=True)
            self._store.write_json(_WRITTEN, _ends_there(target.admin, point.topics))
        self._copied += told["written"]
        return point, written, told

    def _require_own_records(self, admin: Admin) -> None:
        """Raises TidegateError where somebody else has written to the target since the last round: a count of its records tells
        where the next one goes on.
        """
        noted: dict[str, dict[str, int]] = self._store.read_json(_WRITTEN) or {}
        there = _ends_there(admin, noted)
        for topic, ends in noted.items():
            for number, end in ends.items():
                if (more := there.get(topic, {}).get(number, end) - end) > 0:
                    raise TidegateError(
                        f"{topic}-{number} of the target has {counted(more, 'record')} that did not come from here: stop who "
                        f"writes there, delete the topic there, and move again, which copies it anew"
                    )
        self._store.delete(_WRITTEN)  # a round that is killed does not tell how far it came

    def _take(self, source: Services, *, reads: bool = True) -> tuple[Point, int]:
        return take(source, self._store, (), full=False, reads=reads, progress_of=self._progress_of, tell=self._tell)

    def _restore(
        self, point: Point, target: Services, *, goes_on: bool = False, replaces: bool = False
    ) -> PlatformRestore:
        return PlatformRestore(
            self._store,
            point,
            target,
            whole=True,
            goes_on=goes_on,
            replaces=replaces,
            progress_of=self._progress_of,
        )

    def _told(
        self, point: Point, told: Mapping[str, Any], *, executed: bool = True, cut_over: bool = False
    ) -> dict[str, Any]:
        return {
            "executed": executed,
            "cut_over": cut_over,
            "topics": len(point.topics),
            "copied": self._copied,
            "changes": told["changes"],
            "problems": told["problems"],
        }


def _ends_there(admin: Admin, topics: Iterable[str]) -> dict[str, dict[str, int]]:
    """The ends of the partitions of those topics that the target has, by topic and number as text."""
    from broker.client import TopicPartition

    existing = set(admin.list_topics(internal=True)).intersection(topics)
    described = admin.describe_topics(sorted(existing)) if existing else {}
    ends = admin.end_offsets(
        [TopicPartition(name, p.partition) for name in described for p in described[name].partitions]
    )
    made: dict[str, dict[str, int]] = {}
    for tp, end in ends.items():
        made.setdefault(tp.topic, {})[str(tp.partition)] = end
    return made


def _ends(point: Point) -> dict[str, int]:
    """The sum of the ends of each topic's partitions: it grows with every record."""
    return {name: sum(partition.end for partition in topic.partitions) for name, topic in point.topics.items()}


@contextmanager
def _stopped_connectors(rest: Rest | None, store: BackupStore) -> Iterator[set[str]]:
    """Stop the connectors that run, and yield their names, with those that a run which was killed had stopped. Those that are
    left in the set at the end are started again.
    """
    if rest is None:
        yield set()
        return
    states = states_of(rest)
    running = {name for name, state in states.items() if state not in ("STOPPED", "PAUSED")}
    stopped = running | {name for name in store.read_json(_STOPPED) or () if states.get(name) == "STOPPED"}
    store.write_json(_STOPPED, sorted(stopped))
    try:
        for name in sorted(running):
            rest.call("PUT", path_of(name, "/stop"))
        _wait_stopped(rest, sorted(running))
        yield stopped
    finally:
        left = _resumed(rest, stopped)
        if left:
            store.write_json(_STOPPED, sorted(left))
        else:
            store.delete(_STOPPED)
    if left:
        raise TidegateError(f"{', '.join(sorted(left))} could not be started again here: {next(iter(left.values()))}")


def _resumed(
    rest: Rest, names: set[str], sink_offsets: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType({})
) -> dict[str, TidegateError]:
    """Start stopped connectors, those with new offsets there. Returns the errors of those that could not be started: the others
    start all the same.
    """
    left = {}
    for name in sorted(names):
        try:
            start_connector(rest, name, sink_offsets.get(name))
        except TidegateError as error:
            left[name] = error
    return left


def _wait_stopped(rest: Rest, names: Sequence[str]) -> None:
    deadline = time.monotonic() + _STOPPED_S
    for name in names:
        while rest.call("GET", path_of(name, "/status"))["tasks"]:
            if time.monotonic() > deadline:
                raise TidegateError(f"the tasks of {name} did not end within {_STOPPED_S:g} s: look at its status")
            time.sleep(_PAUSE_S)
