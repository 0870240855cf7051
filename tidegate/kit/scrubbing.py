"""Hides secrets in text for people: traces, logs, headers of dead letters, answers to validations.

Work with secrets runs within ``knowing`` a ``Secrets``. Each ``config.Password`` created there, in this thread or one
that inherits from it (``logs.threads_inherit``), is registered, and ``scrubbed`` hides it.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final
from urllib.parse import quote, quote_plus

__all__ = ["HIDDEN", "Secrets", "knowing", "masked", "noted", "noted_config", "scrubbed", "scrubbed_event"]

HIDDEN: Final = "[hidden]"
_LONG: Final = 8
"""Shorter secrets are hidden only as whole words: a password 'a' must not hide every letter a."""
_HUGE: Final = 200
"""Longer secrets are searched as plain text: a pattern tries each position, which is quadratic if a secret repeats
itself.
"""
_MOST: Final = 1000
"""The number of secrets kept, because some tokens are renewed constantly: the oldest are dropped."""
_TELLING: Final = re.compile(
    r"(?:^|[._-])(?:password|passwd|pwd|secret|token|credentials?|passphrase|jaas[._-]config|user[._-]info|"
    r"(?:api|access|private|secret|shared)[._-]?key)$",
    re.IGNORECASE,
)
_INNER: Final = re.compile(r"(?i)\bpassword\s*=\s*\"?([^\"&;\s]+)|//[^/@:\s]*:([^/@\s]+)@")
"""Passwords within a value: of a JAAS line or a URL."""

_current: ContextVar[Secrets | None] = ContextVar("secrets", default=None)


class Secrets:
    """The secrets of one connector, task or request. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, None] = {}
        self._search: tuple[list[str], re.Pattern[str]] | None = None

    def add(self, value: str) -> None:
        """Hide this from now on, also as written in JSON, in a URL, in base64 and by ``repr``."""
        if not value.strip() or value == HIDDEN:
            return
        with self._lock:
            if value in self._values:
                return
            self._values[value] = None
            while len(self._values) > _MOST:
                del self._values[next(iter(self._values))]
            self._search = None

    def add_config(self, properties: Mapping[str, Any]) -> None:
        """Add the values of keys whose names suggest secrets, and passwords within URLs and JAAS lines."""
        for name, value in properties.items():
            if not isinstance(value, str):
                continue
            if _TELLING.search(name):
                self.add(value)
            for inner in _INNER.finditer(value):
                self.add(inner[1] or inner[2])

    def scrub(self, text: str) -> str:
        """The text with ``[hidden]`` for each secret."""
        search = self._search
        if search is None:
            with self._lock:
                search = self._search = _search_of(self._values)
        huge, pattern = search
        for form in huge:
            text = text.replace(form, HIDDEN)
        return pattern.sub(HIDDEN, text)


_NOTHING: Final = re.compile(r"(?!)")


def _search_of(values: Iterable[str]) -> tuple[list[str], re.Pattern[str]]:
    """The longest forms of secrets, and a pattern of the others."""
    forms = sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)
    short = [form for form in forms if len(form) <= _HUGE]
    patterns = [re.escape(form) if len(form) >= _LONG else rf"(?<!\w){re.escape(form)}(?!\w)" for form in short]
    return [form for form in forms if len(form) > _HUGE], re.compile("|".join(patterns)) if patterns else _NOTHING


def _forms(value: str) -> set[str]:
    encoded = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    written = {value, json.dumps(value)[1:-1], repr(value)[1:-1], encoded}
    return {
        form for form in written | {quote(value, "", errors="replace"), quote_plus(value, errors="replace")} if form
    }


_NO_SECRETS: Final = Secrets()


@contextmanager
def knowing(secrets: Secrets) -> Iterator[Secrets]:
    """Within this context, new passwords are registered in ``secrets``, and ``scrubbed`` and log lines hide them."""
    token = _current.set(secrets)
    try:
        yield secrets
    finally:
        _current.reset(token)


def noted(value: str) -> None:
    """Register a secret, if a ``knowing`` context is active."""
    secrets = _current.get()
    if secrets is not None:
        secrets.add(value)


def noted_config(properties: Mapping[str, Any]) -> None:
    """The same for the values that ``Secrets.add_config`` finds in a configuration."""
    secrets = _current.get()
    if secrets is not None:
        secrets.add_config(properties)


def masked(name: str, value: str) -> str:
    """The value of a setting for display: hidden if its name suggests a secret, and without passwords in a URL or a
    JAAS line, and without registered secrets.
    """
    if type(value) is not str:
        return value  # a Password hides itself
    if _TELLING.search(name):
        return HIDDEN
    return scrubbed(_INNER.sub(_without_inner, value))


def _without_inner(match: re.Match[str]) -> str:
    group = 1 if match[1] is not None else 2
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return match[0][:start] + HIDDEN + match[0][end:]


def scrubbed(text: str) -> str:
    """The text without registered secrets."""
    secrets = _current.get()
    return text if secrets is None else secrets.scrub(text)


def scrubbed_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """For structlog: a line without passwords, which ``json`` would write in clear text, and without registered
    secrets.
    """
    secrets = _current.get() or _NO_SECRETS
    return {name: _scrubbed_value(secrets, value) for name, value in event.items()}


def _scrubbed_value(secrets: Secrets, value: Any) -> Any:
    match value:
        case str() if hasattr(value, "reveal"):
            return HIDDEN
        case str():
            return secrets.scrub(value)
        case dict():
            return {name: _scrubbed_value(secrets, inner) for name, inner in value.items()}
        case list() | tuple():
            return [_scrubbed_value(secrets, inner) for inner in value]
        case BaseException():
            return secrets.scrub(str(value))
        case _:
            return value
