"""Parts that all generated pages have."""

from __future__ import annotations

from typing import Any

__all__ = ["heading", "table"]


def heading(title: str, source: str) -> str:
    return f"<!-- Made from {source} by `make docs`. Do not edit. -->\n\n# {title}\n\n"


def table(columns: list[str], rows: list[list[Any]]) -> str:
    def cell(value: Any) -> str:
        return str(value).replace("|", "\\|").replace("\n", " ")

    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(map(cell, row)) + " |" for row in rows)]) + "\n"
