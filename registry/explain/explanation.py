"""One incompatibility in plain words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Explanation", "Sides"]


@dataclass(frozen=True, slots=True)
class Sides:
    """How the two schemas are called in an explanation: the one that reads, and the one that data was written with."""

    reader: str
    writer: str
    forward: bool
    """Whether it is an old schema that reads new data; then only the new schema, the writer, can still be changed."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """``where`` is a field in dotted form, ``rule`` Confluent's name of the incompatibility, ``path`` its path."""

    where: str
    problem: str
    fix: str
    rule: str
    path: str
    against: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
