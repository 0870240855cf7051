"""Settings for Spark in a file, which only its owner reads."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tidegate.kit.files import write_whole

__all__ = ["write_properties"]

_IN_NAMES: Final = re.compile(r"[\\\s:=#!]")
_IN_VALUES: Final = re.compile(r"\\|\A\s|[\n\r\t\f]")
_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def write_properties(file: Path, conf: Mapping[str, str]) -> Path:
    """Write the settings for Spark's ``--properties-file``; returns the absolute path. Those of the machine's configuration folder come
    before, for Spark reads one of both."""
    defaults = Path(os.environ.get("SPARK_CONF_DIR", "nowhere")) / "spark-defaults.conf"
    lines = [f"{defaults.read_text()}\n"] if defaults.is_file() else []
    lines += [f"{_escaped(name, _IN_NAMES)}={_escaped(value, _IN_VALUES)}\n" for name, value in conf.items()]
    write_whole(file, "".join(lines), mode=0o600)
    return file.absolute()


def _escaped(text: str, special: re.Pattern[str]) -> str:
    """As ``java.util.Properties`` reads it."""
    return special.sub(lambda match: _NAMED.get(match[0], f"\\{match[0]}"), text)
