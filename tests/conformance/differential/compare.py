"""Compares two responses: declared rules cover values that must differ, and every other difference is reported."""

from __future__ import annotations

import fnmatch
import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = ["Difference", "Rules"]

FILE: Final = Path(__file__).with_name("allowed.toml")
ABSENT: Final = "(absent)"


class Difference(NamedTuple):
    """A difference between two responses.

    ``path`` names fields, and items of a list by their key where a rule names one.
    """

    api: str
    version: int
    scenario: str
    path: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.scenario} {self.api} v{self.version} {self.path}: ours {self.ours!r}, Apache's {self.theirs!r}"


@dataclass(eq=False)
class _Rule:
    """One table of the file. Patterns are shell patterns; a version is a number or a range ``0-3``."""

    reason: str
    path: str = "*"
    api: str | list[str] = "*"
    versions: str = ""
    scenario: str = "*"
    ours: str | None = None
    """The value, as JSON."""
    theirs: str | None = None
    key: tuple[str, ...] = ()
    answer: str = ""
    """``good`` or ``bad``: what an API is never answered."""
    sometimes: bool = False
    """Whether the difference depends on timing, so that the rule need not be used in every run."""
    used: bool = field(default=False, compare=False)

    def covers(self, api: str, version: int, path: str) -> bool:
        apis = [self.api] if isinstance(self.api, str) else self.api
        if not any(fnmatch.fnmatchcase(api, pattern) for pattern in apis) or not fnmatch.fnmatchcase(path, self.path):
            return False
        low, _, high = self.versions.partition("-")
        return not self.versions or int(low) <= version <= int(high or low)

    def allows(self, difference: Difference) -> bool:
        return (
            self.covers(difference.api, difference.version, difference.path)
            and fnmatch.fnmatchcase(difference.scenario, self.scenario)
            and (self.ours is None or self.ours == _text(difference.ours))
            and (self.theirs is None or self.theirs == _text(difference.theirs))
        )

    def __str__(self) -> str:
        return f"{self.api} {self.versions} {self.path} {self.scenario}: {self.reason}"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


class Rules:
    """The rules in ``allowed.toml``: ``unequal`` values, lists ``keyed`` by fields, ``allowed`` differences, responses
    that ``never`` occur.

    Values may happen to be equal, and lists in the same order, so rules for these need not be used in every run.
    """

    def __init__(self, file: Path = FILE) -> None:
        data = tomllib.loads(file.read_text())
        self._unequal, self._keyed, self._allowed, self._never = (
            [_Rule(**rule | {"key": tuple(rule.get("key", ()))}) for rule in data.get(kind, ())]
            for kind in ("unequal", "keyed", "allowed", "never")
        )

        self._found: dict[tuple[int, str, int, str], _Rule | None] = {}

    def unused(self) -> list[str]:
        """The rules that no answer needed so far."""
        return [str(rule) for rule in (*self._allowed, *self._never) if not (rule.used or rule.sometimes)]

    def is_never(self, answer: str, api: str, version: int) -> bool:
        """Whether such a response of an API is declared never to occur."""
        matching = next((rule for rule in self._never if rule.answer == answer and rule.covers(api, version, "")), None)
        if matching is not None:
            matching.used = True
        return matching is not None

    def differences(self, api: str, version: int, scenario: str, ours: Any, theirs: Any) -> list[Difference]:
        """The differences that are not allowed."""
        if ours == theirs:
            return []
        differences = [
            Difference(api, version, scenario, path, left, right)
            for path, left, right in self._walk(api, version, "", ours, theirs)
        ]
        return [difference for difference in differences if not self._is_allowed(difference)]

    def _is_allowed(self, difference: Difference) -> bool:
        for rule in self._allowed:
            if rule.allows(difference):
                rule.used = True
                return True
        return False

    def _walk(self, api: str, version: int, path: str, ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
        if type(ours) is type(theirs) and ours == theirs:
            return
        if isinstance(ours, dict) and isinstance(theirs, dict):
            for name in ours.keys() | theirs.keys():
                inner = f"{path}.{name}" if path else name
                yield from self._walk(api, version, inner, ours.get(name, ABSENT), theirs.get(name, ABSENT))
        elif isinstance(ours, list) and isinstance(theirs, list):
            yield from self._walk_lists(api, version, path, ours, theirs)
        elif not self._may_be_unequal(api, version, path, ours, theirs):
            yield path, ours, theirs

    def _walk_lists(
        self, api: str, version: int, path: str, ours: list[Any], theirs: list[Any]
    ) -> Iterator[tuple[str, Any, Any]]:
        rule = self._first(self._keyed, api, version, path)
        if rule is None:
            if len(ours) != len(theirs):
                yield path, ours, theirs
                return
            for left, right in zip(ours, theirs, strict=True):
                yield from self._walk(api, version, path, left, right)
            return
        left_by, right_by = (_by_key(items, rule.key) for items in (ours, theirs))
        for name in {**left_by, **right_by}:
            inner = f"{path}[{name}]"
            left, right = left_by.get(name, ABSENT), right_by.get(name, ABSENT)
            if left is ABSENT or right is ABSENT:
                yield inner, left, right
            else:
                yield from self._walk(api, version, inner, left, right)

    def _may_be_unequal(self, api: str, version: int, path: str, ours: Any, theirs: Any) -> bool:
        rule = self._first(self._unequal, api, version, path)
        if rule is None or _sort_of(ours) != _sort_of(theirs):
            return False
        rule.used = True
        return True

    def _first(self, rules: list[_Rule], api: str, version: int, path: str) -> _Rule | None:
        key = (id(rules), api, version, path)
        if key not in self._found:
            self._found[key] = next((rule for rule in rules if rule.covers(api, version, path)), None)
        return self._found[key]


def _by_key(items: list[Any], key: tuple[str, ...]) -> Mapping[str, Any]:
    """Items by what tells them apart; of equal ones the first has the plain key, the next a number behind it."""
    by_key: dict[str, Any] = {}
    times: Counter[str] = Counter()
    for item in items:
        name = ",".join(str(item.get(part)) for part in key) if key and isinstance(item, dict) else _text(item)
        by_key[f"{name}#{times[name]}" if times[name] else name] = item
        times[name] += 1
    return by_key


def _sort_of(value: Any) -> str:
    """The property that unequal values must still share: null, empty or not; negative or not."""
    if value is None or value in ("", b""):
        return "nothing"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return type(value).__name__
    return "below zero" if value < 0 else "number"
