"""Lines over time as SVG, drawn on the server."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

__all__ = ["sparkline"]


def sparkline(values: Sequence[float], label: str, *, width: int = 240, height: int = 40) -> Markup:
    """A line of ``values`` from zero to their maximum, oldest first; NaN is a gap. ``label`` is read to who does not see it."""
    known = [value for value in values if not math.isnan(value)]
    if len(known) < 2:
        return Markup()
    top = max(known) or 1.0
    step = width / (len(values) - 1)
    paths: list[str] = []
    pen = "M"
    for index, value in enumerate(values):
        if math.isnan(value):
            pen = "M"
            continue
        paths.append(f"{pen}{index * step:.1f} {height - 2 - value / top * (height - 4):.1f}")
        pen = "L"
    return Markup(
        '<svg class="spark" viewBox="0 0 {w} {h}" width="{w}" height="{h}" preserveAspectRatio="none" role="img" aria-label="{label}">'
        '<path d="{path}" fill="none" vector-effect="non-scaling-stroke"/></svg>'
    ).format(w=width, h=height, label=escape(label), path="".join(paths))
