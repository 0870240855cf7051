"""The troubles of the platform, worst first, each with its remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from tidegate.console.platform import ComponentLine, Disk
from tidegate.console.summaries import ConnectorSummary
from tidegate.kit.texts import counted

__all__ = ["Trouble", "troubles_of"]

_ENDS_SOON_DAYS: Final = 21
_MOST_NAMES: Final = 3
_ORDER: Final = {"error": 0, "warning": 1}


@dataclass(frozen=True)
class Trouble:
    """One thing that is wrong."""

    severity: str
    """error: something does not work; warning: it will not, or records were left out."""
    title: str
    cause: str
    remedy: str
    link: str = ""
    link_text: str = ""


def troubles_of(
    connectors: Iterable[ConnectorSummary],
    components: Iterable[ComponentLine] = (),
    silent_faces: Sequence[tuple[str, str]] = (),
    disk: Disk | None = None,
    certificate_days: float | None = None,
    groups: Mapping[str, int] | None = None,
    settled: Collection[str] = (),
) -> list[Trouble]:
    """``silent_faces`` are the faces that do not answer, each with the error's message; ``groups`` those whose lag grows, with it.

    ``settled`` are connectors whose dead letters were all sent back.
    """
    connectors = list(connectors)
    made = [
        *_of_faces(silent_faces),
        *_of_components(components),
        *_of_disk(disk),
        *_of_certificate(certificate_days),
        *(trouble for summary in connectors for trouble in _of_connector(summary, summary.name in settled)),
        *_of_groups(groups or {}, {f"connect-{summary.name}" for summary in connectors}),
    ]
    return sorted(made, key=lambda trouble: _ORDER[trouble.severity])


def _of_faces(silent: Iterable[tuple[str, str]]) -> Iterator[Trouble]:
    for name, message in silent:
        yield Trouble("error", f"{name} does not answer", message, "See that it runs, and read its log.")


def _of_components(components: Iterable[ComponentLine]) -> Iterator[Trouble]:
    for component in components:
        if component.state == "late":
            yield Trouble(
                "error",
                f"{component.name} gives no sign of life",
                f"It has been silent for {component.silent_s or 0:.0f} s. The supervisor restarts it if it stays so.",
                f"Read logs/{component.name}.log in the platform's folder.",
            )
        elif component.state == "starting":
            yield Trouble(
                "error",
                f"{component.name} is starting",
                f"It has been restarted {counted(component.restarts, 'time')}."
                if component.restarts
                else "It is not ready yet.",
                f"If it stays so, read logs/{component.name}.log in the platform's folder.",
            )


def _of_disk(disk: Disk | None) -> Iterator[Trouble]:
    if disk is not None and disk.is_nearly_full:
        yield Trouble(
            "error",
            "The disk is nearly full",
            f"{disk.free_bytes / 1e9:.1f} GB of {disk.total_bytes / 1e9:.0f} GB are free on the disk of {disk.folder}.",
            "Free space, or shorten the retention of large topics.",
        )


def _of_certificate(days: float | None) -> Iterator[Trouble]:
    if days is not None and days < _ENDS_SOON_DAYS:
        ended = days <= 0
        yield Trouble(
            "error" if ended else "warning",
            "The certificate has expired" if ended else f"The certificate expires in {counted(int(days), 'day')}",
            "Clients refuse an expired certificate.",
            "Run `tidegate secure renew`, or replace the key store.",
        )


def _of_groups(groups: Mapping[str, int], of_connectors: Collection[str]) -> Iterator[Trouble]:
    """Without those of connectors, whose lag is told with the connector."""
    for name, lag in groups.items():
        if name not in of_connectors:
            yield Trouble(
                "warning",
                f"The lag of group {name} grows",
                f"It is {lag:,} records behind, and has fallen further behind for three minutes.",
                "Add members, up to the number of partitions, or see why they are slow.",
                f"/groups/{quote(name, safe='')}",
                "Open the group",
            )


def _of_connector(summary: ConnectorSummary, is_settled: bool) -> Iterator[Trouble]:
    page = f"/connectors/{quote(summary.name, safe='')}"
    if summary.state == "FAILED":
        failed = summary.tasks.get("FAILED", 0)
        which = f": {failed} of {counted(sum(summary.tasks.values()), 'task')}" if failed else ""
        yield Trouble(
            "error",
            f"Connector {summary.name} has failed{which}",
            summary.sentence or "It gave no reason.",
            summary.remedy or "Restart it, and read its log.",
            page,
            "Open the connector",
        )
    skipped, letters = summary.totals["skipped"], summary.totals["dead_letters"]
    if skipped and letters and not is_settled:
        yield Trouble(
            "warning",
            f"{counted(letters, 'dead letter')} of connector {summary.name}",
            f"It left out {counted(skipped, 'record')} since its tasks started.",
            "Look at the causes, correct the records or the sink, and send them back.",
            f"/dead-letters/{quote(summary.name, safe='')}",
            "Open the dead letters",
        )
    elif skipped and not letters:
        yield Trouble(
            "warning",
            f"Connector {summary.name} left out {counted(skipped, 'record')}",
            "None of them is in its dead letter queue." if summary.queue else "It keeps none of them.",
            "Its log says why it left them out."
            if summary.queue
            else "Give it a dead letter queue (errors.deadletterqueue.topic.name), so that they can be corrected and sent back.",
            page,
            "Open the connector",
        )
    if missing := summary.totals["missing_topics"]:
        yield Trouble(
            "warning",
            f"Connector {summary.name} waits for {counted(len(missing), 'topic')}",
            f"There is no topic {' or '.join(missing[:_MOST_NAMES])}{' or others' if len(missing) > _MOST_NAMES else ''}.",
            "Correct the name in its topics, or create the topic.",
            page,
            "Open the connector",
        )
    if summary.lag_grows:
        yield Trouble(
            "warning",
            f"The lag of connector {summary.name} grows",
            f"It is {summary.totals['lag']:,} records behind, and has fallen further behind for three minutes.",
            "Raise tasks.max up to the number of partitions, or see why the target is slow.",
            page,
            "Open the connector",
        )
