"""A project folder: its triggers and flows, the problems of its files, and changes."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pluggy

from events.triggers import api
from events.triggers.api import Trigger
from tidegate.kit.errors import TidegateError, UsageError

__all__ = ["Project", "fingerprint", "load"]

FlowReader = Callable[[Path], Trigger]


@dataclass(slots=True)
class Project:
    """A loaded project. ``problems`` has per file why its triggers do not run; those of other files do."""

    triggers: dict[str, Trigger] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def load(folder: Path, read_flow: FlowReader | None = None, *, plugins: bool = True) -> Project:
    """Import a project's files, in the order of their names. The folder is their import root."""
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder} with triggers")
    project = Project()
    folder_path = str(folder.resolve())
    if folder_path not in sys.path:
        sys.path.insert(0, folder_path)
    for path in sorted(folder.iterdir()):
        if path.suffix == ".py" and not path.name.startswith("test_"):
            _add(project, path.name, lambda path=path: _of_module(path))  # type: ignore[misc]
        elif path.suffix == ".toml" and read_flow is not None and path.name != "pyproject.toml":
            _add(project, path.name, lambda path=path: [read_flow(path)])  # type: ignore[misc]
    if plugins:
        for name, trigger in _of_plugins():
            _add(project, name, lambda trigger=trigger: trigger)  # type: ignore[misc]
    return project


def _add(project: Project, source: str, read: Callable[[], list[Trigger]]) -> None:
    try:
        trigger = read()
        names = [made.name for made in trigger]
        twice = [name for name in names if names.count(name) > 1 or name in project.triggers]
        if twice:
            raise UsageError(f"there is another trigger named {twice[0]}: give one of them another name")
    except TidegateError as error:
        project.problems[source] = str(error)
    except Exception as error:  # noqa: BLE001 - whatever a user's file raises belongs to that file
        project.problems[source] = _shown(error)
    except SystemExit as error:
        project.problems[source] = f"it ends the process with status {error.code}"
    else:
        project.triggers |= {made.name: made for made in trigger}


def _shown(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" (line {last[0].lineno} of {Path(last[0].filename).name})" if last else ""
    return f"{type(error).__name__}: {error}{where}"


def _of_module(path: Path) -> list[Trigger]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    marked = (getattr(value, "tidegate_trigger", None) for value in vars(module).values())
    by_name = {
        made.name: made for made in marked if isinstance(made, Trigger) and made.function.__module__ == path.stem
    }
    return list(by_name.values())


def _of_plugins() -> Iterator[tuple[str, list[Trigger]]]:
    manager = pluggy.PluginManager("tidegate")
    manager.add_hookspecs(api)
    manager.load_setuptools_entrypoints("tidegate")
    for plugin, distribution in manager.list_plugin_distinfo():
        for caller in manager.get_hookcallers(plugin) or []:
            if caller.name == "register_triggers":
                implementation = next(
                    implementation_ for implementation_ in caller.get_hookimpls() if implementation_.plugin is plugin
                )
                implementation_: Any = implementation.function()
                yield distribution.project_name, list(implementation_)


def fingerprint(folder: Path) -> str:
    """Changes whenever a .py or .toml file in the folder or below is created, changed or removed."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".toml"):
            try:
                said = path.stat()
            except FileNotFoundError:
                continue
            digest.update(f"{path}\0{said.st_mtime_ns}\0{said.st_size}\0".encode())
    return digest.hexdigest()
