"""Placeholders in configurations, ``${provider:[path:]key}``, replaced when a connector or task is started (KIP-297).

Configurations are stored and shown with the placeholders; their values never reach the log or the REST API.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from tidegate.kit.errors import UsageError
from tidegate.kit.file_access import trusted_files
from tidegate.kit.properties import read_properties
from tidegate.kit.scrubbing import noted

__all__ = ["resolved"]

_PLACEHOLDER: Final = re.compile(r"\$\{([^}:]*):(?:([^}]*):)?([^}:]*)\}")
_SECRET_FROM: Final = 8
"""A value with at least this many characters is a secret, in any key: it was put where only the provider has it.

A shorter one, such as a port, is a secret only if the key's name suggests it.
"""
_Provider = Callable[[str, str, Mapping[str, str]], str | None]
"""path, key, the provider's parameters -> the value; None if there is none"""


def resolved(worker: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with the placeholders of the worker's ``config.providers`` replaced.

    A placeholder of an unknown provider, or without a value, stays unchanged, as in Kafka Connect. Raises UsageError
    for an unknown provider class or an unreadable file.
    """
    providers = _configured(worker)
    if not providers:
        return dict(properties)

    def value(match: re.Match[str]) -> str:
        name, path, key = match.groups()
        if name not in providers:
            return match[0]
        provide, parameters = providers[name]
        # The worker's configuration has said which files a connector may take secrets from, without a right to read them.
        with trusted_files() if parameters.get("allowed.paths") else nullcontext():
            behind = provide(path or "", key, parameters)
        if behind is not None and len(behind) >= _SECRET_FROM:
            noted(behind)
        return match[0] if behind is None else behind

    return {name: _PLACEHOLDER.sub(value, text) for name, text in properties.items()}


def _configured(worker: Mapping[str, str]) -> dict[str, tuple[_Provider, dict[str, str]]]:
    providers: dict[str, tuple[_Provider, dict[str, str]]] = {}
    for name in (part.strip() for part in worker.get("config.providers", "").split(",")):
        if not name:
            continue
        prefix = f"config.providers.{name}."
        class_name = worker.get(f"{prefix}class", "").rpartition(".")[2]
        if class_name not in _PROVIDERS:
            known = ", ".join(_PROVIDERS)
            raise UsageError(f"Invalid value {class_name!r} for configuration {prefix}class: must be one of {known}")
        start = f"{prefix}param."
        providers[name] = (
            _PROVIDERS[class_name],
            {key.removeprefix(start): text for key, text in worker.items() if key.startswith(start)},
        )
    return providers


def _from_file(path: str, key: str, parameters: Mapping[str, str]) -> str | None:
    return read_properties(_allowed(path, parameters)).get(key)


def _from_directory(path: str, key: str, parameters: Mapping[str, str]) -> str | None:
    file = _allowed(str(Path(path) / key), parameters)
    return file.read_text(encoding="utf-8") if file.is_file() and file.parent == Path(path).resolve() else None


def _from_environment(_: str, key: str, parameters: Mapping[str, str]) -> str | None:
    pattern = parameters.get("allowlist.pattern")
    if pattern is not None and not re.fullmatch(pattern, key):
        return None
    return os.environ.get(key)


def _allowed(path: str, parameters: Mapping[str, str]) -> Path:
    """The path, if it is below one of ``allowed.paths``, or if that is not set."""
    resolved_path = Path(path).resolve()
    allowed = [Path(part.strip()).resolve() for part in parameters.get("allowed.paths", "").split(",") if part.strip()]
    if allowed and not any(resolved_path.is_relative_to(root) for root in allowed):
        raise UsageError(f"{path} is not below allowed.paths of its config provider")
    return resolved_path


_PROVIDERS: Final[dict[str, _Provider]] = {
    "FileConfigProvider": _from_file,
    "DirectoryConfigProvider": _from_directory,
    "EnvVarConfigProvider": _from_environment,
}
