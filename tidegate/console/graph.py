"""A picture of what leads to what: nodes in columns from left to right, lines between them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

__all__ = ["Picture", "PlacedNode", "drawn", "short_label"]

T = TypeVar("T", bound=Hashable)

WIDTH: Final = 190
HEIGHT: Final = 40
_GAP_X, _GAP_Y, _EDGE = 60, 16, 4
_SWEEPS: Final = 4
_LETTERS: Final = 27


@dataclass(frozen=True)
class PlacedNode(Generic[T]):
    node: T
    x: int
    y: int


@dataclass(frozen=True)
class Picture(Generic[T]):
    """Sizes are in pixels. ``lines`` are paths of SVG."""

    width: int
    height: int
    nodes: Sequence[PlacedNode[T]]
    lines: Sequence[str]
    node_width: int = WIDTH
    node_height: int = HEIGHT


def drawn(edges: Iterable[tuple[T, T]]) -> Picture[T]:
    """Place the ends of edges: each node right of all that lead to it, as far as circles allow, near what it is connected to."""
    listed = list(dict.fromkeys(edges))
    columns = _columns(listed)
    for _ in range(_SWEEPS):
        _sort(columns, listed)
    tallest = max((len(column) for column in columns), default=0)
    at: dict[T, tuple[int, int]] = {}
    for index, column in enumerate(columns):
        top = (tallest - len(column)) * (HEIGHT + _GAP_Y) // 2
        for row, node in enumerate(column):
            at[node] = (_EDGE + index * (WIDTH + _GAP_X), _EDGE + top + row * (HEIGHT + _GAP_Y))
    return Picture(
        max(len(columns) * (WIDTH + _GAP_X) - _GAP_X, 0) + 2 * _EDGE,
        max(tallest * (HEIGHT + _GAP_Y) - _GAP_Y, 0) + 2 * _EDGE,
        [PlacedNode(node, *place) for node, place in at.items()],
        [_line(at[start], at[end]) for start, end in listed],
    )


def short_label(name: str) -> str:
    """The end of a name that is too long for a node: it tells most."""
    return name if len(name) <= _LETTERS else f"…{name[1 - _LETTERS :]}"


def _columns(edges: Sequence[tuple[T, T]]) -> list[list[T]]:
    before: dict[T, list[T]] = {}
    for start, end in edges:
        before.setdefault(start, [])
        before.setdefault(end, []).append(start)
    depth: dict[T, int] = {}
    for first in before:
        # Depth first without recursion; a node that is met while it is open closes a circle and does not count.
        stack, opened = [first], set()
        while stack:
            node = stack[-1]
            if node in depth:
                stack.pop()
                continue
            opened.add(node)
            missing = [other for other in before[node] if other not in depth and other not in opened]
            if missing:
                stack += missing
                continue
            depth[node] = max((depth[other] + 1 for other in before[node] if other in depth), default=0)
            stack.pop()
    columns: list[list[T]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node, column in depth.items():
        columns[column].append(node)
    return columns


def _sort(columns: list[list[T]], edges: Sequence[tuple[T, T]]) -> None:
    """Sort each column by the middle of what its nodes are connected to, so that fewer lines cross."""
    near: dict[T, list[T]] = {}
    for start, end in edges:
        near.setdefault(start, []).append(end)
        near.setdefault(end, []).append(start)
    for column in columns:
        rows = {node: row / max(len(each), 1) for each in columns for row, node in enumerate(each)}
        column.sort(key=lambda node: sum(rows[other] for other in near[node]) / len(near[node]))


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1 = start[0] + WIDTH, start[1] + HEIGHT // 2
    x2, y2 = end[0], end[1] + HEIGHT // 2
    bend = max(abs(x2 - x1) // 2, _GAP_X // 2)
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
