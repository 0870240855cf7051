"""A priority queue that breaks ties like Java's, which determines the sticky assignor's results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["Heap"]

T = TypeVar("T")


class Heap(Generic[T]):
    """Returns the smallest by ``key`` first. A key may change only while its item is not in the queue."""

    __slots__ = ("_items", "_key")

    def __init__(self, key: Callable[[T], float], items: Iterable[T] = ()) -> None:
        self._key = key
        self._items: list[T] = []
        for item in items:
            self.push(item)

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: T) -> None:
        items, key = self._items, self._key
        items.append(item)
        at = len(items) - 1
        while at > 0:
            parent = (at - 1) >> 1
            if key(item) >= key(items[parent]):
                break
            items[at] = items[parent]
            at = parent
        items[at] = item

    def pop(self) -> T:
        """Raises IndexError if the queue is empty."""
        items, key = self._items, self._key
        smallest = items[0]
        last = items.pop()
        count = len(items)
        at = 0
        while at < count >> 1:
            child = 2 * at + 1
            if child + 1 < count and key(items[child]) > key(items[child + 1]):
                child += 1
            if key(last) <= key(items[child]):
                break
            items[at] = items[child]
            at = child
        if count:
            items[at] = last
        return smallest
