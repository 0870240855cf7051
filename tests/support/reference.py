"""docs/generate.py as a module; it is a script and in no package."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from tests.support.pages import ROOT

__all__ = ["generate"]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = _load()
