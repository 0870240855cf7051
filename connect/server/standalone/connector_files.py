"""Reads connector files as connect-standalone does: JSON in two shapes, or properties."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connect.stores import TargetState
from tidegate.kit.errors import UsageError
from tidegate.kit.properties import read_properties

__all__ = ["ConnectorFile", "read_connector_file"]

_INITIAL = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}


@dataclass(frozen=True, slots=True)
class ConnectorFile:
    """One connector to create; ``config`` has its name too."""

    name: str
    config: dict[str, str | None]
    initial: TargetState | None = None


def read_connector_file(path: Path) -> ConnectorFile:
    """Tried in this order, whatever the file's name: a JSON object of texts with ``name``; a JSON object with ``name``,
    ``config`` and optionally ``initial_state``, others ignored; properties.

    Raises UsageError.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        return _plain(path, dict(read_properties(path)))
    if not isinstance(document, dict):
        raise UsageError(f"{path} holds JSON that is no object: give a connector's configuration")
    if any(isinstance(value, dict | list) for value in document.values()):
        return _request(path, document)
    return _plain(path, {name: _text(value) for name, value in document.items()})


def _plain(path: Path, config: dict[str, str | None]) -> ConnectorFile:
    name = config.get("name")
    if not name:
        raise UsageError(f"Connector configuration at '{path}' is missing the mandatory 'name' configuration")
    return ConnectorFile(name, config)


def _request(path: Path, document: dict[str, Any]) -> ConnectorFile:
    name, config_ = document.get("name"), document.get("config")
    if not isinstance(config_, dict) or any(isinstance(value, dict | list) for value in config_.values()):
        raise UsageError(f"{path}: config must be an object whose values are texts")
    config = {key: _text(value) for key, value in config_.items()}
    inner = config.setdefault("name", name if isinstance(name, str) else None)
    if not isinstance(name, str) or not name:
        return _plain(path, config)
    if inner != name:
        raise UsageError(
            f"Connector name configuration in 'config' doesn't match the one specified in 'name' at '{path}'"
        )
    initial = document.get("initial_state")
    if initial is not None and str(initial).upper() not in _INITIAL:
        raise UsageError(f"{path}: initial_state {initial} must be one of {', '.join(_INITIAL)}")
    return ConnectorFile(name, config, _INITIAL[str(initial).upper()] if initial is not None else None)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
