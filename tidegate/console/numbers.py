"""Numbers that queries and forms bring, and the pages of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, TypeVar

__all__ = ["Part", "page_of", "whole_number"]

T = TypeVar("T")

_ON_A_PAGE: Final = 100
_MOST_DIGITS: Final = 18


class Part(NamedTuple, Generic[T]):
    """The entries of one page of a list, its number from 1 on, and how many pages there are."""

    entries: Sequence[T]
    number: int
    pages: int


def whole_number(text: str) -> int | None:
    """The number of a text of ASCII digits that fits 64 bits; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None


def page_of(entries: Sequence[T], text: str) -> Part[T]:
    """The page that a query asks for: the first for what is no number, the last for a number beyond it."""
    count = max(1, -(-len(entries) // _ON_A_PAGE))
    number = min(max(1, whole_number(text) or 1), count)
    return Part(entries[(number - 1) * _ON_A_PAGE : number * _ON_A_PAGE], number, count)
