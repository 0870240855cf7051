"""Levels of loggers while the worker runs (KIP-495, KIP-976), in Log4j's words over Python's logging."""

from __future__ import annotations

import logging
import time
from typing import Final

__all__ = ["Loggers", "set_level"]

_LEVELS: Final = {
    "ALL": 1,
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
_ROOT: Final = "root"


def _word(level: int) -> str:
    """Log4j's word for a level: the finest that lets through no more."""
    return next((word for word, number in _LEVELS.items() if level <= number), "OFF")


def _known() -> dict[str, logging.Logger]:
    loggers = {
        name: logger_
        for name, logger_ in logging.root.manager.loggerDict.items()
        if isinstance(logger_, logging.Logger)
    }
    return {_ROOT: logging.root, **loggers}


def set_level(namespace: str, level: str) -> list[str]:
    """Set a namespace and all loggers below it; the names of those whose level is another now, in order.

    ``root`` (in any case) or the empty name is all of them. A logger that is not there yet is made.
    """
    known = _known()
    if namespace == "" or namespace.lower() == _ROOT:
        chosen = known
    else:
        chosen = {
            name: known_logger
            for name, known_logger in known.items()
            if name == namespace or name.startswith(f"{namespace}.")
        }
        chosen.setdefault(namespace, logging.getLogger(namespace))
    changed = []
    for name, known_logger in chosen.items():
        if _word(known_logger.getEffectiveLevel()) != level:
            changed.append(name)
        known_logger.setLevel(_LEVELS[level])
    return sorted(changed)


class Loggers:
    """The loggers of this process and when users changed them; ``levels`` are the namespaces that were set, in order."""

    def __init__(self) -> None:
        self.levels: dict[str, str] = {}
        self._modified: dict[str, int] = {}

    @staticmethod
    def is_level(level: str) -> bool:
        return level in _LEVELS

    def all(self) -> dict[str, dict[str, str | int | None]]:
        """Every logger that is not off, by name."""
        shown = {name: self._shown(name, known_logger) for name, known_logger in sorted(_known().items())}
        return {name: level for name, level in shown.items() if level["level"] != "OFF"}

    def level_of(self, name: str) -> dict[str, str | int | None] | None:
        name = _ROOT if name.lower() == _ROOT else name
        known = _known().get(name)
        return None if known is None else self._shown(name, known)

    def set(self, namespace: str, level: str) -> list[str]:
        """See ``set_level``."""
        changed = set_level(namespace, level)
        self.levels.pop(namespace, None)
        self.levels[namespace] = level
        self._modified.update(dict.fromkeys(changed, time.time_ns() // 1_000_000))
        return changed

    def _shown(self, name: str, stdlib_logger: logging.Logger) -> dict[str, str | int | None]:
        return {"level": _word(stdlib_logger.getEffectiveLevel()), "last_modified": self._modified.get(name)}
