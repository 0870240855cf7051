"""Regular expressions that members subscribe to, in RE2's syntax: what clients of Kafka write for its brokers.

RE2 matches in linear time, so an expression from outside cannot keep the broker busy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from broker.errors import InvalidRegularExpression

__all__ = ["Resolved", "check", "resolve"]


@dataclass(frozen=True, slots=True)
class Resolved:
    """The topics that an expression matched, with the metadata's version and the time of the look-up (ms since 1970)."""

    topics: frozenset[str]
    version: int
    at_ms: int


def _compile(expression: str) -> Any:
    import re2  # slow to import, and few groups use it

    options = re2.Options()
    options.log_errors = False
    return re2.compile(expression, options=options)


def check(expression: str) -> None:
    """Raises InvalidRegularExpression."""
    import re2

    try:
        _compile(expression)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else error
        raise InvalidRegularExpression(
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {reason}."
        ) from error


def resolve(
    expressions: Iterable[str], names: Iterable[str], may_describe: Callable[[str], bool] | None
) -> dict[str, frozenset[str]]:
    """The names each expression matches as a whole. An expression that is not one matches none."""
    import re2

    every = list(names)
    found: dict[str, frozenset[str]] = {}
    for expression in expressions:
        try:
            compiled = _compile(expression)
        except (re2.error, UnicodeError):
            found[expression] = frozenset()
            continue
        matched = (name for name in every if compiled.fullmatch(name))
        found[expression] = frozenset(name for name in matched if may_describe is None or may_describe(name))
    return found
