"""Writes Prometheus' text format in chunks: a scrape may have a sample for each of ten thousand partitions.

``prometheus_client`` takes about 10 µs for a sample and cannot pause in between; the broker has one thread for
everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Family", "Sample", "lines"]


class Sample(NamedTuple):
    value: float
    labels: tuple[tuple[str, str], ...] = ()


class Family(NamedTuple):
    """One metric.

    ``kind`` is Prometheus' type: counter, gauge, or untyped if values of several kinds share the name.
    """

    name: str
    doc: str
    kind: str
    samples: Iterable[Sample]


def lines(family: Family) -> Iterable[str]:
    """The lines of a family, each with a line end."""
    yield f"# HELP {family.name} {family.doc}\n# TYPE {family.name} {family.kind}\n"
    name = family.name
    for value, labels in family.samples:
        if labels:
            shown = ",".join([f'{label}="{_escaped(text)}"' for label, text in labels])
            yield f"{name}{{{shown}}} {value}\n"
        else:
            yield f"{name} {value}\n"


def _escaped(text: str) -> str:
    if "\\" not in text and '"' not in text and "\n" not in text:
        return text
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
