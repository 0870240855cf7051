"""Folders of Python connectors (``plugin.path``): which modules they have, and which of them were changed."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from connect.plugins import PluginRegistry
from tidegate.kit.logs import logger

__all__ = ["hook_modules", "python_folders", "uses", "watch"]

log = logger(__name__)

_LOOK_S: Final = 0.3
_HOOK: Final = "register_plugins"

Stamps = dict[str, tuple[int, int]]
"""Files with when they were changed and their size."""


def python_folders(paths: Iterable[str]) -> list[Path]:
    """The folders that hold Python modules or packages."""
    return [folder for path in paths if (folder := Path(path).expanduser()).is_dir() and _modules(folder)]


def _modules(folder: Path) -> dict[str, Path]:
    """The files of modules, and of packages their first, by name."""
    found = {file.stem: file for file in sorted(folder.glob("*.py"))}
    found |= {file.parent.name: file for file in sorted(folder.glob("*/__init__.py"))}
    return {name: file for name, file in found.items() if name.isidentifier()}


def hook_modules(folders: Sequence[Path]) -> list[str]:
    """The modules with a ``register_plugins`` hook, found without running them."""
    return [name for folder in folders for name, file in _modules(folder).items() if _has_hook(file)]


def _has_hook(file: Path) -> bool:
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError) as error:
        log.warning("a module of plugin.path cannot be read", file=str(file), error=str(error))
        return False
    return any(isinstance(statement, ast.FunctionDef) and statement.name == _HOOK for statement in body)


def uses(config: Mapping[str, str], folders: Sequence[Path], plugins: PluginRegistry) -> bool:
    """Whether a connector's class, or one of its converters and transformations, comes from these folders."""
    theirs = {name for folder in folders for name in _modules(folder)}
    for name, value in config.items():
        if name.endswith((".class", ".type", ".converter")):
            plugin = plugins.find(value)
            module = (plugin.path if plugin is not None else value).partition(":")[0]
            if module.partition(".")[0] in theirs:
                return True
    return False


def _stamps(folders: Sequence[Path]) -> Stamps:
    found: Stamps = {}
    for folder in folders:
        for file in folder.rglob("*.py"):
            try:
                status = file.stat()
            except OSError:  # just removed
                continue
            found[str(file)] = (status.st_mtime_ns, status.st_size)
    return found


async def watch(folders: Sequence[Path], on_change: Callable[[list[str]], Awaitable[None]]) -> None:
    """Call ``on_change`` with the files that were written, added or removed, once they rest for a moment. Runs until cancelled."""
    known = _stamps(folders)
    while True:
        await asyncio.sleep(_LOOK_S)
        seen = _stamps(folders)
        if seen == known:
            continue
        await asyncio.sleep(_LOOK_S)
        now = _stamps(folders)
        if now != seen:
            continue  # somebody is still writing
        changed = sorted(file for file in known.keys() | now.keys() if known.get(file) != now.get(file))
        known = now
        await on_change(changed)
