"""Reads connector files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tidegate.kit.errors import UsageError
from tidegate.kit.properties import read_properties

__all__ = ["read_connector"]


def read_connector(path: Path) -> tuple[str, dict[str, Any]]:
    """A connector file as (name, config): ``{"name", "config"}`` or a bare config with a name in it; - is standard input.

    A file without a name takes its own (``orders.json`` is ``orders``).
    """
    if path.suffix == ".properties":
        config: Any = read_properties(path)
    else:
        try:
            config = json.loads(sys.stdin.read() if str(path) == "-" else path.read_text())
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from error
        except json.JSONDecodeError as error:
            raise UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise UsageError(f'{path} holds no connector: give an object of keys, or {{"name": ..., "config": {{...}}}}')
    name = config.get("name")
    if isinstance(config.get("config"), dict):
        config = config["config"]
    name = name or config.get("name") or (path.stem if str(path) != "-" else None)
    if not name:
        raise UsageError("standard input holds a connector without a name: add one")
    return str(name), config
