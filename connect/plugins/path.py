"""Folders of Python connectors (``plugin.path``): their modules, the dependencies of these, and changes."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from connect.plugins.registry import PluginRegistry
from tidegate.kit.logs import get_logger

__all__ = ["ModuleGraph", "hook_modules", "python_folders", "watch"]

logger = get_logger(__name__)

_LOOK_S: Final = 0.3
_HOOK: Final = "register_plugins"

Stamps = dict[str, tuple[int, int]]
"""Files with their modification times and sizes."""


def python_folders(paths: Iterable[str]) -> list[Path]:
    """The folders with Python modules or packages."""
    return [folder for path in paths if (folder := Path(path).expanduser()).is_dir() and _modules(folder)]


def _modules(folder: Path) -> dict[str, Path]:
    """The files of modules, and the first files of packages, by name."""
    modules = {file.stem: file for file in sorted(folder.glob("*.py"))}
    modules |= {file.parent.name: file for file in sorted(folder.glob("*/__init__.py"))}
    return {name: file for name, file in modules.items() if name.isidentifier()}


def hook_modules(folders: Sequence[Path]) -> list[str]:
    """The modules with a ``register_plugins`` hook, found without running them."""
    return [name for folder in folders for name, file in _modules(folder).items() if _has_hook(file)]


def _has_hook(file: Path) -> bool:
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError) as error:
        logger.warning("a module of plugin.path cannot be read", file=str(file), error=str(error))
        return False
    return any(isinstance(statement, ast.FunctionDef) and statement.name == _HOOK for statement in body)


class ModuleGraph:
    """The top-level modules of folders and their imports, according to their current files; none of them is run."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._imports: dict[str, set[str]] = {}
        self.broken: dict[str, str] = {}
        """Unreadable modules, with the reason."""
        for folder in folders:
            for name, file in _modules(folder).items():
                parts = file.parent.rglob("*.py") if file.name == "__init__.py" else [file]
                self._imports[name] = {module for part in parts for module in self._imported(name, part)}

    def _imported(self, name: str, file: Path) -> set[str]:
        try:
            tree = ast.parse(file.read_bytes(), str(file))
        except (OSError, SyntaxError, ValueError) as error:
            self.broken[name] = f"{file}: {type(error).__name__}: {error}"
            return set()
        modules: set[str] = set()
        for statement in ast.walk(tree):
            if isinstance(statement, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in statement.names}
            elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
                modules.add(statement.module.partition(".")[0])
        return modules

    def of_files(self, files: Iterable[str]) -> set[str]:
        """The modules that files belong to, including deleted ones."""
        paths = [Path(file) for file in files]
        inside = [path.relative_to(folder) for folder in self._folders for path in paths if path.is_relative_to(folder)]
        return {path.parts[0].removesuffix(".py") for path in inside}

    def needed(self, config: Mapping[str, str], plugins: PluginRegistry) -> set[str]:
        """The modules of a connector's class, its converters and transformations, and their dependencies."""
        left = set()
        for name, value in config.items():
            if name.endswith((".class", ".type", ".converter")):
                plugin = plugins.find(value)
                module = (plugin.path if plugin is not None else value).partition(":")[0]
                left.add(module.partition(".")[0])
        modules: set[str] = set()
        while left:
            name = left.pop()
            modules.add(name)
            left |= self._imports.get(name, set()) - modules
        return modules


def _stamps(folders: Sequence[Path]) -> Stamps:
    stamps: Stamps = {}
    for folder in folders:
        for file in folder.rglob("*.py"):
            try:
                status = file.stat()
            except OSError:  # just removed
                continue
            stamps[str(file)] = (status.st_mtime_ns, status.st_size)
    return stamps


async def watch(folders: Sequence[Path], on_change: Callable[[list[str]], Awaitable[None]]) -> None:
    """Call ``on_change`` with the files that were written, added or removed, once they have not changed for a moment.

    Runs until cancelled.
    """
    known = _stamps(folders)
    while True:
        await asyncio.sleep(_LOOK_S)
        seen = _stamps(folders)
        if seen == known:
            continue
        await asyncio.sleep(_LOOK_S)
        now = _stamps(folders)
        if now != seen:
            continue  # they are still being written
        changed = sorted(file for file in known.keys() | now.keys() if known.get(file) != now.get(file))
        known = now
        await on_change(changed)
