"""Numbers on pages that come from the code are those in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.pages import ROOT, pages
from tests.support.reference import generate
from tidegate.kit.config import keys_of

S, MINUTE, HOUR, MIB = 1.0, 60.0, 3600.0, 1024 * 1024

SAID = [
    ("how-to/operating.md", "pauses that grow from {} to 10 s", "tidegate:_FIRST_BACKOFF_S", S),
    ("how-to/operating.md", "pauses that grow from 0.2 to {} s", "tidegate:_LAST_BACKOFF_S", S),
    ("how-to/operating.md", "silent for {} s is `late`", "tidegate:_LATE_S", S),
    ("how-to/operating.md", "After {} s the supervisor ends it", "tidegate:DEFAULT_WATCHDOG_S", S),
    ("how-to/kafka-client.md", "Up to {} finished batches per partition are in flight", "broker:MOST_IN_FLIGHT", 1),
    ("how-to/triggers.md", "so many calls side by side, {} at most", "events:MAX_PARTITIONS", 1),
    ("how-to/triggers.md", "1 s, 2 s, 4 s and so on, {} of them", "events:MAX_RETRIES", 1),
    ("how-to/writing-connectors.md", "Keep a batch under {} MiB", "connect:MAX_BATCH_BYTES", MIB),
    ("how-to/events-access.md", "is owed {} events at most", "events:MAX_PENDING", 1),
    ("how-to/events-access.md", "one publish request holds {} MiB", "events:MAX_REQUEST_BYTES", MIB),
    ("how-to/security.md", "a connection with {} unanswered requests", "broker:_MOST_PENDING", 1),
    ("how-to/security.md", "or {} MiB of unsent answers", "broker:_MOST_UNSENT_BYTES", MIB),
    ("how-to/connectors/jdbc-sink.md", "every {} ms", "connectors.jdbc:_LINGER_S", 1e-3),
    ("reference/connect-rest-api.md", "has {} seconds", "connect:CHECK_TIMEOUT_S", S),
    ("explanation/connect-tasks.md", "sinks use {} MiB", "connect:_MAX_FETCH_BYTES", MIB),
    ("explanation/events.md", "same id within {} hours", "events:KEPT_MS", HOUR * 1000),
    ("explanation/events.md", "a lease of {} s", "events:_LEASE_MS", 1000),
    ("explanation/events.md", "From {} sessions on", "events:GATHER_FROM", 1),
    ("explanation/events.md", "{} µs for each session", "events:GATHERING_S", 1e-6),
    ("explanation/events.md", "for each session, at most {} ms)", "events:MOST_GATHERING_S", 1e-3),
]
"""A page, its words with ``{}`` for the number, the constant (package and name, wherever it is), and the unit."""

WORDS = {"three": 3, "five": 5, "nine": 9, "ten": 10}


@cache
def constants(package: str) -> dict[str, list[float]]:
    """Module-level numbers of a package, by their names."""
    constants_found: dict[str, list[float]] = {}
    for path in Path(ROOT, *package.split(".")).rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            target = (
                node.target
                if isinstance(node, ast.AnnAssign)
                else node.targets[0]
                if isinstance(node, ast.Assign)
                else None
            )
            if isinstance(target, ast.Name) and (number := _number(node.value)) is not None:
                constants_found.setdefault(target.id, []).append(number)
    return constants_found


def _number(node: ast.expr | None) -> float | None:
    """The value of a number, or of a product of numbers."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _number(node.left), _number(node.right)
        return None if left is None or right is None else left * right
    return None


def said(page: str, words: str) -> float:
    text = " ".join((ROOT / "docs" / page).read_text().split())
    before, after = map(re.escape, words.split("{}"))
    match = re.search(rf"{before}([\w.,]+){after}", text, re.IGNORECASE)
    assert match, f"{page} does not say {words!r} any more"
    return WORDS.get(match[1].lower()) or float(match[1].replace(",", ""))


@pytest.mark.parametrize(("page", "words", "constant", "unit"), SAID, ids=lambda value: str(value).replace("/", "-"))
def test_a_number_is_that_of_the_code(page: str, words: str, constant: str, unit: float) -> None:
    package, _, name = constant.partition(":")
    values = constants(package).get(name, [])
    assert values, f"{package} has no constant {name}"
    assert any(said(page, words) * unit == pytest.approx(value) for value in values), f"{name} is {values}"


UNITS = {
    "ms": 1.0,
    "s": 1000.0,
    "minutes": 60_000.0,
    "hours": 3_600_000.0,
    "days": 86_400_000.0,
    "KiB": 1024.0,
    "MiB": MIB,
    "MB": 1e6,
}
_DEFAULT = re.compile(
    r"`([a-z][\w.]*\.(?:ms|bytes|sec))`[^`()]{0,25}\((\d[\d.,]*) (ms|s|minutes|hours|days|KiB|MiB|MB)\b[^)]*\)"
)


def defaults() -> Iterator[tuple[str, str, float]]:
    """``key`` (number unit) in prose, where the key is declared: its default."""
    for page in pages():
        for key, number, unit in _DEFAULT.findall(" ".join(page.read_text().split())):
            yield str(page.relative_to(ROOT)), key, float(number.replace(",", "")) * UNITS[unit]


def test_defaults_in_prose_are_the_declared_ones() -> None:
    declared: dict[str, set[float]] = {}
    for cls in generate.config_classes().values():
        for key in keys_of(cls):
            if isinstance(key.default, int | float):
                declared.setdefault(key.name, set()).add(float(key.default))
    compared = [(page, key, value) for page, key, value in defaults() if key in declared]
    assert len(compared) >= 10
    wrong = [
        f"{page}: {key} is {declared[key]}, not {value:g}"
        for page, key, value in compared
        if value not in declared[key]
    ]
    assert wrong == []
