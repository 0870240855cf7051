"""docs/generate.py and docs/prose.py as modules; they are scripts and in no package."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from tests.support.pages import ROOT

__all__ = ["generate", "prose"]


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = _load("generate")
prose = _load("prose")
