"""Reads and writes connector files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tidegate.kit.errors import UsageError
from tidegate.kit.files import write_whole
from tidegate.kit.properties import read_properties

__all__ = ["as_text", "file_of", "files_in", "read_connector", "read_connectors", "write_connector"]

_ENDINGS: Final = (".json", ".properties")


def read_connector(path: Path) -> tuple[str, dict[str, Any]]:
    """A connector file as (name, config): ``{"name", "config"}`` or a bare config with a name in it; - is standard input.

    A file without a name takes its own (``orders.json`` is ``orders``).
    """
    document = _document(path)
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
    return _as_connector(path, document)


def read_connectors(paths: Sequence[Path]) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The connectors of files and folders by name, each with its file. A file may contain a list of them.

    Raises UsageError if two have one name.
    """
    read: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in paths:
        for file in files_in(path) if path.is_dir() else [path]:
            document = _document(file)
            for entry in document if isinstance(document, list) else [document]:
                name, config = _as_connector(file, entry)
                if name in read:
                    raise UsageError(f"{read[name][0]} and {file} both hold a connector {name}: give one of them")
                read[name] = file, config
    return read


def files_in(folder: Path) -> list[Path]:
    """The connector files of a folder, without its subfolders and hidden files."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}") from error
    return [path for path in entries if path.suffix in _ENDINGS and not path.name.startswith(".") and path.is_file()]


def _document(path: Path) -> Any:
    if path.suffix == ".properties":
        return read_properties(path)
    try:
        return json.loads(sys.stdin.read() if str(path) == "-" else path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error


_MEMBERS: Final = frozenset({"name", "config", "initial_state", "tasks", "type"})
"""Of a connector in JSON: as ``POST /connectors`` takes it, and ``GET /connectors/{name}`` shows it."""


def _as_connector(path: Path, config: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(config, dict):
        raise UsageError(f'{path} holds no connector: give an object of keys, or {{"name": ..., "config": {{...}}}}')
    name = config.get("name")
    if isinstance(config.get("config"), dict):
        if unknown := sorted(set(config) - _MEMBERS):
            raise UsageError(
                f"{path}: unknown member {unknown[0]!r} beside config; there are {', '.join(sorted(_MEMBERS))}"
            )
        config = config["config"]
    name = name or config.get("name") or (path.stem if str(path) != "-" else None)
    if not name:
        raise UsageError("standard input holds a connector without a name: add one")
    return str(name), config


def as_text(value: Any) -> str | None:
    """A value of a configuration as a worker stores it; null is none."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def file_of(name: str, folder: Path) -> Path:
    """The file of a connector in a folder: any name fits into a file name."""
    stem = quote(name, safe=" ")
    return folder / f"{'%2E' + stem[1:] if stem.startswith('.') else stem}.json"


def write_connector(path: Path, document: Mapping[str, Any]) -> None:
    """Write a file that only its owner may read: a configuration may contain passwords. Raises UsageError."""
    try:
        write_whole(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n", mode=0o600)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
