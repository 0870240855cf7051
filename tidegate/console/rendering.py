"""Templates and the values that they show."""

from __future__ import annotations

import hashlib
import json
import math
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from tidegate.console.charts import sparkline
from tidegate.kit.texts import counted, time_text

__all__ = ["STATIC", "Renderer", "asset_url"]

_HERE: Final = Path(__file__).parent
STATIC: Final = _HERE / "static"


class Renderer:
    """Jinja2 with autoescape: every value is escaped unless it is a ``Markup``. Unknown names are errors."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            enable_async=False,
        )
        self._environment.filters |= {
            "segment": lambda text: quote(str(text), safe=""),
            "number": _number,
            "bytes": _bytes,
            "rate": _rate,
            "time": time_text,
            "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False, default=str),
        }
        self._environment.globals |= {"asset": asset_url, "sparkline": sparkline, "counted": counted}

    def html(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._environment.get_template(template).render(values), status)


@cache
def asset_url(name: str) -> str:
    """The URL of a file in ``static``; it changes with the file, so that browsers may keep it for ever."""
    stamp = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{stamp}/{name}"


def _number(value: float | None) -> str:
    """A hyphen for None, otherwise with thousands separated."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _rate(value: float | None) -> str:
    """Per second: whole from ten on."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.0f}/s" if value >= 10 or value == 0 else f"{value:,.1f}/s"


def _bytes(value: float | None) -> str:
    if value is None:
        return "-"
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:,.0f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"
