"""The scripts in docs/ as modules; they are in no package."""

from __future__ import annotations

import importlib
import sys

from tests.support.pages import ROOT

__all__ = ["api_pages", "config_pages", "generate", "prose", "surface"]

sys.path.append(str(ROOT / "docs"))

api_pages, config_pages, generate, prose, surface = map(
    importlib.import_module, ("api_pages", "config_pages", "generate", "prose", "surface")
)
