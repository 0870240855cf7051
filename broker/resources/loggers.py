"""The loggers of this process, which Kafka's tools can list and change (``ConfigResource.Type`` BROKER_LOGGER,
KIP-412).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from broker.errors import InvalidConfiguration, InvalidRequest
from broker.resources.entries import ConfigEntry, Operation, Source
from tidegate.kit.config import Key, KeyType

__all__ = ["change_levels", "logger_entries"]

_ROOT: Final = "root"
_LEVELS: Final = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}


def logger_entries() -> list[ConfigEntry]:
    """The effective level of each logger: its own, or the nearest ancestor's."""
    return [
        ConfigEntry(Key(name, KeyType.STRING, None, ""), (), settled=_shown(name), settled_source=Source.LOGGER)
        for name in [_ROOT, *sorted(_names())]
    ]


def _names() -> list[str]:
    return [name for name, item in logging.Logger.manager.loggerDict.items() if isinstance(item, logging.Logger)]


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == _ROOT else name)


def _shown(name: str) -> str:
    level = _logger(name).getEffectiveLevel()
    return next((word for word, number in reversed(_LEVELS.items()) if number <= level), "TRACE")


def change_levels(changes: Iterable[tuple[str, int, str | None]], *, validate_only: bool) -> None:
    """Set levels, or with DELETE inherit them again; until the process ends.

    If it raises InvalidConfiguration or InvalidRequest, it has changed nothing.
    """
    partitions: list[tuple[str, int]] = []
    for name, operation, value in changes:
        if operation not in (Operation.SET, Operation.DELETE):
            raise InvalidRequest(f"The level of {name} can be set (0) and deleted (1), not changed by {operation}.")
        if name != _ROOT and name not in _names():
            raise InvalidConfiguration(f"There is no logger {name!r}.")
        if operation == Operation.DELETE:
            if name == _ROOT:
                raise InvalidRequest("The level of the root logger cannot be deleted.")
            partitions.append((name, logging.NOTSET))
            continue
        level = _LEVELS.get(value or "")
        if level is None:
            raise InvalidConfiguration(f"{value} is no level for {name}: {', '.join(_LEVELS)} are.")
        partitions.append((name, level))
    if not validate_only:
        for name, level in partitions:
            _logger(name).setLevel(level)
