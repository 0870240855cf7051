"""The root of every error Tidegate raises, arranged by what the caller should do.

TidegateError
├── RetriableError      try the same thing again: a timeout, a leader election, a locked row
├── UsageError          the caller's input is wrong: change it
│   ├── ConfigError     one or more configuration keys are invalid: every problem is listed
│   └── MissingExtra    a package is not installed: the message says what to install
└── FatalError          nothing the caller can do now: a corrupt file, a full disk

Each package's ``errors.py`` has subclasses with their wire codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

__all__ = [
    "ConfigError",
    "FatalError",
    "MissingExtra",
    "Problem",
    "RetriableError",
    "TidegateError",
    "UsageError",
]


class TidegateError(Exception):
    """An error whose message is for users: it names the thing, the value and what would be right.

    ``http_status`` is the status of REST answers; ``retriable`` says whether the same request may succeed later.
    """

    http_status: ClassVar[int] = 500
    retriable: ClassVar[bool] = False

    @property
    def message(self) -> str:
        return str(self)


class RetriableError(TidegateError):
    """The same request may succeed later."""

    http_status = 503
    retriable = True


class UsageError(TidegateError):
    """The request itself has to change before it can succeed."""

    http_status = 400


class FatalError(TidegateError):
    """Neither waiting nor another request helps: somebody has to look."""


class MissingExtra(UsageError):
    """A feature was asked for whose package is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs a package that is not installed: pip install 'tidegate[{extra}]'")
        self.extra = extra


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one configuration key."""

    key: str
    message: str


class ConfigError(UsageError):
    """One or more configuration keys are wrong; ``problems`` has them all, in the order of the keys."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problem.message for problem in self.problems))
