"""The scripts in docs/ as modules, since they belong to no package."""

from __future__ import annotations

import importlib
import sys

from tests.support.pages import ROOT

__all__ = ["api_pages", "build_site", "config_pages", "generate", "pictures", "prose", "surface"]

sys.path.append(str(ROOT / "docs"))

api_pages, build_site, config_pages, generate, pictures, prose, surface = map(
    importlib.import_module,
    ("api_pages", "build_site", "config_pages", "generate", "pictures", "prose", "surface"),
)
