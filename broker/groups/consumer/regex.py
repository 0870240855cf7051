"""Regular expressions that members subscribe to, in RE2's syntax, as for Kafka's brokers.

RE2 matches in linear time, so that a client's expression can't block the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from broker.errors import InvalidRegularExpression
from tidegate.kit.linear_regex import PatternError, compiled

__all__ = ["Resolved", "check", "resolve"]


@dataclass(frozen=True, slots=True)
class Resolved:
    """The topics that an expression matched, with the metadata's version and the time of the match (ms since 1970)."""

    topics: frozenset[str]
    version: int
    at_ms: int


def check(expression: str) -> None:
    """Raises InvalidRegularExpression."""
    try:
        compiled(expression)
    except PatternError as error:
        raise InvalidRegularExpression(
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {error}."
        ) from error


def resolve(
    expressions: Iterable[str], names: Iterable[str], may_describe: Callable[[str], bool] | None
) -> dict[str, frozenset[str]]:
    """The names that each expression matches as a whole. An invalid expression matches none."""
    every = list(names)
    result: dict[str, frozenset[str]] = {}
    for expression in expressions:
        try:
            pattern = compiled(expression)
        except PatternError:
            result[expression] = frozenset()
            continue
        matched = (name for name in every if pattern.fullmatch(name))
        result[expression] = frozenset(name for name in matched if may_describe is None or may_describe(name))
    return result
