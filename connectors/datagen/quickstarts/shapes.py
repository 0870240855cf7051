"""Building blocks for quickstarts: Avro with ``arg.properties``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["CITIES", "NAMES", "Quickstart", "at", "between", "count", "of", "one_of", "record", "text"]

CITIES: Final = ("Harlingen", "Bremen", "Porto", "Gdansk", "Tallinn", "Bergen", "Galway")
NAMES: Final = tuple(
    f"{a} {b}" for a in ("Ada", "Bela", "Chidi", "Dora", "Emil") for b in ("Abe", "Brandt", "Costa", "Dahl", "Eze")
)


class Quickstart(NamedTuple):
    schema: Mapping[str, Any]
    key: str


def record(name: str, fields: Mapping[str, Any], options: Sequence[Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """A record of these fields. Where ``options`` are given, every value is one of them."""
    namespace, _, simple = name.rpartition(".")
    made: dict[str, Any] = {"type": "record", "name": simple, "namespace": namespace}
    made["fields"] = [{"name": name, "type": type_} for name, type_ in fields.items()]
    return made | ({"arg.properties": {"options": list(options)}} if options is not None else {})


def of(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "arg.properties": properties}


def between(kind: str, low: float, high: float) -> dict[str, Any]:
    return of(kind, range={"min": low, "max": high})


def count(kind: str, start: int = 0, step: int = 1, **more: Any) -> dict[str, Any]:
    return of(kind, iteration={"start": start, "step": step}, **more)


def one_of(*options: Any) -> dict[str, Any]:
    return of("string", options=list(options))


def text(regex: str) -> dict[str, Any]:
    return of("string", regex=regex)


def at(kind: str, logical: str, **properties: Any) -> dict[str, Any]:
    """A date or time."""
    return {"type": kind, "logicalType": logical, "arg.properties": properties}
