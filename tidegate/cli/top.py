"""``tidegate top``: connectors and components, refreshed in the terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tidegate.cli.connectors.progress import is_unfinished, summary_of
from tidegate.cli.connectors.reach import connect_options, rest_of
from tidegate.cli.credentials import credentials_for
from tidegate.cli.options import context_in_use, json_option, print_json, table_of
from tidegate.clients.broker_metrics import records_in
from tidegate.clients.summary import summaries_of
from tidegate.kit.errors import TidegateError
from tidegate.state import State, component_state, read_state, with_memory

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from tidegate.clients.rest import Rest

__all__ = ["top"]

_WINDOW_S: Final = 10.0
"""Rates are over this time, or since ``top`` started."""
_ONCE_S: Final = 1.0


@click.command()
@click.option(
    "-d",
    "--interval",
    type=click.FloatRange(min=0.2),
    default=2.0,
    show_default=True,
    help="Seconds between refreshes.",
)
@click.option("--once", is_flag=True, help="Print once and end, as it also does where the output is no terminal.")
@connect_options
@json_option
def top(interval: float, once: bool, data: Path, connect: str | None, as_json: bool) -> None:
    """Watch connectors and components: rows per second, lag, errors, dead letters, memory. Ctrl-C ends it.

    Errors, records left out and dead letters count from the start of each task. The memory of a connector is its tasks'
    share of the processes that they run in. Components are shown for a platform on this machine.

    Example: tidegate top --interval 5
    """
    watched = _Watched(data, connect)
    if as_json or once or not sys.stdout.isatty():
        watched.look()
        time.sleep(_ONCE_S)
        told = watched.look()
        if as_json:
            print_json(told)
        else:
            from rich.console import Console

            Console(width=None if sys.stdout.isatty() else 200).print(_drawn(told))
        return
    from rich.live import Live

    with contextlib.suppress(KeyboardInterrupt), Live(screen=True, auto_refresh=False) as live:
        while True:
            try:
                frame: RenderableType = _drawn(watched.look())
            except TidegateError as error:
                frame = f"{datetime.now(tz=UTC):%H:%M:%S}  {error}"
            live.update(frame, refresh=True)
            time.sleep(interval)


class _Watched:
    """Asks the worker, the broker and the system, and derives rates from what they counted."""

    def __init__(self, data: Path, connect: str | None) -> None:
        self._data, self._connect = data, connect
        self._rest: Rest | None = None
        self._samples: dict[str, deque[tuple[float, float]]] = defaultdict(deque)

    def look(self) -> dict[str, Any]:
        """The document that ``--json`` prints. Raises TidegateError if nothing answers."""
        notes: list[str] = []
        state = None if self._connect or context_in_use() is not None else read_state(self._data)
        components = self._components(state) if state is not None and state.running else []
        connectors: list[dict[str, Any]] = []
        if not components or any(component["name"] == "connect" for component in components):
            try:
                self._rest = self._rest or rest_of(self._data, self._connect)
                connectors = summaries_of(self._rest, notes.append)
            except TidegateError as error:
                self._rest = None  # a worker that starts again may have another address
                if not components:
                    raise
                notes.append(str(error))
        for summary in connectors:
            if summary["rows"] is not None:
                measured = self._rate(f"connector {summary['name']}", summary["rows"])
                summary["rows_per_s"] = summary["rows_per_s"] if measured is None else measured
        return {
            "time": datetime.now(tz=UTC).isoformat(timespec="seconds"),
            "connectors": connectors,
            "components": components,
            "notes": notes,
        }

    def _components(self, state: State) -> list[dict[str, Any]]:
        made = []
        for name, component in state.components.items():
            measured = with_memory(component)
            metrics = component["addresses"].get("broker-metrics") if name == "broker" else None
            records = None if metrics is None else records_in(metrics, credentials_for(self._data))
            made.append(
                {
                    "name": name,
                    "state": component_state(component),
                    "pid": component["pid"],
                    "restarts": component["restarts"],
                    "records_per_s": None if records is None else self._rate(name, records),
                    "memory_bytes": round(measured["memory_mb"] * 1e6),
                }
            )
        return made

    def _rate(self, name: str, total: float) -> float | None:
        """Per second, over the window; None for the first sample, and for one after a restart."""
        now, samples = time.monotonic(), self._samples[name]
        if samples and total < samples[-1][1]:
            samples.clear()
        samples.append((now, total))
        while len(samples) > 2 and now - samples[0][0] > _WINDOW_S:
            samples.popleft()
        began, first = samples[0]
        return round((total - first) / (now - began), 1) if len(samples) > 1 else None


def _drawn(told: Mapping[str, Any]) -> RenderableType:
    from rich.console import Group

    connectors = [
        [
            summary["name"],
            summary["type"],
            _state(summary),
            summary["rows_per_s"],
            summary["rows"],
            summary["lag"],
            _bad(summary["errors"]),
            _bad(summary["skipped"]),
            _bad(summary["dead_letters"]),
            _megabytes(summary["memory_bytes"]),
        ]
        for summary in told["connectors"]
    ]
    columns = ["connector", "type", "tasks", "rows/s", "rows", "lag", "errors", "skipped", "dead letters", "memory"]
    parts: list[RenderableType] = [told["time"], "", table_of(columns, connectors)]
    from rich.text import Text

    parts += [
        Text(f"{summary['name']}: {summary_of(progress)}")
        for summary in told["connectors"]
        for progress in summary["progress"]
        if is_unfinished(progress)
    ]
    if told["components"]:
        rows = [
            [
                c["name"],
                c["state"],
                str(c["pid"] or "-"),
                c["restarts"],
                c["records_per_s"],
                _megabytes(c["memory_bytes"]),
            ]
            for c in told["components"]
        ]
        parts += ["", table_of(["component", "state", "pid", "restarts", "records/s", "memory"], rows)]
    return Group(*parts, *told["notes"])


def _state(summary: Mapping[str, Any]) -> Text:
    from rich.text import Text

    counted = ", ".join(f"{count} {state}" for state, count in sorted(summary["tasks"].items()))
    failed = "FAILED" in (summary["state"], *summary["tasks"])
    return Text(counted or summary["state"], style="red" if failed else "")


def _bad(count: int | None) -> Any:
    from rich.text import Text

    return Text(f"{count:,}", style="yellow", justify="right") if count else count


def _megabytes(size: int | None) -> str | None:
    return None if size is None else f"{size / 1e6:.0f} MB"
