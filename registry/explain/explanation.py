"""One incompatibility in plain words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Explanation", "Sides"]


@dataclass(frozen=True, slots=True)
class Sides:
    """The names of the two schemas in an explanation: the reader, and the writer of the data."""

    reader: str
    writer: str
    forward: bool
    """Whether an old schema reads new data. Then only the new schema, the writer, can still be changed."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """``where`` is a field in dotted form, ``rule`` is Confluent's name of the incompatibility, ``path`` its path."""

    where: str
    problem: str
    fix: str
    rule: str
    path: str
    against: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
